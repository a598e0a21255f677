//! How late a generator was.
//!
//! Invariant: a send that never left counts as late up to the end of the run.
//! Not here: latencies of answers (`load`).

use serde::Serialize;

use super::collector::Send;
use crate::arrivals::Process;

/// At the 99th percentile a lag may be this share of the mean gap,
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
    /// A 99th percentile above this makes the run void.
    pub limit_s: f64,
    /// Sends that were due longer than that before the run ended, and never left.
    pub overdue: u64,
}

impl Lag {
    pub(super) fn of(sends: &[Send], end_ns: u64, process: &Process) -> Self {
        let limit_s = process.rate().map_or(MOST_LIMIT_S, |rate| {
            (SHARE_OF_GAP / rate).clamp(LEAST_LIMIT_S, MOST_LIMIT_S)
        });
        let mut overdue = 0;
        let mut lags: Vec<f64> = sends
            .iter()
            .filter_map(|send| {
                if send.sent_ns != u64::MAX {
                    return Some(send.sent_ns as f64 - send.due_ns as f64);
                }
                let late = end_ns.saturating_sub(send.due_ns) as f64;
                let counts = late > limit_s * 1e9;
                overdue += u64::from(counts);
                counts.then_some(late)
            })
            .map(|ns| ns * 1e-9)
            .collect();
        lags.sort_by(f64::total_cmp);
        let at = |q| crate::statistics::quantile(&lags, q).unwrap_or(0.0);
        Self {
            p50_s: at(0.5),
            p99_s: at(0.99),
            max_s: at(1.0).max(0.0),
            early_s: at(0.0).min(0.0).abs(),
            limit_s,
            overdue,
        }
    }

    pub(super) const fn is_void(&self) -> bool {
        self.p99_s > self.limit_s
    }
}
