//! Where a row waits for its count, and where the gate's count is compared with the engine's report.
//!
//! Invariant: every row that was held is settled once: with its count, or without it when that takes too long or never
//! comes. A count takes the place of an estimate, and of what the engine reported where its route says so; then the
//! exchange's metrics, log line, limits and budgets have what its row has.
//! Not here: counting (`counter`), writing rows (the host), the alarm's arithmetic (`tokens::drift`).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SendError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use policy::counting::Uncounted;
use policy::record::{Count as Billed, Sink, Tokens};
use tokens::drift::Tolerance;
use tokens::{Certainty, Count};

use crate::metrics::{Direction, DriftMetrics, Missed};

/// How long a row waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a thread looks for something to do. Waking it would cost the worker a system call.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A count, or why there is none; `None` where nothing was to be counted.
pub(crate) type Found = Option<Result<Count, Missed>>;

/// How the host settles a row: with its counts, or without any where they did not come in time.
pub type Settle<R> = Box<dyn FnMut(R, Option<Counts>) + Send>;

/// What an exchange came to by the gate's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tokens of the prompt, where they could be counted.
    pub prompt: Option<u64>,
    /// Tokens of the output.
    pub completion: Option<u64>,
    /// What the exchange is charged now, where that was left to the count.
    pub billed: Option<Tokens>,
}

/// How far reports may lie from counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerances {
    exact: Tolerance,
    overhead: Tolerance,
    output: Tolerance,
}

impl Tolerances {
    /// The defaults, but where the configuration says how many in a thousand.
    pub(crate) fn new(prompt_per_mille: Option<u64>, output_per_mille: Option<u64>) -> Self {
        let set = |tolerance: Tolerance, per_mille: Option<u64>| Tolerance {
            per_mille: per_mille.unwrap_or(tolerance.per_mille),
            ..tolerance
        };
        Self {
            exact: set(Tolerance::EXACT, prompt_per_mille),
            overhead: set(Tolerance::OVERHEAD, prompt_per_mille),
            output: set(Tolerance::OUTPUT, output_per_mille),
        }
    }

    const fn of(&self, direction: Direction, count: Count) -> Tolerance {
        match (direction, count.certainty) {
            (Direction::Output, _) => self.output,
            (Direction::Prompt, Certainty::Exact) => self.exact,
            (Direction::Prompt, Certainty::Approximate(_)) => self.overhead,
        }
    }
}

/// What the reconciler is told.
pub(crate) enum ReconcileEvent<R> {
    /// A row that this exchange's count belongs to. It comes before the count.
    Held(u64, R),
    Counted(Box<Counted>),
}

/// Hands the reconciler rows that wait for their counts.
#[derive(Debug)]
pub struct RowSender<R>(pub(crate) Sender<ReconcileEvent<R>>);

impl<R> RowSender<R> {
    /// Holds a row until the exchange with this tally is counted, which has not been said yet.
    ///
    /// # Errors
    /// The row, where nobody counts any more.
    pub fn hold(&self, tally: u64, row: R) -> Result<(), R> {
        match self.0.send(ReconcileEvent::Held(tally, row)) {
            Err(SendError(ReconcileEvent::Held(_, row))) => Err(row),
            Ok(()) | Err(SendError(ReconcileEvent::Counted(_))) => Ok(()),
        }
    }
}

/// What an exchange came to by our own count.
pub(crate) struct Counted {
    pub(crate) id: u64,
    pub(crate) model: Arc<str>,
    /// What was known without it.
    pub(crate) tokens: Tokens,
    pub(crate) is_whole: bool,
    pub(crate) prompt: Found,
    pub(crate) output: Found,
    /// Its record, where it is told now.
    pub(crate) rest: Option<Box<Uncounted>>,
}

pub(crate) struct Reconciler<R> {
    settle: Settle<R>,
    metrics: Arc<DriftMetrics>,
    tolerances: Tolerances,
    /// Where exchanges are recorded once they are counted.
    sink: SharedSink,
    held: HashMap<u64, R>,
    /// In the order in which they came.
    due: VecDeque<(Instant, u64)>,
}

