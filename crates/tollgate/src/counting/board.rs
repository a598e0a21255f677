//! What counting has come to, for metrics and log lines.
//!
//! Invariant: label sets come from the configuration and are at most [`SERIES_MAX`]; workers touch atomics only.
//! Not here: the metrics' names (`admin::extras`), who compares (`desk`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokens::drift::{Change, Drift, Tolerance};
use tokens::{Certainty, Count};

use super::Missed;

/// Models and directions that are told apart; any more are `other`.
const SERIES_MAX: usize = 1000;

/// Which way tokens go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Direction {
    Prompt,
    Output,
}

/// Sums since the start.
#[derive(Default)]
pub(crate) struct Board {
    series: Mutex<BTreeMap<(Arc<str>, Direction), Series>>,
    results: [[AtomicU64; RESULTS.len()]; 2],
    busy_nanos: AtomicU64,
}

/// One model in one direction.
#[derive(Clone)]
pub(crate) struct Series {
    pub(crate) drift: Drift,
    /// How often the alarm went off.
    pub(crate) alarms: u64,
}

/// What can become of an exchange's tokens in one direction.
pub(crate) const RESULTS: [&str; 7] = [
    "exact",
    "near",
    "busy",
    "too_long",
    "unreadable",
    "hidden",
    "late",
];

impl Direction {
    /// The label's value.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "input",
            Self::Output => "output",
        }
    }

    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Prompt, Self::Output];
}

impl Board {
    pub(super) fn counted(&self, direction: Direction, count: Count) {
        let result = match count.certainty {
            Certainty::Exact => 0,
            Certainty::Approximate(_) => 1,
        };
        self.add(direction, result);
    }

    pub(super) fn missed(&self, direction: Direction, missed: Missed) {
        let result = match missed {
            Missed::Busy => 2,
            Missed::Long => 3,
            Missed::Unreadable => 4,
            Missed::Hidden => 5,
            Missed::Late => 6,
        };
        self.add(direction, result);
    }

    fn add(&self, direction: Direction, result: usize) {
        self.results[direction as usize][result].fetch_add(1, Relaxed);
    }

    pub(super) fn worked(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos, Relaxed);
    }

    /// Holds what the engine reported against our count.
    pub(super) fn compare(
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
    pub(crate) fn series(&self) -> BTreeMap<(Arc<str>, Direction), Series> {
        let all = self.series.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often each of [`RESULTS`] was the result.
    pub(crate) fn results(&self, direction: Direction) -> [u64; RESULTS.len()] {
        self.results[direction as usize]
            .each_ref()
            .map(|n| n.load(Relaxed))
    }

    /// Time spent counting, all threads together.
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Relaxed))
    }
}
