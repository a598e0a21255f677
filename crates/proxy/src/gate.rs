//! The gate as its owner sees it: start workers, publish configurations, scrape, drain.
//!
//! Invariant: a publication reaches every worker whole; an exchange sees one of them from head to
//! record. What a scrape gives of a worker is never less than what one gave before.
//! Not here: what a worker does (`worker`), files and signals (`tollgate`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use policy::trace::Sampling;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::acceptor::{self, Command, Start};
use crate::listener;
pub use crate::runtime_config::{
    Connectors, Ports, RuntimeConfig, Trusted, WorkerMetrics, trusted,
};
use crate::timers::Timers;
use crate::wheel::TICK;

/// How long a scrape waits for workers.
const SCRAPE_WITHIN: Duration = Duration::from_secs(1);

/// What stays the same while the gate runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Worker threads; see [`crate::quota`].
    pub workers: usize,
    /// Connections of all workers beyond which none is accepted, so that descriptors are left for
    /// upstreams and for the admin endpoint.
    pub room: usize,
    /// Stack of each worker: rules of the configuration are decided on it.
    pub stack_bytes: usize,
    /// Which traces are kept; `None` where no exchange belongs to a trace.
    pub sampling: Option<Sampling>,
}

/// A running gate.
pub struct Gate {
    address: SocketAddr,
    /// Where it listens.
    listening: std::sync::Mutex<Vec<SocketAddr>>,
    commands: Vec<mpsc::UnboundedSender<Command>>,
    threads: Vec<JoinHandle<Option<WorkerMetrics>>>,
    alive: Arc<AtomicUsize>,
    /// The last copy of each worker's facts.
    copies: Mutex<Vec<Option<WorkerMetrics>>>,
}

