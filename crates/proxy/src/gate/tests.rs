//! Facts of workers that have ended, and of those that do not answer.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record, Sink};
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use testing::eventually;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::still::still;

/// Holds how often all of them were copied, and cannot be copied while somebody holds that.
struct Copies(Arc<Mutex<u64>>);

impl Sink for Copies {
    fn exchange(&mut self, _: &Snapshot, _: &Record) {}
    fn attempt(&mut self, _: &Snapshot, _: &AttemptRecord) {}
    fn abandoned(&mut self, _: DisconnectOutcome) {}
    fn closed(&mut self, _: Closed) {}
    fn gauge(&mut self, _: Gauge, _: i64) {}
    fn tick(&mut self) {}
    fn copy(&self) -> Box<dyn Any + Send> {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *copies += 1;
        Box::new(*copies)
    }
}

fn started(workers: usize) -> (Gate, Arc<Mutex<u64>>) {
    let copies = Arc::default();
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        workers,
        room: 10,
        stack_bytes: 1 << 20,
        sampling: None,
    };
    let publication = RuntimeConfig {
        revision: Arc::new(Revision::first(Snapshot::default())),
        acceptor: None,
        acceptors: Vec::new(),
        connectors: Connectors::new(),
    };
    let ports = |_| Ports {
        sink: Box::new(Copies(Arc::clone(&copies))),
        ledger: None,
        counting: None,
    };
    let gate = Gate::start(&options, &publication, ports).expect("a gate");
    (gate, copies)
}

fn runtime() -> Runtime {
    let paused = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    paused.expect("a runtime")
}

/// Scrapes however long the workers take to answer.
async fn scrape(gate: &Gate) -> Vec<u64> {
    let _held = still();
    scrape_in_time(gate).await
}

/// Scrapes for the second in which they must have answered, which passes at once.
async fn scrape_in_time(gate: &Gate) -> Vec<u64> {
    let mut copies = gate.scrape(|copy| copy.downcast_ref().copied()).await;
    copies.sort_unstable();
    copies
}

#[test]
fn facts_of_workers_that_have_ended_are_scraped_until_the_gate_is_joined() {
    let (gate, copies) = started(2);
    runtime().block_on(async {
        assert_eq!(scrape(&gate).await, [1, 2]);
        gate.drain(Duration::ZERO);
        eventually("the workers end", || gate.is_drained());
        assert_eq!(scrape(&gate).await, [3, 4]);
        assert_eq!(scrape(&gate).await, [5, 6]);
    });
    assert_eq!(gate.join().len(), 2);
    assert_eq!(*copies.lock().expect("no panic"), 8, "each once more");
}

#[test]
fn of_a_worker_that_does_not_answer_the_facts_before_are_scraped() {
    let (gate, copies) = started(1);
    let runtime = runtime();
    assert_eq!(runtime.block_on(scrape(&gate)), [1]);
    let held = copies.lock().expect("no panic");
    runtime.block_on(async {
        for _ in 0..2 {
            assert_eq!(scrape_in_time(&gate).await, [1]);
        }
    });
    drop(held);
    // Those of the two questions that nobody waits for came first.
    assert_eq!(runtime.block_on(scrape(&gate)), [4]);
    assert_eq!(gate.join().len(), 1);
}

#[test]
fn a_gate_listens_where_it_is_told_and_nowhere_else_from_then_on() {
    let (gate, _) = started(2);
    let free = || {
        let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        taken.local_addr().expect("it is bound")
    };
    let (first, second) = (gate.address(), free());
    let is_open = |address| std::net::TcpStream::connect(address).is_ok();
    assert!(is_open(first) && !is_open(second));
    assert!(gate.listen(&[first, second]).is_empty());
    // A listener has its queue from the moment it is bound.
    assert!(is_open(first) && is_open(second));
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let taken = taken
        .local_addr()
        .map(|at| (at, taken))
        .expect("it is bound");
    let failed = gate.listen(&[second, taken.0]);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, taken.0);
    eventually("the first address is left", || !is_open(first));
    assert!(is_open(second));
    // Where it can listen nowhere, it stays where it is.
    assert_eq!(gate.listen(&[taken.0]).len(), 1);
    assert!(is_open(second));
    gate.drain(std::time::Duration::ZERO);
    drop(gate.join());
}

#[test]
fn a_gate_that_listens_everywhere_can_be_told_to_listen_at_one_address_of_the_port() {
    let (gate, _) = started(2);
    let wide = {
        let taken = std::net::TcpListener::bind(("0.0.0.0", 0)).expect("a port");
        taken.local_addr().expect("it is bound")
    };
    let is_open = |ip: [u8; 4]| {
        let address = SocketAddr::from((ip, wide.port()));
        std::net::TcpStream::connect(address).is_ok()
    };
    assert!(gate.listen(&[wide]).is_empty());
    assert!(is_open([127, 0, 0, 1]) && is_open([127, 0, 0, 2]));
    let narrow = SocketAddr::from(([127, 0, 0, 1], wide.port()));
    let failed = gate.listen(&[narrow]);
    assert!(failed.is_empty(), "{failed:?}");
    eventually("it is shut elsewhere", || !is_open([127, 0, 0, 2]));
    assert!(is_open([127, 0, 0, 1]));
    // And back.
    assert!(gate.listen(&[wide]).is_empty());
    assert!(is_open([127, 0, 0, 1]) && is_open([127, 0, 0, 2]));
    gate.drain(Duration::ZERO);
    gate.join();
}
