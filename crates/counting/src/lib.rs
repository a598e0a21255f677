//! The pool beside the workers that counts tokens and reconciles them with what engines report.
//!
//! ```text
//! worker ── request, batches, end ──► queue ──► counter threads ── count ──► reconciler ──► ledger, metrics, access log
//!    └────────────── the row, held until its count is there ──────────────────▲
//! ```
//!
//! A crate of its own for its *weight and effect*: tokenizers, and threads that use them, stay out of the workers.
//! Invariant: a worker sends and never waits: it touches a channel of its own, the budget's counter and a flag that says
//! whether somebody sleeps (`bell`), and no lock that a thread of the pool takes. All that waits to be counted is within
//! one memory budget. A row waits for its count at the reconciler, for a bounded time: no count can lose one.
//! Not here: tokenizers (`tokens`), finding text in answers (`wire::answer`), the rows (the host settles them), what
//! a worker copies (`policy::counting` and the host).

mod answer;
mod ask;
mod bell;
mod cache;
mod calibrations;
mod counter;
mod exchange_id;
mod handle;
mod memory;
mod metrics;
mod queue;
mod reconciler;
mod shared_queue;

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use policy::counting::{Counting, Settings};
use policy::record::Sink;

pub use ask::PromptDesk;
use bell::Bell;
pub use cache::{Counters, TokenizerCache, from_files};
pub use calibrations::{Calibrations, CountedModel};
use counter::{CountEvent, Counter, Open};
use handle::CountHandle;
use memory::MemoryBudget;
pub use metrics::{Compared, Direction, DriftMetrics, LATE, RESULTS, Series, Unread};
pub use reconciler::{Counts, RowSender, Settle};
use reconciler::{Reconciler, SharedSink, ToReconciler, Tolerances, Witnesses, inbox};
use shared_queue::SharedQueue;

/// How long the last counts may take when the gate ends.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take, then, to pass on what is left without a count.
const HURRY_WITHIN: Duration = Duration::from_secs(2);

/// The threads that count, and the one that reconciles; rows of type `R` wait there.
pub struct CountingPool<R> {
    cache: Arc<TokenizerCache>,
    memory: Arc<MemoryBudget>,
    metrics: Arc<DriftMetrics>,
    calibrations: Arc<Calibrations>,
    /// Where exchanges are recorded once they are counted.
    sink: SharedSink,
    queue: Arc<SharedQueue<CountEvent, Open>>,
    reconciler: ToReconciler<R>,
    /// Those that count, then the reconciler.
    threads: Vec<JoinHandle<()>>,
    /// Tells those that count to pass on what is left.
    is_hurried: Arc<AtomicBool>,
    /// Tells the reconciler to let every row go.
    is_over: Arc<AtomicBool>,
    longest: usize,
    backpressure: Duration,
}

