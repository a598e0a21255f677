//! Traces: spans of sampled exchanges, gathered by one thread and handed to a collector in batches.
//!
//! Invariant: a worker never waits for a collector. A batch that finds the queue full is dropped and
//! its spans are counted, as are those that the collector did not take; what waits is bounded
//! whatever the collector does.
//! Not here: which exchanges are sampled (`policy::trace`), how a worker gathers spans (`spans`),
//! what a span says (`otlp`), the connection to the collector (`export`).

mod export;
mod fact;
mod otlp;
mod protobuf;
mod spans;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use export::{OtlpEndpoint, OtlpExporter, OtlpProtocol};
use fact::Fact;
pub use otlp::Service;
pub use spans::Spans;

use crate::closing::close;

/// Batches of workers that may wait; each holds at most [`spans::FULL`] spans.
const QUEUE: usize = 64;
/// Spans that are sent without waiting for more.
const BATCH: usize = 1024;
/// How long a span waits for company.
const LINGER: Duration = Duration::from_secs(1);
/// Times that a batch is offered, and the first pause between two; each pause is twice the last.
const OFFERS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long one offer may take.
const OFFER_FOR: Duration = Duration::from_secs(10);
/// The same at the end, and how long [`Traces::close`] waits in all.
const LAST_OFFER_FOR: Duration = Duration::from_secs(3);
const CLOSE_FOR: Duration = Duration::from_secs(5);

/// Where batches go. Called by one thread, which it may keep waiting.
pub trait Collector: Send {
    /// Offers a batch: an `ExportTraceServiceRequest` of OTLP, in protobuf.
    ///
    /// # Errors
    /// [`Undelivered`], which says whether to offer it again.
    fn offer(&mut self, request: &[u8], within: Duration) -> Result<(), Undelivered>;
}

/// Why a collector has not taken a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// It may take it later: it cannot be reached, or is busy.
    Later(String),
    /// It never will.
    Never(String),
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(why) | Self::Never(why) => f.write_str(why),
        }
    }
}

/// What became of spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceStats {
    /// Spans that the collector took.
    pub sent: u64,
    /// Spans that found the queue full.
    pub crowded_out: u64,
    /// Spans that the collector did not take.
    pub undelivered: u64,
    /// Offers that failed; a batch is offered several times.
    pub failures: u64,
}

/// The thread that sends, and what workers need to reach it.
#[derive(Debug)]
pub struct Traces {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    sender: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    crowded_out: AtomicU64,
    undelivered: AtomicU64,
    failures: AtomicU64,
    is_closing: AtomicBool,
}

#[derive(Debug)]
enum Message {
    Batch(Vec<Fact>),
    Close,
}

impl Traces {
    /// Starts the thread that sends.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(service: Service, collector: impl Collector + 'static) -> io::Result<Self> {
        let (queue, batches) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let sender = Sender {
            service,
            collector,
            shared: Arc::clone(&shared),
            waiting: Vec::new(),
            since: Instant::now(),
        };
        let thread = thread::Builder::new().name("traces".to_owned());
        let sender = thread.spawn(move || sender.run(&batches))?;
        Ok(Self {
            queue,
            shared,
            sender: Mutex::new(Some(sender)),
        })
    }

    /// A buffer for one worker.
    #[must_use]
    pub fn spans(&self) -> Spans {
        Spans::new(self.queue.clone(), Arc::clone(&self.shared))
    }

    /// What became of spans so far.
    #[must_use]
    pub fn stats(&self) -> TraceStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TraceStats {
            sent: of(&self.shared.sent),
            crowded_out: of(&self.shared.crowded_out),
            undelivered: of(&self.shared.undelivered),
            failures: of(&self.shared.failures),
        }
    }

    /// Offers what is queued once more and ends the thread, or leaves it behind after five seconds.
    /// Spans dropped before have handed over what they held.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        close(&self.sender, &self.queue, || Message::Close, CLOSE_FOR);
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.close();
    }
}

struct Sender<C> {
    service: Service,
    collector: C,
    shared: Arc<Shared>,
    /// At most [`BATCH`] spans and one worker's batch.
    waiting: Vec<Fact>,
    /// When the first of them came.
    since: Instant,
}

impl<C: Collector> Sender<C> {
    fn run(mut self, batches: &Receiver<Message>) {
        loop {
            let patience = if self.waiting.is_empty() {
                Duration::from_secs(3600)
            } else {
                LINGER.saturating_sub(self.since.elapsed())
            };
            match batches.recv_timeout(patience) {
                Ok(Message::Batch(batch)) => self.take(batch),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.deliver(),
            }
        }
        while let Ok(message) = batches.try_recv() {
            if let Message::Batch(batch) = message {
                self.take(batch);
            }
        }
        self.deliver();
    }

    fn take(&mut self, batch: Vec<Fact>) {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.extend(batch);
        if self.waiting.len() >= BATCH || self.since.elapsed() >= LINGER {
            self.deliver();
        }
    }

    /// Offers what waits until the collector takes it or there is no more use in trying.
    fn deliver(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let count = u64::try_from(self.waiting.len()).unwrap_or(u64::MAX);
        let request = otlp::request(&self.service, &self.waiting);
        self.waiting.clear();
        let mut pause = FIRST_PAUSE;
        for offer in 1..=OFFERS {
            let is_last = self.is_closing();
            let within = if is_last { LAST_OFFER_FOR } else { OFFER_FOR };
            let Err(undelivered) = self.collector.offer(&request, within) else {
                self.shared.sent.fetch_add(count, Ordering::Relaxed);
                return;
            };
            self.shared.failures.fetch_add(1, Ordering::Relaxed);
            if matches!(undelivered, Undelivered::Never(_)) || is_last || offer == OFFERS {
                break;
            }
            self.pause(pause);
            pause *= 2;
        }
        self.shared.undelivered.fetch_add(count, Ordering::Relaxed);
    }

    /// Waits, but no longer than until the gate ends.
    fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.is_closing() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_closing(&self) -> bool {
        self.shared.is_closing.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests;
