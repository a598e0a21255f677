//! A worker that drains: what it still takes and what it still hears.

use std::cell::Cell;
use std::collections::HashMap;

use policy::revision::Revision;
use policy::snapshot::Snapshot;
use tokio::runtime::Handle;

use super::*;
use crate::listener::listen;
use crate::sim::Recorder;

fn publication(version: &str) -> RuntimeConfig {
    let snapshot = Snapshot {
        version: version.into(),
        ..Snapshot::default()
    };
    RuntimeConfig {
        revision: Arc::new(Revision::first(snapshot)),
        acceptor: None,
        acceptors: Vec::new(),
        connectors: HashMap::new(),
    }
}

fn worker() -> Rc<Worker> {
    let ports = Ports {
        sink: Box::new(Recorder(Arc::default())),
        ledger: None,
        counting: None,
    };
    let clocks = (Clock::new(HostClocks::SYSTEM), Timers(Handle::current()));
    let connections = Connections::new(Arc::default());
    Worker::new(&publication("first"), ports, clocks, connections, None, 0)
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_published_during_a_drain_is_in_force() {
    let worker = worker();
    let _open = worker.connections.begin();
    let address = ([127, 0, 0, 1], 0).into();
    let listener = Listeners::new(listen(address).expect("an address")).expect("a listener");
    let (to, mut commands) = mpsc::unbounded_channel();
    for command in [
        Command::Publish(publication("second")),
        Command::Drain(Duration::ZERO),
    ] {
        drop(to.send(command));
    }
    let grace = Duration::from_secs(60);
    drain(&worker, listener, &mut commands, &Notify::new(), grace).await;
    assert_eq!(&*worker.view().snapshot().version, "second");
}

#[tokio::test(start_paused = true)]
async fn of_connections_that_come_all_the_time_a_bounded_number_is_taken_for_a_bounded_time() {
    let timers = Timers(Handle::current());
    let taken = Cell::new(0);
    let take = |()| taken.set(taken.get() + 1);
    take_queued(&timers, async || Ok(()), take).await;
    assert_eq!(taken.take(), QUEUED_MAX);

    let slow = async || {
        tokio::time::advance(NEXT_WITHIN / 2).await;
        Ok(())
    };
    take_queued(&timers, slow, take).await;
    assert!((50..=101).contains(&taken.get()), "{}", taken.get());

    // None comes.
    taken.set(0);
    let never = async || std::future::pending::<io::Result<()>>().await;
    take_queued(&timers, never, take).await;
    assert_eq!(taken.get(), 0);
}
