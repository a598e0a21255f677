//! How late a generator was.
//!
//! Invariant: a send that never left counts as late up to the end of the run.
//! Not here: latencies of answers (`load`).

use serde::Serialize;

use super::collector::{NEVER, Send, WITHDRAWN};
use crate::arrivals::Process;

/// All but one in a hundred may lag by this share of the mean gap,
const SHARE_OF_GAP: f64 = 0.1;
/// but is never asked to be below this, in seconds: a timer and a scheduler's turn,
const LEAST_LIMIT_S: f64 = 1e-3;
/// and never allowed above this.
const MOST_LIMIT_S: f64 = 0.1;

/// Moments of sending after those that were intended, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Lag {
    /// The median.
    pub p50_s: f64,
    /// All but one in a hundred are below.
    pub p99_s: f64,
    /// The greatest.
    pub max_s: f64,
    /// How early the earliest was; 0 where none was.
    pub early_s: f64,
    /// More than one send in a hundred beyond this makes the run void.
    pub limit_s: f64,
    /// Sends beyond it, of all that there were.
    pub late: u64,
    /// Those among them that never left.
    pub overdue: u64,
    /// Whether they are more than one in a hundred.
    #[serde(skip)]
    is_void: bool,
}

/// How many sends were late, of all there were: quantiles are of those that are kept, the verdict is of all.
#[derive(Debug, Clone)]
pub(super) struct Lateness {
    limit_ns: u64,
    left: u64,
    late: u64,
    most_ns: u64,
    /// When those that never left were due; as many as there may be under way when a run ends.
    unsent_due_ns: Vec<u64>,
}

impl Lateness {
    pub(super) fn new(process: &Process) -> Self {
        let limit_s = process.rate().map_or(MOST_LIMIT_S, |rate| {
            (SHARE_OF_GAP / rate).clamp(LEAST_LIMIT_S, MOST_LIMIT_S)
        });
        Self {
            limit_ns: (limit_s * 1e9) as u64,
            left: 0,
            late: 0,
            most_ns: 0,
            unsent_due_ns: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, send: &Send) {
        match send.sent_ns {
            WITHDRAWN => {}
            NEVER => self.unsent_due_ns.push(send.due_ns),
            sent_ns => {
                let lag_ns = sent_ns.saturating_sub(send.due_ns);
                self.left += 1;
                self.late += u64::from(lag_ns > self.limit_ns);
                self.most_ns = self.most_ns.max(lag_ns);
            }
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.left += other.left;
        self.late += other.late;
        self.most_ns = self.most_ns.max(other.most_ns);
        self.unsent_due_ns.extend(other.unsent_due_ns);
    }
}

impl Lag {
    pub(super) fn of(kept: &[Send], all: &Lateness, end_ns: u64) -> Self {
        let late_ns = |due_ns: &u64| {
            let late = end_ns.saturating_sub(*due_ns);
            (late > all.limit_ns).then_some(late)
        };
        let overdue: Vec<u64> = all.unsent_due_ns.iter().filter_map(late_ns).collect();
        let of_sent = kept.iter().filter(|send| send.sent_ns < WITHDRAWN);
        let mut lags: Vec<f64> = of_sent
            .map(|send| send.sent_ns as f64 - send.due_ns as f64)
            .chain(overdue.iter().map(|&ns| ns as f64))
            .map(|ns| ns * 1e-9)
            .collect();
        lags.sort_by(f64::total_cmp);
        let at = |q| crate::statistics::quantile(&lags, q).unwrap_or(0.0);
        let overdue = overdue.len() as u64;
        let (late, count) = (all.late + overdue, all.left + overdue);
        Self {
            p50_s: at(0.5),
            p99_s: at(0.99),
            max_s: at(1.0).max(all.most_ns as f64 * 1e-9),
            early_s: at(0.0).min(0.0).abs(),
            limit_s: all.limit_ns as f64 * 1e-9,
            late,
            overdue,
            is_void: late > count / 100,
        }
    }

    pub(super) const fn is_void(&self) -> bool {
        self.is_void
    }
}
