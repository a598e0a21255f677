//! The pool beside the workers that counts tokens and reconciles them with what engines report.
//!
//! ```text
//! worker ── request, batches, end ──► counter thread ── count ──► reconciler ──► ledger, metrics, access log
//!    └──────────── the row, held until its count is there ─────────────▲
//! ```
//!
//! A crate of its own for its *weight and effect*: tokenizers, and threads that use them, stay out of the workers.
//! Invariant: a worker sends and never waits; all that waits to be counted is within one memory budget. A row waits
//! for its count at the reconciler, for a bounded time: no count can lose one.
//! Not here: tokenizers (`tokens`), finding text in answers (`wire::answer`), the rows (the host settles them), what
//! a worker copies (`policy::counting` and the host).

mod answer;
mod cache;
mod counter;
mod handle;
mod memory;
mod metrics;
mod reconciler;

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use policy::counting::{Counting, Settings};
use policy::record::Sink;

pub use cache::{Counters, TokenizerCache, from_files};
use counter::{CountEvent, Counter};
use handle::CountHandle;
use memory::MemoryBudget;
pub use metrics::{Direction, DriftMetrics, RESULTS, Series};
pub use reconciler::{Counts, RowSender, Settle};
use reconciler::{ReconcileEvent, Reconciler, SharedSink, Tolerances};

/// How long the last counts may take when the gate ends.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);

/// The threads that count, and the one that reconciles; rows of type `R` wait there.
pub struct CountingPool<R> {
    cache: Arc<TokenizerCache>,
    memory: Arc<MemoryBudget>,
    metrics: Arc<DriftMetrics>,
    /// Where exchanges are recorded once they are counted.
    sink: SharedSink,
    counters: Vec<Sender<CountEvent>>,
    reconciler: Sender<ReconcileEvent<R>>,
    threads: Vec<JoinHandle<()>>,
    /// Tells the reconciler to let every row go.
    is_over: Arc<AtomicBool>,
    longest: usize,
}

impl<R: Send + 'static> CountingPool<R> {
    /// Starts the threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        settings: Settings,
        cache: Arc<TokenizerCache>,
        sink: Box<dyn Sink + Send>,
        settle: Settle<R>,
    ) -> Result<Self, String> {
        let (reconciler, events) = channel();
        let mut pool = Self {
            cache,
            memory: MemoryBudget::new(settings.queue_bytes),
            metrics: Arc::default(),
            sink: Arc::new(Mutex::new(sink)),
            counters: Vec::new(),
            reconciler,
            threads: Vec::new(),
            is_over: Arc::default(),
            longest: settings.longest_bytes,
        };
        for index in 0..settings.threads.max(1) {
            let (sender, events) = channel();
            let counter = Counter::new(
                Arc::clone(&pool.cache),
                pool.reconciler.clone(),
                settings.longest_bytes,
            );
            let metrics = Arc::clone(&pool.metrics);
            pool.counters.push(sender);
            pool.spawn(format!("counter-{index}"), move || {
                counter.run(&events, &metrics);
            })?;
        }
        let tolerances = Tolerances::new(settings.prompt_per_mille, settings.output_per_mille);
        let (metrics, sink) = (Arc::clone(&pool.metrics), Arc::clone(&pool.sink));
        let reconciler = Reconciler::new(settle, metrics, tolerances, sink);
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
            self.counters.clone(),
            Arc::clone(&self.memory),
            Arc::clone(&self.metrics),
            self.longest,
        ))
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

    /// What counting has come to.
    #[must_use]
    pub fn metrics(&self) -> &DriftMetrics {
        &self.metrics
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
            counters,
            reconciler,
            threads,
            is_over,
            ..
        } = self;
        drop((counters, reconciler));
        let until = Instant::now() + CLOSE_WITHIN;
        let ended = |threads: &[JoinHandle<()>]| threads.iter().all(JoinHandle::is_finished);
        while !ended(&threads) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Relaxed);
        // A counter that is stuck is left behind; the reconciler is the last and never is.
        if let Some(reconciler) = threads.into_iter().next_back()
            && reconciler.join().is_err()
        {
            tracing::error!("bug: the reconciler of the counting pool panicked; rows may be lost");
        }
        copy(&sink)
    }
}

fn copy(sink: &SharedSink) -> Box<dyn Any + Send> {
    let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    sink.copy()
}
