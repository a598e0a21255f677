//! How near a simulated run is to the recorded one.
//!
//! Invariant: errors are relative and signed, `simulated / recorded - 1`, distribution against distribution.
//! Not here: simulating (`replay`).

use std::ops::Range;

use serde::Serialize;

use crate::replay::Replayed;
use crate::trace::{Sample, Times, Trace};

/// Mean and quantiles of one measure, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten are below.
    pub p90: f64,
    /// All but one in a hundred are below.
    pub p99: f64,
}

/// One measure, recorded and simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Of the real engine.
    pub recorded: Distribution,
    /// Of the simulated one.
    pub simulated: Distribution,
}

/// The comparison of one share of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Requests compared.
    pub requests: usize,
    /// Arrival to first token.
    pub ttft: Compared,
    /// For each token after the first.
    pub tpot: Compared,
    /// Arrival to last token.
    pub e2e: Compared,
    /// Mean difference of requests running, second by second; `None` without a recorded series.
    pub running_difference: Option<f64>,
    /// Mean difference of requests waiting.
    pub waiting_difference: Option<f64>,
}

/// Names of the measures, in the order of reports.
pub const MEASURES: [&str; 3] = ["ttft", "tpot", "e2e"];

/// Which requests: a share of them in order of arrival, such as `0.5..1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// From this share on.
    pub from: f64,
    /// Up to this one.
    pub to: f64,
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let says =
            || format!("{text}: needs two shares from 0 to 1, the first less, such as 0.5..1");
        let (from, to) = text.split_once("..").ok_or_else(says)?;
        let share = Self {
            from: from.trim().parse().map_err(|_| says())?,
            to: to.trim().parse().map_err(|_| says())?,
        };
        let fits = 0.0 <= share.from && share.from < share.to && share.to <= 1.0;
        if fits { Ok(share) } else { Err(says()) }
    }
}

impl Share {
    /// The same as places in a list; at least one, when there is any.
    #[must_use]
    pub fn of(self, len: usize) -> Range<usize> {
        let at = |share: f64| (share * len as f64).round() as usize;
        let from = at(self.from).min(len.saturating_sub(1));
        from..at(self.to).max(from + 1).min(len)
    }
}

impl Distribution {
    /// Of these values; quantiles lie on a line between the two next to them. `None` of nothing.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let place = q * (values.len() - 1) as f64;
            let (low, high) = (
                values[place.floor() as usize],
                values[place.ceil() as usize],
            );
            low + (high - low) * place.fract()
        };
        (!values.is_empty()).then(|| Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        })
    }

    /// Names and values, in the order of reports.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 4] {
        [
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p99", self.p99),
        ]
    }
}

impl Compared {
    /// Relative errors by the names of [`Distribution::parts`].
    #[must_use]
    pub fn errors(&self) -> [(&'static str, f64); 4] {
        let mut errors = self.simulated.parts();
        for ((_, value), (_, recorded)) in errors.iter_mut().zip(self.recorded.parts()) {
            *value = if *value == recorded {
                0.0
            } else {
                *value / recorded - 1.0
            };
        }
        errors
    }
}

impl Score {
    /// Compares a share of the requests. `None` when no request in it has more than one token.
    #[must_use]
    pub fn of(trace: &Trace, replayed: &Replayed, share: Share) -> Option<Self> {
        let range = share.of(trace.requests.len());
        let recorded = trace.requests.get(range.clone())?;
        let simulated = replayed.requests.get(range)?;
        let compare = |measure: &dyn Fn(&Times, u32) -> Option<f64>| {
            let real = recorded
                .iter()
                .filter_map(|r| measure(&r.times, r.output_tokens));
            let ours = simulated
                .iter()
                .zip(recorded)
                .filter_map(|(t, r)| measure(t, r.output_tokens));
            Some(Compared {
                recorded: Distribution::of(real.collect())?,
                simulated: Distribution::of(ours.collect())?,
            })
        };
        Some(Self {
            requests: recorded.len(),
            ttft: compare(&|times, _| Some(times.ttft()))?,
            tpot: compare(&|times, output| times.tpot(output))?,
            e2e: compare(&|times, _| Some(times.e2e()))?,
            running_difference: difference(&trace.timeseries, &replayed.timeseries, |s| s.running),
            waiting_difference: difference(&trace.timeseries, &replayed.timeseries, |s| s.waiting),
        })
    }

    /// The three measures by name.
    #[must_use]
    pub fn measures(&self) -> [(&'static str, &Compared); 3] {
        [
            ("ttft", &self.ttft),
            ("tpot", &self.tpot),
            ("e2e", &self.e2e),
        ]
    }
}

fn difference(recorded: &[Sample], simulated: &[Sample], value: fn(&Sample) -> f64) -> Option<f64> {
    let apart = recorded
        .iter()
        .zip(simulated)
        .map(|(a, b)| (value(a) - value(b)).abs());
    let n = recorded.len().min(simulated.len());
    (n > 0).then(|| apart.sum::<f64>() / n as f64)
}

#[cfg(test)]
mod tests;