impl<R: Send + 'static> CountingPool<R> {
    /// Starts the threads: of those that count so many as `settings` allows where there are `cpus`, the CPUs' worth of
    /// time that the process has. They rest while there is nothing to count.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        settings: &Settings,
        cpus: f64,
        cache: Arc<TokenizerCache>,
        sink: Box<dyn Sink + Send>,
        settle: Settle<R>,
    ) -> Result<Self, String> {
        let threads = settings.threads.on(cpus);
        let (reconciler, events) = inbox();
        let metrics = Arc::<DriftMetrics>::default();
        let mut pool = Self {
            cache,
            memory: MemoryBudget::new(settings.queue_bytes),
            calibrations: Arc::new(Calibrations::new(Arc::clone(&metrics))),
            metrics,
            sink: Arc::new(Mutex::new(sink)),
            queue: Arc::new(SharedQueue::new(threads)),
            reconciler,
            threads: Vec::new(),
            is_hurried: Arc::default(),
            is_over: Arc::default(),
            longest: settings.longest_bytes,
            backpressure: settings.backpressure,
        };
        for index in 0..threads {
            let counter = Counter {
                cache: Arc::clone(&pool.cache),
                reconciler: pool.reconciler.clone(),
                metrics: Arc::clone(&pool.metrics),
                calibrations: Arc::clone(&pool.calibrations),
                longest: settings.longest_bytes,
                is_hurried: Arc::clone(&pool.is_hurried),
            };
            let queue = Arc::clone(&pool.queue);
            pool.spawn(format!("counter-{index}"), move || {
                queue.run(
                    index,
                    |turn| counter.guarded_turn(turn),
                    || counter.reconciler.wake(),
                );
            })?;
        }
        let tolerances = Tolerances::new(settings.prompt_per_mille, settings.output_per_mille);
        let witnesses = Witnesses {
            metrics: Arc::clone(&pool.metrics),
            calibrations: Arc::clone(&pool.calibrations),
            tolerances,
        };
        let sink = Arc::clone(&pool.sink);
        let reconciler = Reconciler::new(settle, witnesses, settings.wait, sink);
        let is_over = Arc::clone(&pool.is_over);
        pool.spawn("reconciler".to_owned(), move || {
            reconciler.run(&events, &is_over);
        })?;
        Ok(pool)
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let thread = thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start to count: {error}"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// A worker's way in.
    #[must_use]
    pub fn handle(&self, worker: usize) -> Box<dyn Counting + Send> {
        Box::new(CountHandle::new(
            worker,
            self.queue.inlet(),
            Arc::clone(&self.memory),
            Arc::clone(&self.metrics),
            self.longest,
            self.backpressure,
        ))
    }

    /// Where it is asked what prompts come to; to be dropped before the pool is closed.
    #[must_use]
    pub fn desk(&self) -> PromptDesk {
        PromptDesk::new(self.queue.inlet(), Arc::clone(&self.memory), self.longest)
    }

    /// Where rows wait for their counts.
    #[must_use]
    pub fn rows(&self) -> RowSender<R> {
        RowSender(self.reconciler.clone())
    }

    /// The tokenizers; a new configuration's are put there.
    #[must_use]
    pub fn cache(&self) -> &TokenizerCache {
        &self.cache
    }

    /// How our counts stand to those of engines.
    #[must_use]
    pub fn calibrations(&self) -> Arc<Calibrations> {
        Arc::clone(&self.calibrations)
    }

    /// What counting has come to.
    #[must_use]
    pub fn metrics(&self) -> &DriftMetrics {
        &self.metrics
    }

    /// The most threads that count at once.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len() - 1
    }

    /// Bytes that wait to be counted, or are being counted.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.memory.taken()
    }

    /// A copy of what the sink holds.
    #[must_use]
    pub fn copy(&self) -> Box<dyn Any + Send> {
        copy(&self.sink)
    }

    /// Counts what is left and lets every row go. Every worker has to have ended. Gives the sink's last copy.
    #[must_use]
    pub fn close(self) -> Box<dyn Any + Send> {
        let Self {
            sink,
            queue,
            reconciler,
            threads,
            is_hurried,
            is_over,
            ..
        } = self;
        let bell = reconciler.bell();
        queue.close();
        drop((queue, reconciler));
        if !ends(&threads, CLOSE_WITHIN, &bell) {
            is_hurried.store(true, Relaxed);
            ends(&threads, HURRY_WITHIN, &bell);
        }
        is_over.store(true, Release);
        bell.wake(0);
        // A counter that is stuck is left behind; the reconciler is the last and never is.
        if let Some(reconciler) = threads.into_iter().next_back()
            && reconciler.join().is_err()
        {
            tracing::error!("bug: the reconciler of the counting pool panicked; rows may be lost");
        }
        copy(&sink)
    }
}

/// Whether threads end within this time; the reconciler is woken, so that it sees that it is the last.
fn ends(threads: &[JoinHandle<()>], within: Duration, reconciler: &Bell) -> bool {
    let until = Instant::now() + within;
    while !threads.iter().all(JoinHandle::is_finished) {
        reconciler.wake(0);
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn copy(sink: &SharedSink) -> Box<dyn Any + Send> {
    let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    sink.copy()
}

/// A moment from which tests count; where it is on the clock means nothing to them.
#[cfg(test)]
fn moment() -> Instant {
    Instant::now()
}
