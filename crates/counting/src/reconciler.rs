//! Where a row waits for its count, and where the gate's count is compared with the engine's report.
//!
//! Invariant: every row that was held is settled once: with its count, or without it when that takes too long or never
//! comes. A count takes the place of an estimate, and of what the engine reported where its route says so; then the
//! exchange's metrics, log line, limits and budgets have what its row has.
//! Not here: counting (`counter`), writing rows (the host), the alarm's arithmetic (`tokens::drift`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use std::sync::mpsc::{Receiver, SendError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use policy::counting::Uncounted;
use policy::fast_hash::Mix;
use policy::price::Charge;
use policy::record::{Count as Billed, Sink, Tokens};
use tokens::drift::Tolerance;
use tokens::{Certainty, Count, Doubt, Shape, Uncountable};

use crate::bell::{Bell, SLEEP};
use crate::calibrations::{Calibrations, CountedModel, Prompted};
use crate::exchange_id::{billed_by, has_output};
use crate::memory::Permit;
use crate::metrics::{Direction, DriftMetrics, Missed};

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
    /// Why the prompt's count is not exact.
    pub prompt_doubt: Option<&'static str>,
    /// Why the prompt has no count, where it should have one.
    pub prompt_uncounted: Option<&'static str>,
    /// The same of the output.
    pub completion_uncounted: Option<&'static str>,
    /// What the exchange is charged now, and what that costs, where it was left to the count.
    pub billed: Option<(Tokens, Option<Charge>)>,
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
            // The alarm hears of the latter once their features agreed: then the engine counts the same.
            (
                Direction::Prompt,
                Certainty::Exact | Certainty::Approximate(Doubt::TokenizerSettings),
            ) => self.exact,
            (Direction::Prompt, Certainty::Approximate(_)) => self.overhead,
        }
    }
}

impl Witnesses {
    /// Puts in place of what the prompt's count says of itself what the engine's counts of such prompts say of it.
    fn judge(&self, counted: &mut Counted) {
        match &mut counted.prompt {
            Some(Ok(count)) => {
                let reported = match counted.tokens.prompt {
                    // A body that was counted whole holds no such prompt: nobody believes it.
                    Billed::Reported(reported) if !counted.tokens.is_beyond_body => Some(reported),
                    _ => None,
                };
                let prompt = Prompted {
                    count: *count,
                    shape: counted.shape,
                    reported,
                    is_whole: counted.is_whole,
                    tolerance: self.tolerances.of(Direction::Prompt, *count),
                };
                count.certainty = self.calibrations.take(&counted.of, prompt, unix_s());
                self.metrics.read(&counted.of.model);
            }
            Some(Err(Missed::Unreadable)) => {
                if let Some(why) = &counted.unreadable {
                    self.metrics.unread(&counted.of.model, why.as_str());
                }
            }
            Some(Err(failed @ Missed::Failed)) => {
                self.metrics.unread(&counted.of.model, failed.as_str());
            }
            Some(Err(_)) | None => {}
        }
    }
}

fn unix_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}

/// Why a count is not exact, in a word.
fn doubt(count: Count) -> Option<&'static str> {
    match count.certainty {
        Certainty::Exact => None,
        Certainty::Approximate(doubt) => Some(doubt.as_str()),
    }
}

/// What the reconciler is told.
pub(crate) enum ReconcileEvent<R> {
    /// A row that this exchange's count belongs to. It comes before the count.
    Held(u64, R),
    Counted(Box<Counted>),
}

/// The way to the reconciler. Events wait there until it is woken, or looks by itself within a second.
#[derive(Debug)]
pub(crate) struct ToReconciler<R> {
    sender: Sender<ReconcileEvent<R>>,
    bell: Arc<Bell>,
}

/// What the reconciler hears.
#[derive(Debug)]
pub(crate) struct Inbox<R> {
    events: Receiver<ReconcileEvent<R>>,
    bell: Arc<Bell>,
}

/// The way to a reconciler, and its end.
pub(crate) fn inbox<R>() -> (ToReconciler<R>, Inbox<R>) {
    let (sender, events) = channel();
    let bell = Arc::new(Bell::new(1));
    let to = ToReconciler {
        sender,
        bell: Arc::clone(&bell),
    };
    (to, Inbox { events, bell })
}

