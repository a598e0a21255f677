//! What policy asks of the world while a call waits, each answered by a test.
//!
//! Not here: who answers.

mod beside;
mod credentials;
mod filters;
mod guarded;
mod socket;
mod who;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use policy::record::Record;
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{Instant, sleep};

use super::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use super::ports::{Facts, Recorder};
use super::{clocks, connect};
use crate::clock::Clock;
use crate::connections::Connections;
use crate::memory::{self, Pipe};
use crate::runtime_config::{Ports, RuntimeConfig};
use crate::stream::Stream;
use crate::timers::Timers;
use crate::wheel::{self, TICK};
use crate::worker::Worker;

/// A request that an upstream read, as text, and when.
#[derive(Debug, Clone)]
struct Arrived {
    at: Duration,
    text: String,
}

/// What came of one call.
struct Seen {
    /// The whole response, as text.
    response: String,
    arrived: Vec<Arrived>,
    record: Record,
    /// Attempts that the sink was told of.
    attempts: usize,
}

impl Seen {
    fn body(&self) -> &str {
        self.response
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }
}

/// One workload, and two backends that are tried in turn.
fn two_backends() -> Snapshot {
    let backend = |name| BackendPlan { name, ..ONE };
    snapshot(&[RoutePlan {
        workloads: &["app"],
        backends: &[backend("near"), backend("far")],
        ..RoutePlan::default()
    }])
}

fn json(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

const BUSY: &str = r#"{"error":{"message":"busy"}}"#;
const CHAT: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;

/// Makes one call, and answers each attempt with the next of `responses`.
fn call(snapshot: Snapshot, body: &str, responses: Vec<String>) -> Seen {
    call_in_pieces(snapshot, body, responses, usize::MAX)
}

/// The same; each response comes in pieces of so many bytes.
fn call_in_pieces(snapshot: Snapshot, body: &str, responses: Vec<String>, piece: usize) -> Seen {
    let world = World::default();
    let response = world.run(snapshot, responses, piece, async |worker| {
        let mut client = connect(&worker);
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: app\r\n\
             authorization: Bearer client-key\r\naccept-encoding: gzip\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        client.write_all(request.as_bytes()).await.expect("a gate");
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.expect("a response");
        String::from_utf8(response).expect("text")
    });
    let mut facts = world.facts();
    assert_eq!(facts.records.len(), 1);
    Seen {
        response,
        arrived: world.arrived.take(),
        record: facts.records.remove(0),
        attempts: facts.attempts,
    }
}

/// What a worker in virtual time and its upstreams tell.
#[derive(Default)]
struct World {
    facts: Arc<Mutex<Facts>>,
    arrived: Rc<RefCell<Vec<Arrived>>>,
}

impl World {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what a client does with a worker whose upstreams answer each request with the next of `responses`, in pieces of so many
    /// bytes. An empty one is no answer for as long as the gate waits.
    fn run<T>(
        &self,
        snapshot: Snapshot,
        responses: Vec<String>,
        piece: usize,
        client: impl AsyncFnOnce(Rc<Worker>) -> T,
    ) -> T {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_unpark(wheel::woken)
            .build_local(LocalOptions::default())
            .expect("a runtime");
        runtime.block_on(async {
            let began = Instant::now();
            let ports = Ports {
                sink: Box::new(Recorder(Arc::clone(&self.facts))),
                ledger: None,
                counting: None,
            };
            let publication = RuntimeConfig {
                revision: Arc::new(Revision::first(snapshot)),
                acceptor: None,
                acceptors: Vec::new(),
                connectors: std::collections::HashMap::new(),
            };
            let clock = Clock::new(clocks());
            let timers = Timers(tokio::runtime::Handle::current());
            let connections = Connections::new(Arc::default());
            let worker = Worker::new(&publication, ports, (clock, timers), connections, None, 1);
            let responses = Rc::new(RefCell::new(responses.into_iter()));
            let seen = Rc::clone(&self.arrived);
            memory::dial_with(Rc::new(move |_| {
                let (ours, theirs) = memory::pipe();
                let (responses, seen) = (Rc::clone(&responses), Rc::clone(&seen));
                tokio::task::spawn_local(async move {
                    let mut ours = ours;
                    let text = request(&mut ours).await;
                    let at = began.elapsed();
                    seen.borrow_mut().push(Arrived { at, text });
                    let response = responses.borrow_mut().next().expect("another response");
                    if response.is_empty() {
                        let _gone = ours.read(&mut [0]).await;
                        return;
                    }
                    for piece in response.as_bytes().chunks(piece.min(response.len())) {
                        // One that does not care for the rest has gone.
                        if ours.write_all(piece).await.is_err() {
                            return;
                        }
                        tokio::task::yield_now().await;
                    }
                });
                Ok(Stream::Memory(theirs))
            }));
            let ticking = Rc::clone(&worker);
            tokio::task::spawn_local(async move {
                loop {
                    sleep(TICK).await;
                    ticking.tick();
                }
            });
            client(worker).await
        })
    }
}

/// One whole request.
async fn request(pipe: &mut Pipe) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let read = pipe.read(&mut buffer).await.expect("a request");
        assert!(read > 0, "it ended early: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).expect("text"));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let length = line.strip_prefix("content-length: ")?;
                length.parse::<usize>().ok()
            });
            if body.len() >= length.expect("a length") {
                return text;
            }
        }
    }
}
