//! What ran between two moments of a request, and how long that took in the recording.
//!
//! Invariant: a window's loads are from the simulation, its duration from the recording less the time in which the
//! simulated engine had nothing to do.
//! Not here: solving for costs (`solve`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use super::{Line, PARAMETERS};
use crate::cost::Experts;
use crate::replay::Replayed;
use crate::trace::Trace;
use crate::virtual_time::Iteration;

/// Sums over steps: their number (as far as they read the weights), those that read prompts, tokens read, pairs, sequences that generate, tokens attended to.
pub(super) type Features = [f64; PARAMETERS];

/// One equation: these loads took so many seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) features: Features,
    pub(super) seconds: f64,
}

impl Window {
    /// How much it counts, 0 to 1, where its length has this relative error. Besides, schedules may be a step apart where
    /// it begins and ends, so that a window of few steps tells little.
    pub(super) fn weight(&self, relative_error: f64) -> f64 {
        let [steps, ..] = self.features;
        relative_error / (relative_error + 1.0 / steps.max(1.0))
    }
}

/// Every step of a run, summed up as it goes, for each of the engines that run steps of their own.
pub(super) struct Log {
    experts: Option<Experts>,
    /// By the first rank of those that step together.
    engines: BTreeMap<usize, Steps>,
    /// Where each request ran, by its number.
    places: Vec<usize>,
}

#[derive(Default)]
struct Steps {
    begins: Vec<Duration>,
    ends: Vec<Duration>,
    /// Loads of all steps up to this one.
    sums: Vec<Features>,
    /// Seconds without a step up to this one.
    idle: Vec<f64>,
    last_end: Duration,
    /// Sequences that generated.
    decodes: Vec<u32>,
}

impl Log {
    pub(super) fn new(experts: Option<Experts>) -> Self {
        Self {
            experts,
            engines: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    pub(super) fn record(&mut self, iteration: &Iteration) {
        for admitted in &iteration.admitted {
            let number = admitted.id.0 as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, 0);
            }
            self.places[number] = iteration.rank;
        }
        let experts = self.experts.as_ref();
        let read = experts.map_or(1.0, |experts| experts.weights_read(iteration.load.routed));
        self.engines
            .entry(iteration.rank)
            .or_default()
            .record(iteration, read);
    }

    /// What ran in all steps of all engines.
    pub(super) fn sums(&self) -> Features {
        let mut sums = Features::default();
        for steps in self.engines.values() {
            for (sum, add) in sums
                .iter_mut()
                .zip(steps.sums.last().copied().unwrap_or_default())
            {
                *sum += add;
            }
        }
        sums
    }

    /// The share of all time that each of these costs makes.
    pub(super) fn parts(&self, line: &Line) -> Line {
        let mut parts = *line;
        parts
            .iter_mut()
            .zip(self.sums())
            .for_each(|(part, sum)| *part *= sum);
        let whole: f64 = parts.iter().sum();
        parts.map(|part| part / whole.max(f64::MIN_POSITIVE))
    }

    /// Greatest number of sequences that generated in a step of any engine between these moments.
    pub(super) fn most_decodes(&self, from: Duration, to: Duration) -> u32 {
        let engines = self.engines.values();
        let steps = engines.flat_map(|steps| steps.ends.iter().zip(&steps.decodes));
        let then = steps.filter(|(end, _)| (from..=to).contains(*end));
        then.map(|(_, &decodes)| decodes).max().unwrap_or(0)
    }

    /// Three for each request: arrival to first token, of that from the first step on, first to last token.
    pub(super) fn windows(
        &self,
        trace: &Trace,
        replayed: &Replayed,
        range: Range<usize>,
    ) -> Vec<Window> {
        let mut windows = Vec::new();
        for number in range {
            let (Some(recorded), Some(simulated)) =
                (trace.requests.get(number), replayed.requests.get(number))
            else {
                continue;
            };
            let place = self
                .places
                .get(number)
                .and_then(|place| self.engines.get(place));
            let Some(steps) = place else { continue };
            let [arrival, scheduled, first, last] = [
                simulated.arrival,
                simulated.scheduled,
                simulated.first,
                simulated.last,
            ]
            .map(|at| steps.until(at));
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
            let times = &recorded.times;
            add(&arrival, &first, times.ttft());
            add(&scheduled, &first, times.prefill());
            add(&first, &last, times.e2e() - times.ttft());
        }
        windows
    }
}

impl Steps {
    /// A step that read this share of the weights.
    fn record(&mut self, iteration: &Iteration, read: f64) {
        let load = iteration.load;
        self.decodes.push(load.decodes);
        let features = [
            read,
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
        self.begins.push(iteration.began);
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
        let (Some(&began), Some(&end), Some(after)) = (
            self.begins.get(next),
            self.ends.get(next),
            self.sums.get(next),
        ) else {
            return (before, idle);
        };
        let waited = at.min(began).saturating_sub(from).as_secs_f64();
        let gone = at.saturating_sub(began).as_secs_f64()
            / end.saturating_sub(began).as_secs_f64().max(1e-9);
        let mut sums = before;
        for (sum, after) in sums.iter_mut().zip(after) {
            *sum += (after - *sum) * gone.min(1.0);
        }
        (sums, idle + waited)
    }
}
