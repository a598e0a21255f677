//! What counting has come to, for metrics and log lines.
//!
//! Invariant: label sets come from the configuration and are at most [`SERIES_MAX`]; workers touch atomics only.
//! Not here: the metrics' names (the host), who compares (`reconciler`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use policy::billing::BilledBy;
use tokens::drift::{Alarm, Change, Drift, Tolerance};
use tokens::{Certainty, Count};

/// Models, backends and directions that are told apart; any more are `other`.
const SERIES_MAX: usize = 1000;

/// Which way tokens go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the engine.
    Prompt,
    /// From the engine to the client.
    Output,
}

/// Why something has no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Missed {
    /// The memory budget had no room for it.
    Busy,
    /// It was longer than the bound.
    Long,
    /// It has no text to count, or none that could be read.
    Unreadable,
    /// The engine reports reasoning that it did not show.
    Hidden,
    /// The count was not there in time.
    Late,
    /// It begins with text of the prompt.
    Echo,
    /// Counting itself failed: it panicked, or its tokenizer is gone or fails on an answer.
    Failed,
}

impl Missed {
    /// All of them, as they are declared.
    const ALL: [Self; 7] = [
        Self::Busy,
        Self::Long,
        Self::Unreadable,
        Self::Hidden,
        Self::Late,
        Self::Echo,
        Self::Failed,
    ];

    /// The word for it, in metrics and rows.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => policy::record::BUSY,
            Self::Long => "too_long",
            Self::Unreadable => "unreadable",
            Self::Hidden => "hidden",
            Self::Late => "late",
            Self::Echo => "echo",
            Self::Failed => "failed",
        }
    }
}

/// Why a row that was let go has no count.
pub const LATE: &str = Missed::Late.as_str();

/// Sums since the start.
#[derive(Debug, Default)]
pub struct DriftMetrics {
    series: Mutex<BTreeMap<Compared, Series>>,
    unread: Mutex<BTreeMap<Arc<str>, Unread>>,
    /// By whose count the route is billed by, and direction.
    results: [[[AtomicU64; RESULTS.len()]; 2]; 2],
    busy_nanos: AtomicU64,
    held_back: AtomicU64,
}

/// What is compared by itself: one engine may report wrong counts while others of the same model report right ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared {
    /// The model.
    pub model: Arc<str>,
    /// The backend whose engines report.
    pub backend: Arc<str>,
    /// Which way tokens go.
    pub direction: Direction,
}

impl Compared {
    fn other(direction: Direction) -> Self {
        let other: Arc<str> = Arc::from("other");
        Self {
            model: Arc::clone(&other),
            backend: other,
            direction,
        }
    }
}

/// One model of one backend in one direction.
#[derive(Debug, Clone)]
pub struct Series {
    /// What was compared.
    pub drift: Drift,
    /// How often the alarm went off.
    pub alarms: u64,
    /// Its engine changed between two times that it was asked, and that is why the alarm is on.
    has_changed: bool,
}

impl Series {
    const fn new(tolerance: Tolerance) -> Self {
        Self {
            drift: Drift::new(tolerance),
            alarms: 0,
            has_changed: false,
        }
    }
}

/// Calls of one model whose prompt has no count because it cannot be read or rendered, or because counting failed.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Calls, and how many of them had no count.
    pub share: Alarm,
    /// Why the first of them was not, in a word.
    pub reason: &'static str,
}

/// What the alarm hears of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing: what differs has another reason, or nothing was exact yet.
    Nothing,
    /// The call.
    Call,
    /// The call, of an engine that makes the same of the probes.
    CallOfKnown,
}

/// Results that are counts.
const COUNTS: [&str; 2] = ["exact", "approximate"];

/// What can become of an exchange's tokens in one direction: a count, or why there is none.
pub const RESULTS: [&str; COUNTS.len() + Missed::ALL.len()] = {
    let mut results = [""; COUNTS.len() + Missed::ALL.len()];
    [results[0], results[1]] = COUNTS;
    let mut nth = 0;
    while nth < Missed::ALL.len() {
        let missed = Missed::ALL[nth];
        results[COUNTS.len() + missed as usize] = missed.as_str();
        nth += 1;
    }
    results
};

impl Direction {
    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "input",
            Self::Output => "output",
        }
    }

    /// Both.
    pub const ALL: [Self; 2] = [Self::Prompt, Self::Output];
}

impl DriftMetrics {
    pub(crate) fn counted(&self, by: BilledBy, direction: Direction, count: Count) {
        let result = match count.certainty {
            Certainty::Exact => 0,
            Certainty::Approximate(_) => 1,
        };
        self.add(by, direction, result);
    }

    pub(crate) fn missed(&self, by: BilledBy, direction: Direction, missed: Missed) {
        self.add(by, direction, COUNTS.len() + missed as usize);
    }

    fn add(&self, by: BilledBy, direction: Direction, result: usize) {
        self.results[by as usize][direction as usize][result].fetch_add(1, Relaxed);
    }

