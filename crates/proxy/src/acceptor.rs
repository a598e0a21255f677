//! One thread, one current-thread runtime, its listeners: accepts connections and hands each to its handler.
//!
//! Invariant: nothing here is shared with another thread but the count of connections, which is touched only as
//! they come and go.
//! Not here: what exchanges share (`worker`), a connection's life (`downstream`).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use policy::fast_hash::finalize;
use policy::record::{Gauge, Trouble};
use policy::trace::Sampling;
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::batches;
use crate::clock::{Clock, HostClocks, unix_ms};
use crate::connections::Connections;
use crate::downstream;
use crate::listener::Listeners;
use crate::runtime_config::{Ports, RuntimeConfig, WorkerMetrics};
use crate::socket::Socket;
use crate::source::Source;
use crate::timers::Timers;
use crate::wheel::{self, TICK};
use crate::worker::Worker;

/// After an error of the listener's.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// A connection that comes later than so long after the one before was not in the kernel's queue.
const NEXT_WITHIN: Duration = Duration::from_millis(1);
/// How long the queue is taken from when a drain begins.
const QUEUE_WITHIN: Duration = Duration::from_millis(50);
/// How many are taken from it then: as many as the kernel queues.
const QUEUED_MAX: usize = crate::listener::BACKLOG.unsigned_abs() as usize;

/// What a worker thread starts from.
pub(crate) struct Start {
    pub(crate) index: usize,
    pub(crate) listener: TcpListener,
    /// Notified at each tick.
    pub(crate) ticks: Arc<Notify>,
    pub(crate) publication: RuntimeConfig,
    pub(crate) ports: Ports,
    pub(crate) room: usize,
    /// Connections of all workers, which share the descriptors.
    pub(crate) taken: Arc<AtomicUsize>,
    pub(crate) timers: Timers,
    pub(crate) sampling: Option<Sampling>,
}

/// What a worker is told to do.
pub(crate) enum Command {
    Publish(RuntimeConfig),
    /// Listen on these addresses, with these listeners for those that are new.
    Listen(Vec<SocketAddr>, Vec<TcpListener>),
    Scrape(oneshot::Sender<WorkerMetrics>),
    Drain(Duration),
}

/// Runs a worker to its end: until drained, or its commands' other end is gone. Says then that it `ended`, and answers
/// scrapes until nobody is left that could ask. Gives its last facts, unless it could not start.
// Never inlined: by its name a profile tells the workers' threads from others.
#[inline(never)]
pub(crate) fn run(
    start: Start,
    mut commands: mpsc::UnboundedReceiver<Command>,
    ended: impl FnOnce(),
) -> Option<WorkerMetrics> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .on_thread_unpark(wheel::woken)
        .build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, worker = start.index, "cannot start a worker's runtime");
            return None;
        }
    };
    let worker = runtime.block_on(accept(start, &mut commands))?;
    // Exchanges that are cut here leave their records too. A look-up that hangs is not waited for.
    runtime.shutdown_background();
    worker.tick();
    ended();
    while let Some(command) = commands.blocking_recv() {
        if let Command::Scrape(to) = command {
            drop(to.send(worker.facts()));
        }
    }
    Some(worker.facts())
}

async fn accept(
    start: Start,
    commands: &mut mpsc::UnboundedReceiver<Command>,
) -> Option<Rc<Worker>> {
    // Gates of a fleet may start in one millisecond with one process id: the system's chance is in it.
    let chance = RandomState::new().hash_one(start.index);
    let seed = finalize(unix_ms() ^ chance);
    let clocks = (Clock::new(HostClocks::SYSTEM), start.timers);
    let connections = Connections::new(start.taken);
    let Start {
        publication,
        ports,
        sampling,
        room,
        ticks,
        ..
    } = start;
    let worker = Worker::new(&publication, ports, clocks, connections, sampling, seed);
    // What the first configuration holds ends with it.
    drop(publication);
    let mut listeners = match Listeners::new(start.listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, worker = start.index, "cannot use the listener");
            return None;
        }
    };
    batches::begin(&worker);
    let mut pause = pin!(worker.timers.sleep(Duration::ZERO));
    let mut pauses = false;
    let grace = loop {
        tokio::select! {
            // Without room, clients wait in the kernel's queue; the tick looks again.
            accepted = listeners.accept(), if !pauses && worker.connections.of_all() < room => match accepted {
                Ok((tcp, peer, port)) => open(&worker, tcp, peer, port),
                Err(error) => {
                    worker.trouble(Trouble::AcceptFailed, &error);
                    // Running out of descriptors must not become a busy loop; all else goes on meanwhile.
                    pause.set(worker.timers.sleep(ACCEPT_AGAIN_AFTER));
                    pauses = true;
                }
            },
            () = pause.as_mut(), if pauses => pauses = false,
            command = commands.recv() => match command {
                Some(Command::Publish(publication)) => {
                    worker.adopt(&publication);
                    batches::begin(&worker);
                }
                Some(Command::Listen(kept, new)) => {
                    if let Err(error) = listeners.become_these(&kept, new) {
                        worker.trouble(Trouble::AcceptFailed, &error);
                    }
                }
                Some(Command::Scrape(to)) => drop(to.send(worker.facts())),
                Some(Command::Drain(grace)) => break grace,
                None => break Duration::ZERO,
            },
            () = ticks.notified() => {
                worker.tick();
                if worker.connections.of_all() >= room {
                    let detail = "half of the descriptors are taken";
                    worker.trouble(Trouble::AcceptPaused, &detail);
                }
            }
        }
    };
    drain(&worker, listeners, commands, &ticks, grace).await;
    worker.stop();
    Some(worker)
}