impl Gate {
    /// Binds the listener and starts the workers. `ports` is called once for each worker.
    ///
    /// # Errors
    /// The address cannot be bound, or a thread cannot be started.
    pub fn start(
        options: &Options,
        publication: &RuntimeConfig,
        mut ports: impl FnMut(usize) -> Ports,
    ) -> io::Result<Self> {
        listener::claim(options.listen)?;
        let mut listeners = vec![listener::listen(options.listen)?];
        let address = listeners[0].local_addr()?;
        for _ in 1..options.workers.max(1) {
            listeners.push(listener::listen(address)?);
        }
        let ticker = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let alive = Arc::new(AtomicUsize::new(0));
        let taken = Arc::new(AtomicUsize::new(0));
        let (mut commands, mut threads, mut tickers) = (Vec::new(), Vec::new(), Vec::new());
        for (index, listener) in listeners.into_iter().enumerate() {
            let (sender, receiver) = mpsc::unbounded_channel();
            let ticks = Arc::new(Notify::new());
            tickers.push(Arc::clone(&ticks));
            let start = Start {
                index,
                listener,
                ticks,
                publication: publication.clone(),
                ports: ports(index),
                room: options.room,
                taken: Arc::clone(&taken),
                timers: Timers(ticker.handle().clone()),
                sampling: options.sampling,
            };
            let alive = Arc::clone(&alive);
            alive.fetch_add(1, Ordering::SeqCst);
            let run = move || {
                let leaving = Leaving(alive);
                acceptor::run(start, receiver, || drop(leaving))
            };
            commands.push(sender);
            threads.push(
                std::thread::Builder::new()
                    .name(format!("worker-{index}"))
                    .stack_size(options.stack_bytes)
                    .spawn(run)?,
            );
        }
        let running = Arc::clone(&alive);
        std::thread::Builder::new()
            .name("ticker".into())
            .spawn(move || ticker.block_on(tick(&tickers, &running)))?;
        Ok(Self {
            address,
            listening: std::sync::Mutex::new(vec![address]),
            copies: Mutex::new(commands.iter().map(|_| None).collect()),
            commands,
            threads,
            alive,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens on these addresses and on no other from now on; connections that are open stay. Gives those on which it cannot, and
    /// why. Where it can on none, it listens where it did. On a port where it listens it does not look whether another process does,
    /// too: it would find itself.
    pub fn listen(&self, addresses: &[SocketAddr]) -> Vec<(SocketAddr, io::Error)> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut failed = Vec::new();
        let (mut kept, mut new) = (Vec::new(), Vec::new());
        for address in addresses {
            if listening.contains(address) {
                kept.push(*address);
                continue;
            }
            let is_its_own = listening.iter().any(|of| of.port() == address.port());
            let bound = || -> io::Result<Vec<_>> {
                if !is_its_own {
                    listener::claim(*address)?;
                }
                let each = self.commands.iter();
                each.map(|_| listener::listen(*address)).collect()
            };
            match bound() {
                Ok(listeners) => {
                    kept.push(*address);
                    new.push(listeners);
                }
                Err(error) => failed.push((*address, error)),
            }
        }
        if kept.is_empty() || *listening == kept {
            return failed;
        }
        let mut of_each: Vec<Vec<_>> = self.commands.iter().map(|_| Vec::new()).collect();
        for listeners in new {
            for (of, listener) in of_each.iter_mut().zip(listeners) {
                of.push(listener);
            }
        }
        for (worker, new) in self.commands.iter().zip(of_each) {
            drop(worker.send(Command::Listen(kept.clone(), new)));
        }
        *listening = kept;
        failed
    }

    /// Whether every worker runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::SeqCst) == self.commands.len()
    }

    /// Gives every worker a new configuration.
    pub fn publish(&self, publication: &RuntimeConfig) {
        for worker in &self.commands {
            drop(worker.send(Command::Publish(publication.clone())));
        }
    }

    /// What `read` makes of a copy of each worker's facts, of those that have ended, too. Of a worker that does not answer
    /// within a second it is the copy before, so that what was counted is never less than it was.
    pub async fn scrape<T>(&self, read: impl Fn(&WorkerMetrics) -> Option<T>) -> Vec<T> {
        // One at a time: an older copy takes the place of no newer one.
        let mut copies = self.copies.lock().await;
        let until = Instant::now() + SCRAPE_WITHIN;
        let asked = self.commands.iter().map(|worker| {
            let (sender, receiver) = oneshot::channel();
            // Who is gone drops it, which is no answer.
            drop(worker.send(Command::Scrape(sender)));
            receiver
        });
        let asked: Vec<_> = asked.collect();
        for (answer, copy) in asked.into_iter().zip(&mut *copies) {
            if let Ok(Ok(answer)) = timeout_at(until, answer).await {
                *copy = Some(answer);
            }
        }
        copies.iter().flatten().filter_map(read).collect()
    }

    /// Stops accepting, lets exchanges run on for at most `grace`, closes idle connections.
    pub fn drain(&self, grace: Duration) {
        for worker in &self.commands {
            drop(worker.send(Command::Drain(grace)));
        }
    }

    /// Whether every worker has ended.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.alive.load(Ordering::SeqCst) == 0
    }

    /// Waits for the workers to end and gives the last copy of each one's facts; call
    /// [`Gate::drain`] first.
    pub fn join(self) -> Vec<WorkerMetrics> {
        // Nobody scrapes any more: that is what they wait for.
        drop(self.commands);
        let last = self.threads.into_iter().map(JoinHandle::join);
        // Of one that panicked it is what it was scraped with.
        let last = last.zip(self.copies.into_inner());
        last.filter_map(|(ended, copy)| ended.ok().flatten().or(copy))
            .collect()
    }
}

/// Notifies every worker at each tick, as long as one runs. Meanwhile the runtime it runs on keeps
/// their exact timers.
async fn tick(tickers: &[Arc<Notify>], alive: &AtomicUsize) {
    while alive.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(TICK).await;
        tickers.iter().for_each(|ticker| ticker.notify_one());
    }
}

/// Counts a worker out, also when it panics.
struct Leaving(Arc<AtomicUsize>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