    pub(crate) fn worked(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos, Relaxed);
    }

    pub(crate) fn held_back(&self) {
        self.held_back.fetch_add(1, Relaxed);
    }

    /// Answers that were held back until there was room for their calls, or for as long as they may be.
    #[must_use]
    pub fn answers_held_back(&self) -> u64 {
        self.held_back.load(Relaxed)
    }

    /// Holds what the engine reported against our count.
    pub(crate) fn compare(&self, of: Compared, tolerance: Tolerance, sides: (u64, u64)) {
        self.compare_prompt(of, tolerance, sides, Heard::Call);
    }

    /// The same, where the alarm hears of some calls alone; sums have them all.
    pub(crate) fn compare_prompt(
        &self,
        of: Compared,
        tolerance: Tolerance,
        (reported, counted): (u64, u64),
        heard: Heard,
    ) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = all.len() < SERIES_MAX || all.contains_key(&of);
        let of = if has_room {
            of
        } else {
            Compared::other(of.direction)
        };
        let series = all
            .entry(of.clone())
            .or_insert_with(|| Series::new(tolerance));
        let change = match heard {
            Heard::Nothing => {
                series.drift.note(tolerance, reported, counted);
                Change::None
            }
            Heard::Call | Heard::CallOfKnown => {
                series.drift.observe_within(tolerance, reported, counted)
            }
        };
        match change {
            Change::None => {}
            Change::Raised => {
                series.alarms += 1;
                let ((reported, counted), (exchanges, outside)) =
                    (series.drift.tokens(), series.drift.exchanges());
                let what = match heard {
                    Heard::CallOfKnown => {
                        "the engine reports other counts than it makes: asked for probes since then, it counts as the gate does"
                    }
                    Heard::Call | Heard::Nothing => {
                        "the engine's counts of tokens differ from the gate's: one of the two has the wrong tokenizer or template, or the engine reports wrong usage"
                    }
                };
                tracing::warn!(
                    model = &*of.model,
                    backend = &*of.backend,
                    direction = of.direction.as_str(),
                    reported,
                    counted,
                    exchanges,
                    outside,
                    see = "docs/troubleshooting.md#the-engines-counts-of-tokens-differ-from-the-gates",
                    "{what} ({reported} tokens reported, {counted} counted)"
                );
            }
            Change::Cleared => {
                series.has_changed = false;
                tracing::info!(
                    model = &*of.model,
                    backend = &*of.backend,
                    direction = of.direction.as_str(),
                    "the engine and the gate count tokens alike again"
                );
            }
        }
    }

    /// An engine changed between two times that it was asked: no more has to be seen for the alarm.
    pub(crate) fn changed(&self, backend: &Arc<str>, model: &Arc<str>) {
        self.of_prompts(backend, model, |series| {
            // One that calls raised ends by calls.
            if series.drift.raise() == Change::Raised {
                series.alarms += 1;
                series.has_changed = true;
            }
        });
    }

    /// It is again as it was: an alarm ends that was raised for it.
    pub(crate) fn agrees(&self, backend: &Arc<str>, model: &Arc<str>) {
        self.of_prompts(backend, model, |series| {
            if std::mem::take(&mut series.has_changed) {
                series.drift.clear();
            }
        });
    }

    fn of_prompts(&self, backend: &Arc<str>, model: &Arc<str>, change: impl FnOnce(&mut Series)) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let of = Compared {
            model: Arc::clone(model),
            backend: Arc::clone(backend),
            direction: Direction::Prompt,
        };
        if all.len() < SERIES_MAX || all.contains_key(&of) {
            change(
                all.entry(of)
                    .or_insert_with(|| Series::new(Tolerance::EXACT)),
            );
        }
    }

    /// A prompt was counted of a model of which others are not.
    pub(crate) fn read(&self, model: &Arc<str>) {
        let mut all = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unread) = all.get_mut(model)
            && unread.share.observe(false) == Change::Cleared
        {
            tracing::info!(model = &**model, "calls are counted again");
        }
    }

    /// A prompt has no count, for this reason, which is a label.
    pub(crate) fn unread(&self, model: &Arc<str>, reason: &'static str) {
        let mut all = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SERIES_MAX && !all.contains_key(model) {
            return;
        }
        let unread = all.entry(Arc::clone(model)).or_insert_with(|| Unread {
            share: Alarm::default(),
            reason,
        });
        if unread.share.observe(true) == Change::Raised {
            let (calls, uncounted) = unread.share.exchanges();
            tracing::warn!(
                model = &**model,
                uncounted,
                calls,
                reason = unread.reason,
                see = "docs/troubleshooting.md#calls-are-not-counted",
                "calls are not counted: more than one in seven of the last ones; the reason is that of the first"
            );
        }
    }

    /// Models of which some call had no count because its prompt could not be read, or counting failed.
    #[must_use]
    pub fn unreadable(&self) -> BTreeMap<Arc<str>, Unread> {
        let all = self.unread.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that was compared.
    #[must_use]
    pub fn series(&self) -> BTreeMap<Compared, Series> {
        let all = self.series.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often each of [`RESULTS`] was the result, for exchanges of routes that are billed by this count.
    #[must_use]
    pub fn results(&self, by: BilledBy, direction: Direction) -> [u64; RESULTS.len()] {
        self.results[by as usize][direction as usize]
            .each_ref()
            .map(|n| n.load(Relaxed))
    }

    /// Time spent counting, all threads together.
    #[must_use]
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Relaxed))
    }
}