/// Nobody but a scrape shares it.
pub(crate) type SharedSink = Arc<Mutex<Box<dyn Sink + Send>>>;

impl<R> Reconciler<R> {
    pub(crate) fn new(
        settle: Settle<R>,
        metrics: Arc<DriftMetrics>,
        tolerances: Tolerances,
        sink: SharedSink,
    ) -> Self {
        Self {
            settle,
            metrics,
            tolerances,
            sink,
            held: HashMap::new(),
            due: VecDeque::new(),
        }
    }

    /// Runs until nobody is left that could send anything, or it is over.
    pub(crate) fn run(mut self, events: &Receiver<ReconcileEvent<R>>, is_over: &AtomicBool) {
        loop {
            match events.try_recv() {
                Ok(event) => {
                    let now = Instant::now();
                    self.handle(event, now);
                    self.settle_overdue(now);
                }
                Err(TryRecvError::Empty) if is_over.load(Relaxed) => break,
                Err(TryRecvError::Empty) => {
                    self.sink().tick();
                    self.settle_overdue(Instant::now());
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.settle_overdue(Instant::now() + PATIENCE);
        self.sink().tick();
    }

    fn sink(&self) -> MutexGuard<'_, Box<dyn Sink + Send>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&mut self, event: ReconcileEvent<R>, now: Instant) {
        match event {
            ReconcileEvent::Held(id, row) => {
                self.held.insert(id, row);
                self.due.push_back((now + PATIENCE, id));
            }
            ReconcileEvent::Counted(counted) => self.counted(*counted),
        }
    }

    fn counted(&mut self, mut counted: Counted) {
        let held = self.held.remove(&counted.id);
        let rest = counted.rest.take();
        let own = |found: Found| found.and_then(Result::ok).map(|count| count.tokens);
        let mut counts = Counts {
            prompt: own(counted.prompt),
            completion: own(counted.output),
            billed: None,
        };
        counts.billed = rest.map(|rest| self.charge(*rest, &counts, held.is_none()));
        if let Some(row) = held {
            (self.settle)(row, Some(counts));
        }
        let sides = [
            (Direction::Prompt, counted.prompt, counted.tokens.prompt),
            (Direction::Output, counted.output, counted.tokens.completion),
        ];
        for (direction, found, billed) in sides {
            match found {
                Some(Ok(count)) => {
                    self.metrics.counted(direction, count);
                    if let (Billed::Reported(reported), true) = (billed, counted.is_whole) {
                        let tolerance = self.tolerances.of(direction, count);
                        let sides = (reported, count.tokens);
                        self.metrics
                            .compare(&counted.model, direction, tolerance, sides);
                    }
                }
                Some(Err(missed)) => self.metrics.missed(direction, missed),
                None => {}
            }
        }
    }

    /// Charges an exchange by its count, and tells of it. One whose row was let go has what that has.
    fn charge(&self, mut rest: Uncounted, counts: &Counts, is_gone: bool) -> Tokens {
        let record = &rest.record;
        let tokens = if rest.has_row && is_gone {
            record.tokens
        } else {
            let by = rest.of.snapshot.billed_by(record.route);
            let (prompt, completion) = (counts.prompt, counts.completion);
            by.charged(record.tokens, record.unconfirmed, prompt, completion)
        };
        rest.settle(tokens);
        self.sink().exchange(&rest.of.snapshot, &rest.record);
        tokens
    }

    /// Settles those that have waited long enough.
    fn settle_overdue(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.due.front() {
            let has_waited = due <= now;
            if !has_waited && self.held.contains_key(&id) {
                return;
            }
            self.due.pop_front();
            if let Some(row) = self.held.remove(&id) {
                self.metrics.missed(Direction::Prompt, Missed::Late);
                self.metrics.missed(Direction::Output, Missed::Late);
                (self.settle)(row, None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