/// Serves a connection, if there is room for it.
fn open(worker: &Rc<Worker>, tcp: TcpStream, peer: IpAddr, port: u16) {
    let view = worker.view();
    // A trusted proxy's connections are those of many clients.
    let is_client = !view.snapshot().clients.trusts(peer);
    let source = is_client.then(|| Source::of(peer));
    let place = match worker.connections.admit(source, &view.snapshot().bounds) {
        Ok(place) => Ok(place),
        Err(at) => {
            worker.closed(at);
            match worker.connections.turn_away() {
                Some(away) => Err(away),
                None => return, // Dropped: the client sees the connection closed.
            }
        }
    };
    let socket = match Socket::new(tcp, peer, port) {
        Ok(socket) => socket,
        Err(error) => return worker.trouble(Trouble::AcceptFailed, &error),
    };
    let open = Counted::begin(worker);
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let _open = open;
        match place {
            Ok(_place) => downstream::serve(worker, view, socket).await,
            Err(_away) => downstream::turn_away(worker, view, socket).await,
        }
    });
}

/// Stops accepting; exchanges go on until they end or `grace` is over.
async fn drain(
    worker: &Rc<Worker>,
    mut listeners: Listeners,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    ticks: &Notify,
    grace: Duration,
) {
    let timers = &worker.timers;
    let accept = async || listeners.accept().await;
    take_queued(timers, accept, |(tcp, peer, port)| {
        open(worker, tcp, peer, port);
    })
    .await;
    drop(listeners);
    worker.begin_drain();
    let over = timers.sleep(grace);
    tokio::pin!(over);
    // The last exchange of an HTTP/2 connection ends just after it.
    while worker.connections.open() > 0 || worker.exchanges() > 0 {
        tokio::select! {
            () = &mut over => {
                let (connections, cut) = (worker.connections.open(), worker.exchanges());
                tracing::warn!(connections, cut, "the grace period is over: the gate cuts the exchanges that are left");
                return;
            }
            command = commands.recv() => match command {
                Some(Command::Scrape(to)) => drop(to.send(worker.facts())),
                Some(Command::Drain(Duration::ZERO)) => return,
                // Calls still begin on open connections: they are served by what is in force.
                Some(Command::Publish(publication)) => worker.adopt(&publication),
                Some(Command::Listen(..) | Command::Drain(_)) => {}
                None => timers.sleep(TICK).await,
            },
            () = worker.connections.ended.notified() => {}
            () = ticks.notified() => worker.tick(),
        }
    }
}

/// Takes the connections that the kernel has queued for a listener, which would be reset with it: at most as many as the
/// kernel queues, and for at most [`QUEUE_WITHIN`]. Where more come all the time the rest is reset; the worker has to hear
/// commands again.
async fn take_queued<T>(
    timers: &Timers,
    mut accept: impl AsyncFnMut() -> io::Result<T>,
    mut take: impl FnMut(T),
) {
    let until = Instant::now() + QUEUE_WITHIN;
    for _ in 0..QUEUED_MAX {
        let accepted = timers.timeout(NEXT_WITHIN, accept()).await;
        let Ok(Ok(connection)) = accepted else {
            return;
        };
        take(connection);
        if Instant::now() >= until {
            return;
        }
    }
}

/// A connection in the count and in the gauge, whatever ends it.
struct Counted {
    _open: crate::connections::Open,
    worker: Rc<Worker>,
}

impl Counted {
    fn begin(worker: &Rc<Worker>) -> Self {
        worker.sink(|s| s.gauge(Gauge::Connections, 1));
        Self {
            _open: worker.connections.begin(),
            worker: Rc::clone(worker),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.worker.sink(|s| s.gauge(Gauge::Connections, -1));
    }
}

#[cfg(test)]
mod tests;