#[cfg(test)]
impl<R> Inbox<R> {
    /// The next exchange that was counted.
    pub(crate) fn next_count(&self) -> Option<Box<Counted>> {
        self.events.try_iter().find_map(|event| match event {
            ReconcileEvent::Counted(counted) => Some(counted),
            ReconcileEvent::Held(..) => None,
        })
    }
}

impl<R> Clone for ToReconciler<R> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            bell: Arc::clone(&self.bell),
        }
    }
}

impl<R> ToReconciler<R> {
    /// Without a reconciler nobody waits for it.
    pub(crate) fn send(&self, event: ReconcileEvent<R>) {
        let _gone = self.sender.send(event);
    }

    /// There is something to do for it.
    pub(crate) fn wake(&self) {
        self.bell.wake(0);
    }

    /// Something that wakes it and keeps nobody waiting for more events.
    pub(crate) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }
}

/// Hands the reconciler rows that wait for their counts.
#[derive(Debug)]
pub struct RowSender<R>(pub(crate) ToReconciler<R>);

impl<R> RowSender<R> {
    /// Holds a row until the exchange with this tally is counted, which has not been said yet.
    ///
    /// # Errors
    /// The row, where nobody counts any more.
    pub fn hold(&self, tally: u64, row: R) -> Result<(), R> {
        match self.0.sender.send(ReconcileEvent::Held(tally, row)) {
            Err(SendError(ReconcileEvent::Held(_, row))) => Err(row),
            Ok(()) | Err(SendError(ReconcileEvent::Counted(_))) => Ok(()),
        }
    }
}

/// What an exchange came to by our own count.
pub(crate) struct Counted {
    pub(crate) id: u64,
    /// Whose count it is.
    pub(crate) of: CountedModel,
    /// What the prompt is made of.
    pub(crate) shape: Shape,
    /// Why it could not be read.
    pub(crate) unreadable: Option<Box<Uncountable>>,
    /// What was known without it.
    pub(crate) tokens: Tokens,
    pub(crate) is_whole: bool,
    pub(crate) prompt: Found,
    pub(crate) output: Found,
    /// Its record, where it is told now.
    pub(crate) rest: Option<Box<Uncounted>>,
    /// Its room in the queue, held until all of it is settled: who sees none taken sees everything settled.
    pub(crate) permits: Vec<Permit>,
}

/// What reports are held against, and with what it is told.
pub(crate) struct Witnesses {
    pub(crate) metrics: Arc<DriftMetrics>,
    pub(crate) calibrations: Arc<Calibrations>,
    pub(crate) tolerances: Tolerances,
}

pub(crate) struct Reconciler<R> {
    settle: Settle<R>,
    witnesses: Witnesses,
    /// How long a row waits.
    patience: Duration,
    /// Where exchanges are recorded once they are counted.
    sink: SharedSink,
    held: HashMap<u64, R, Mix>,
    /// In the order in which they came.
    due: VecDeque<(Instant, u64)>,
    /// Those that were let go and whose count is still to come.
    late: HashSet<u64, Mix>,
}

/// Events between two looks for rows that have waited long enough.
const EVENTS_AT_ONCE: usize = 4096;
/// Exchanges whose row was let go are remembered up to so many: a count that comes after that is told as well.
const MOST_LATE: usize = 1 << 20;

/// Nobody but a scrape shares it.
pub(crate) type SharedSink = Arc<Mutex<Box<dyn Sink + Send>>>;

impl<R> Reconciler<R> {
    pub(crate) fn new(
        settle: Settle<R>,
        witnesses: Witnesses,
        patience: Duration,
        sink: SharedSink,
    ) -> Self {
        Self {
            settle,
            witnesses,
            patience,
            sink,
            held: HashMap::default(),
            due: VecDeque::new(),
            late: HashSet::default(),
        }
    }

