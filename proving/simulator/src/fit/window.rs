//! What ran between two moments of a request, and how long that took in the recording.
//!
//! Invariant: a window's loads are from the simulation, its duration from the recording less the time in which the
//! simulated engine had nothing to do.
//! Not here: solving for costs (`solve`).

use std::ops::Range;
use std::time::Duration;

use super::PARAMETERS;
use crate::replay::Replayed;
use crate::trace::Trace;
use crate::virtual_time::Iteration;

/// Sums over steps: their number, those that read, tokens read, pairs, sequences that generate, tokens attended to.
pub(super) type Features = [f64; PARAMETERS];

/// One equation: these loads took so many seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) features: Features,
    pub(super) seconds: f64,
}

/// Every step of a run, summed up as it goes.
#[derive(Default)]
pub(super) struct Log {
    ends: Vec<Duration>,
    /// Loads of all steps up to this one.
    sums: Vec<Features>,
    /// Seconds without a step up to this one.
    idle: Vec<f64>,
    last_end: Duration,
}

impl Log {
    pub(super) fn record(&mut self, iteration: &Iteration) {
        let load = iteration.load;
        let features = [
            1.0,
            f64::from(u8::from(load.prefills > 0)),
            load.prefill_tokens as f64,
            load.prefill_pairs as f64,
            f64::from(load.decodes),
            load.decode_context as f64,
        ];
        let mut sums = self.sums.last().copied().unwrap_or_default();
        sums.iter_mut()
            .zip(features)
            .for_each(|(sum, feature)| *sum += feature);
        let idle = self.idle.last().copied().unwrap_or_default()
            + iteration.began.saturating_sub(self.last_end).as_secs_f64();
        self.last_end = iteration.at;
        self.ends.push(iteration.at);
        self.sums.push(sums);
        self.idle.push(idle);
    }

    /// Sums up to `at`, with the share of the step that was then under way.
    fn until(&self, at: Duration) -> (Features, f64) {
        let next = self.ends.partition_point(|&end| end <= at);
        let (before, idle, from) = match next.checked_sub(1) {
            Some(last) => (self.sums[last], self.idle[last], self.ends[last]),
            None => (Features::default(), 0.0, Duration::ZERO),
        };
        let (Some(&end), Some(after), Some(&idle_after)) = (
            self.ends.get(next),
            self.sums.get(next),
            self.idle.get(next),
        ) else {
            return (before, idle);
        };
        let gone = (at - from).as_secs_f64() / (end - from).as_secs_f64().max(1e-9);
        let mut sums = before;
        for (sum, after) in sums.iter_mut().zip(after) {
            *sum += (after - *sum) * gone;
        }
        (sums, idle + (idle_after - idle) * gone)
    }

    /// Two for each request: arrival to first token, first to last.
    pub(super) fn windows(
        &self,
        trace: &Trace,
        replayed: &Replayed,
        range: Range<usize>,
    ) -> Vec<Window> {
        let both = trace.requests[range.clone()]
            .iter()
            .zip(&replayed.requests[range]);
        let mut windows = Vec::new();
        for (recorded, simulated) in both {
            let [arrival, first, last] =
                [simulated.arrival, simulated.first, simulated.last].map(|at| self.until(at));
            let mut add = |from: &(Features, f64), to: &(Features, f64), took: f64| {
                let mut features = to.0;
                features
                    .iter_mut()
                    .zip(from.0)
                    .for_each(|(to, from)| *to -= from);
                let seconds = took - (to.1 - from.1);
                if seconds > 0.0 && features[0] > 0.0 {
                    windows.push(Window { features, seconds });
                }
            };
            add(&arrival, &first, recorded.times.ttft());
            add(&first, &last, recorded.times.e2e() - recorded.times.ttft());
        }
        windows
    }
}
