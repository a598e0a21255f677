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
use tokens::drift::{Change, Drift, Tolerance};
use tokens::{Certainty, Count};

/// Models and directions that are told apart; any more are `other`.
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
}

impl Missed {
    /// Among [`RESULTS`].
    const fn place(self) -> usize {
        match self {
            Self::Busy => 2,
            Self::Long => 3,
            Self::Unreadable => 4,
            Self::Hidden => 5,
            Self::Late => 6,
        }
    }

    /// The word for it, in metrics and rows.
    pub(crate) fn as_str(self) -> &'static str {
        RESULTS[self.place()]
    }
}

/// Why a row that was let go has no count.
pub const LATE: &str = RESULTS[6];

/// Sums since the start.
#[derive(Debug, Default)]
pub struct DriftMetrics {
    series: Mutex<BTreeMap<(Arc<str>, Direction), Series>>,
    /// By whose count the route is billed by, and direction.
    results: [[[AtomicU64; RESULTS.len()]; 2]; 2],
    busy_nanos: AtomicU64,
    held_back: AtomicU64,
}

/// One model in one direction.
#[derive(Debug, Clone)]
pub struct Series {
    /// What was compared.
    pub drift: Drift,
    /// How often the alarm went off.
    pub alarms: u64,
}

/// What can become of an exchange's tokens in one direction.
pub const RESULTS: [&str; 7] = [
    "exact",
    "approximate",
    policy::record::BUSY,
    "too_long",
    "unreadable",
    "hidden",
    "late",
];

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
        self.add(by, direction, missed.place());
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
    pub(crate) fn compare(
        &self,
        model: &Arc<str>,
        direction: Direction,
        tolerance: Tolerance,
        (reported, counted): (u64, u64),
    ) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = all.len() < SERIES_MAX || all.contains_key(&(Arc::clone(model), direction));
        let model = if has_room {
            Arc::clone(model)
        } else {
            Arc::from("other")
        };
        let series = all
            .entry((Arc::clone(&model), direction))
            .or_insert_with(|| Series {
                drift: Drift::new(tolerance),
                alarms: 0,
            });
        match series.drift.observe_within(tolerance, reported, counted) {
            Change::None => {}
            Change::Raised => {
                series.alarms += 1;
                let ((reported, counted), (exchanges, outside)) =
                    (series.drift.tokens(), series.drift.exchanges());
                tracing::warn!(
                    model = &*model,
                    direction = direction.as_str(),
                    reported,
                    counted,
                    exchanges,
                    outside,
                    "the engine's tokens are not those that the gate counts: one of the two has the wrong tokenizer or template, or the engine's usage is wrong"
                );
            }
            Change::Cleared => tracing::info!(
                model = &*model,
                direction = direction.as_str(),
                "the engine's tokens are again those that the gate counts"
            ),
        }
    }

    /// Every model and direction that was compared.
    #[must_use]
    pub fn series(&self) -> BTreeMap<(Arc<str>, Direction), Series> {
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