    /// Runs until nobody is left that could send anything, or it is over and what was sent until then is handled. It has
    /// to be woken for that.
    pub(crate) fn run(mut self, inbox: &Inbox<R>, is_over: &AtomicBool) {
        let Inbox { events, bell } = inbox;
        bell.join(0);
        loop {
            let now = Instant::now();
            // Before the events are read, so that none is missed that was there when it was over.
            let is_over = is_over.load(Acquire);
            let mut is_left = false;
            let mut has_more = true;
            for _ in 0..EVENTS_AT_ONCE {
                match events.try_recv() {
                    Ok(event) => self.handle(event, now),
                    Err(none) => {
                        is_left = none == TryRecvError::Disconnected;
                        has_more = false;
                        break;
                    }
                }
            }
            self.settle_overdue(now);
            self.sink().tick();
            if is_left || (is_over && !has_more) {
                break;
            }
            if !has_more {
                thread::park_timeout(SLEEP);
            }
        }
        self.settle_overdue(Instant::now() + self.patience);
        self.sink().tick();
    }

    fn sink(&self) -> MutexGuard<'_, Box<dyn Sink + Send>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&mut self, event: ReconcileEvent<R>, now: Instant) {
        match event {
            ReconcileEvent::Held(id, row) => {
                self.held.insert(id, row);
                self.due.push_back((now + self.patience, id));
            }
            ReconcileEvent::Counted(counted) => self.counted(*counted),
        }
    }

    fn counted(&mut self, mut counted: Counted) {
        let held = self.held.remove(&counted.id);
        let by = billed_by(counted.id);
        let rest = counted.rest.take();
        self.witnesses.judge(&mut counted);
        let own = |found: Found| found.and_then(Result::ok).map(|count| count.tokens);
        let why = |found: Found| found.and_then(Result::err).map(Missed::as_str);
        let mut counts = Counts {
            prompt: own(counted.prompt),
            completion: own(counted.output),
            prompt_doubt: counted.prompt.and_then(Result::ok).and_then(doubt),
            prompt_uncounted: why(counted.prompt),
            completion_uncounted: why(counted.output),
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
        // What became of it was told when its row was let go.
        let is_told = self.late.remove(&counted.id);
        for (direction, found, billed) in sides {
            match found {
                Some(Ok(count)) => {
                    if !is_told {
                        self.witnesses.metrics.counted(by, direction, count);
                    }
                    // Prompts have been compared already.
                    if direction == Direction::Output
                        && let (Billed::Reported(reported), true) = (billed, counted.is_whole)
                    {
                        let witnesses = &self.witnesses;
                        let tolerance = witnesses.tolerances.of(direction, count);
                        let sides = (reported, count.tokens);
                        let of = counted.of.compared(direction);
                        witnesses.metrics.compare(of, tolerance, sides);
                    }
                }
                Some(Err(missed)) if !is_told => {
                    self.witnesses.metrics.missed(by, direction, missed);
                }
                Some(Err(_)) | None => {}
            }
        }
        drop(counted.permits);
    }

    /// Charges an exchange by its count, and tells of it. One whose row was let go has what that has.
    fn charge(
        &self,
        mut rest: Uncounted,
        counts: &Counts,
        is_gone: bool,
    ) -> (Tokens, Option<Charge>) {
        let record = &rest.record;
        let tokens = if rest.has_row && is_gone {
            record.tokens
        } else {
            let by = rest.of.snapshot.billed_by(record.route);
            let (prompt, completion) = (counts.prompt, counts.completion);
            let (tokens, unconfirmed) = (record.tokens, record.unconfirmed);
            rest.record.prompt_doubt = counts.prompt_doubt.unwrap_or_default();
            by.charged(tokens, unconfirmed, prompt, completion)
        };
        rest.settle(tokens);
        self.sink().exchange(&rest.of.snapshot, &rest.record);
        (tokens, rest.record.charge)
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
                let directions = Direction::ALL.into_iter();
                for direction in directions.filter(|it| *it == Direction::Prompt || has_output(id))
                {
                    let metrics = &self.witnesses.metrics;
                    metrics.missed(billed_by(id), direction, Missed::Late);
                }
                if self.late.len() < MOST_LATE {
                    self.late.insert(id);
                }
                (self.settle)(row, None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
