//! Step costs from a recorded run.
//!
//! A recording says when requests got their first step, their first and their last token, not how long steps took. But
//! the time between two such moments is the sum of the steps between them, and what ran in those the simulated
//! scheduler knows: so the costs follow from a regression of recorded times on simulated loads. Better costs give a
//! better schedule, so it is done again from there a few times. Then the costs are moved, each by small factors and all
//! at random, as long as the simulated run gets nearer to the recorded one. What the recording cannot tell, the model's and the GPU's own
//! numbers do (`prior`). KV blocks that nobody reported are searched for (`capacity`).
//! Invariant: only the times of the requests in the share count, for costs, blocks and clocks alike; of the others,
//! arrivals and lengths alone are used. The same recording gives the same costs.
//! Not here: prefix caching (a recording does not say which prompts are alike), the frontend's own time.

mod capacity;
mod null;
mod prior;
mod solve;
mod window;

pub use capacity::Unsure;
pub use null::null;

use std::ops::Range;

use crate::bounds::Bounds;
use crate::cost::{DecodeCost, Experts, PrefillCost, StepCost};
use crate::replay::{BlockSource, ReplayError, Replayed, Setup, replay};
use crate::score::{MEASURES, Share};
use crate::trace::Trace;
use prior::Prior;
use window::Log;

/// Rounds of simulating and fitting a line to it.
const ROUNDS: usize = 10;

/// Relative error that a regression takes every window to have. The greater it is, the more count windows of few steps,
/// whose ends are off by up to a step besides. Chosen on recordings, as the tries below.
const RELATIVE_ERROR: f64 = 0.25;
/// Those that a search tries.
const RELATIVE_ERRORS: [f64; 3] = [0.05, RELATIVE_ERROR, 1.0];
/// How far a round goes towards what its regression found: all the way, the schedule would swing.
const DAMPING: f64 = 0.6;
/// Searches, each from the nearest line of the one before, as long as the distance falls below this share; and rounds of
/// regression in each but the first.
const SEARCHES: usize = 4;
const ENOUGH: f64 = 0.97;
const MORE_ROUNDS: usize = 4;
/// The least share of all time that a cost is taken to make, before it is moved by factors.
const LEAST_PART: f64 = 1e-3;

/// A fit farther from the recording than this has not found the engine.
pub const FARTHEST: f64 = 0.15;

/// Costs that were found.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The costs.
    pub cost: StepCost,
    /// The engines: with the KV blocks that were found, where nobody reported them.
    pub setup: Setup,
    /// Set where the share does not say how many KV blocks there were, and the rest of the recording depends on it.
    pub unsure_blocks: Option<Unsure>,
    /// How far the simulated run is from the recorded one.
    pub distance: Distance,
    /// The same of the best constant step time, which knows nothing of what runs in a step.
    pub null_distance: Distance,
    /// What the share of the recording has seen.
    pub bounds: Bounds,
    /// Whether the model's own numbers were known and kept the costs where the recording is silent.
    pub has_prior: bool,
    /// Runs that were simulated for it.
    pub runs: usize,
}

/// How far a simulated run is from a recorded one over some requests, as shares of the recorded means of TTFT, TPOT
/// and E2E ([`MEASURES`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distance {
    /// Difference of the means, with its sign: positive where the simulation is slower.
    pub of_means: [f64; MEASURES.len()],
    /// Mean of the differences.
    pub of_each: [f64; MEASURES.len()],
    /// What a fit makes small: the above and, where it is recorded, how long requests waited for their first step.
    pub total: f64,
}

impl Distance {
    /// The greatest of these differences. That of each TTFT counts by two thirds: of short ones, chance is a great part.
    #[must_use]
    pub fn worst(&self) -> f64 {
        let [ttft, tpot, e2e] = self.of_each;
        let all = self.of_means.into_iter().chain([ttft / 1.5, tpot, e2e]);
        all.fold(0.0, |worst, apart| worst.max(apart.abs()))
    }
}

/// The parameters of a line, in the order of a load's figures (`window::Features`).
type Line = [f64; PARAMETERS];
const PARAMETERS: usize = 6;

/// A recording, the requests whose times count, and what is known beforehand.
struct Problem<'a> {
    trace: &'a Trace,
    range: Range<usize>,
    prior: Option<Prior>,
    experts: Option<Experts>,
    runs: usize,
    /// Hears how many runs were simulated.
    watch: &'a mut dyn FnMut(usize),
}

/// Finds the costs by which these engines come nearest to the share of the recording, and KV blocks where nothing
/// but `Ample` is known of them. `watch` hears after each simulated run how many there were.
///
/// # Errors
/// When a request of the recording could never run on these engines.
pub fn fit(
    trace: &Trace,
    setup: &Setup,
    share: Share,
    watch: &mut dyn FnMut(usize),
) -> Result<Fitted, ReplayError> {
    let range = share.of(trace.requests.len());
    let trace = &trace.aligned(range.clone());
    let mut problem = Problem {
        trace,
        prior: Prior::of(trace, range.clone()),
        experts: trace.meta.known_model().and_then(|model| model.experts()),
        range: range.clone(),
        runs: 0,
        watch,
    };
    let mut line = problem
        .prior
        .map_or_else(|| first_guess(trace, range.clone()), |prior| prior.line);
    let (mut setup, mut unsure_blocks) = (*setup, None);
    if setup.blocks.source == BlockSource::Ample {
        let found = capacity::find(&mut problem, &setup, line)?;
        (setup, line, unsure_blocks) = (found.setup, found.line, found.unsure);
    } else {
        line = problem.search(&setup, line)?;
    }
    let cost = problem.cost(&line);
    let mut steps = problem.log();
    let replayed = replay(trace, &setup, cost.clone(), |iteration| {
        steps.record(iteration);
    })?;
    let null_cost = null(trace, &setup, |i| range.contains(&i))?;
    let null_run = replay(trace, &setup, null_cost, |_| {})?;
    Ok(Fitted {
        cost,
        setup,
        unsure_blocks,
        bounds: bounds(trace, &replayed, range.clone(), &steps),
        distance: distance(trace, &replayed, range.clone()),
        null_distance: distance(trace, &null_run, range),
        has_prior: problem.prior.is_some(),
        runs: problem.runs,
    })
}

impl Problem<'_> {
    /// A line as costs: with experts where the model has them.
    fn cost(&self, line: &Line) -> StepCost {
        StepCost {
            experts: self.experts,
            ..cost_of(line)
        }
    }

    fn log(&self) -> Log {
        Log::new(self.experts)
    }

    /// How far from the recording these costs are: the run's distance and that from what is known beforehand.
    fn far(&mut self, setup: &Setup, line: &Line) -> Result<f64, ReplayError> {
        let replayed = replay(self.trace, setup, self.cost(line), |_| {})?;
        self.ran();
        Ok(self.apart(&replayed, line))
    }

    /// The same of a run that is there already.
    fn apart(&self, replayed: &Replayed, line: &Line) -> f64 {
        let prior = self.prior.as_ref().map_or(0.0, |prior| prior.penalty(line));
        distance(self.trace, replayed, self.range.clone()).total + prior
    }

    fn ran(&mut self) {
        self.runs += 1;
        (self.watch)(self.runs);
    }

    /// The nearest line that so many rounds of simulating and regression come by, and how far it is.
    fn regress(
        &mut self,
        setup: &Setup,
        line: Line,
        rounds: usize,
    ) -> Result<(f64, Line), ReplayError> {
        self.regress_with(setup, line, rounds, RELATIVE_ERROR)
    }

    fn regress_with(
        &mut self,
        setup: &Setup,
        mut line: Line,
        rounds: usize,
        relative_error: f64,
    ) -> Result<(f64, Line), ReplayError> {
        let mut best = (f64::INFINITY, line);
        for _ in 0..rounds {
            let mut log = self.log();
            let replayed = replay(self.trace, setup, self.cost(&line), |iteration| {
                log.record(iteration);
            })?;
            self.ran();
            let apart = self.apart(&replayed, &line);
            if apart < best.0 {
                best = (apart, line);
            }
            let windows = log.windows(self.trace, &replayed, self.range.clone());
            let next = solve::least_squares(&windows, relative_error, self.prior.as_ref());
            for (old, new) in line.iter_mut().zip(next) {
                *old = (1.0 - DAMPING) * *old + DAMPING * new;
            }
        }
        Ok(best)
    }

    /// The nearest line of all: regressions that trust short windows more or less, from the nearest of which costs are
    /// moved, and regressions from there again.
    fn search(&mut self, setup: &Setup, start: Line) -> Result<Line, ReplayError> {
        let mut best = (f64::INFINITY, start);
        let mut rounds = ROUNDS;
        for _ in 0..SEARCHES {
            let from = best;
            for relative_error in RELATIVE_ERRORS {
                let (far, line) = self.regress_with(setup, best.1, rounds, relative_error)?;
                if far < best.0 {
                    best = (far, line);
                }
            }
            if from.0.is_finite() && best.0 >= from.0 {
                break;
            }
            let line = self.refine(setup, best.1)?;
            best = (self.far(setup, &line)?, line);
            if best.0 >= from.0 * ENOUGH {
                break;
            }
            rounds = MORE_ROUNDS;
        }
        Ok(best.1)
    }

    /// Moves the costs as long as that brings the run nearer.
    fn refine(&mut self, setup: &Setup, start: Line) -> Result<Line, ReplayError> {
        let mut log = self.log();
        replay(self.trace, setup, self.cost(&start), |iteration| {
            log.record(iteration)
        })?;
        let parts = log.parts(&start);
        // A cost of nothing would stay nothing: the least that could matter instead.
        let whole: f64 = start
            .iter()
            .zip(log.sums())
            .map(|(cost, sum)| cost * sum)
            .sum();
        let mut line = start;
        for (cost, sum) in line.iter_mut().zip(log.sums()) {
            *cost = cost.max(LEAST_PART * whole / sum.max(1.0));
        }
        let line = solve::refine(line, |line| self.far(setup, line))?;
        solve::wander(line, parts, |line| self.far(setup, line))
    }
}

/// What these requests were like, and the steps while they were there.
fn bounds(trace: &Trace, replayed: &Replayed, range: Range<usize>, steps: &Log) -> Bounds {
    let requests = trace.requests.get(range.clone()).unwrap_or_default();
    let times = replayed.requests.get(range).unwrap_or_default();
    let lengths = requests.iter().map(|r| r.prompt_tokens + r.output_tokens);
    let from = times.iter().map(|times| times.arrival).min();
    let to = times.iter().map(|times| times.last).max();
    Bounds {
        sequences: steps.most_decodes(from.unwrap_or_default(), to.unwrap_or_default()),
        context: lengths.max().unwrap_or(0),
    }
}

/// Steps of 20 ms at first, or what the fastest request needed for each token, and a tenth of a millisecond for
/// each prompt token.
fn first_guess(trace: &Trace, range: Range<usize>) -> Line {
    let base = least_tpot(trace, range).unwrap_or(0.02);
    [0.7 * base, 0.0, 1e-4, 0.0, 0.003 * base, 0.0]
}

/// What the fastest request needed for each token.
fn least_tpot(trace: &Trace, range: Range<usize>) -> Option<f64> {
    let tpots = trace.requests[range]
        .iter()
        .filter_map(|r| r.times.tpot(r.output_tokens));
    let least = tpots.fold(f64::INFINITY, f64::min);
    (least.is_finite() && least > 0.0).then_some(least)
}

/// Seconds for: a step, a step that reads besides, a token read, a pair, a sequence that generates, a token it
/// attends to.
fn cost_of(line: &Line) -> StepCost {
    let [step, reads, token, pair, sequence, context] = *line;
    StepCost {
        overhead_ms: 0.0,
        prefill: PrefillCost {
            base_ms: (step + reads) * 1e3,
            per_token_us: token * 1e6,
            per_pair_ns: pair * 1e9,
        },
        decode: DecodeCost::Line {
            base_ms: step * 1e3,
            per_sequence_us: sequence * 1e6,
            per_context_token_ns: context * 1e9,
        },
        experts: None,
    }
}

/// How far apart the runs are over these requests.
pub fn distance(
    trace: &Trace,
    replayed: &Replayed,
    which: impl IntoIterator<Item = usize>,
) -> Distance {
    // TTFT, TPOT, E2E; then the two parts of TTFT: until the first step, and from there on.
    let mut sums = [[0.0_f64; 3]; 5];
    for i in which {
        let (Some(recorded), Some(simulated)) = (trace.requests.get(i), replayed.requests.get(i))
        else {
            continue;
        };
        let (real, output) = (&recorded.times, recorded.output_tokens);
        let pairs = [
            Some((real.ttft(), simulated.ttft())),
            real.tpot(output).zip(simulated.tpot(output)),
            Some((real.e2e(), simulated.e2e())),
            Some((real.wait(), simulated.wait())),
            Some((real.prefill(), simulated.prefill())),
        ];
        for (sums, (real, ours)) in sums
            .iter_mut()
            .zip(pairs)
            .filter_map(|(sums, pair)| Some((sums, pair?)))
        {
            for (sum, add) in sums.iter_mut().zip([real, ours, (real - ours).abs()]) {
                *sum += add;
            }
        }
    }
    // A recording in which nothing takes time is infinitely far from any run in which something does.
    let share = |part: f64, whole: f64| if part == 0.0 { 0.0 } else { part / whole };
    let mut distance = Distance::default();
    for (measure, [real, ours, apart]) in sums.iter().enumerate().take(MEASURES.len()) {
        distance.of_means[measure] = share(ours - real, *real);
        distance.of_each[measure] = share(*apart, *real);
        distance.total += distance.of_means[measure].abs() + distance.of_each[measure];
    }
    let [[ttft, ..], _, _, parts @ ..] = sums;
    for [_, _, apart] in parts {
        distance.total += share(apart, ttft) / 2.0;
    }
    distance
}

#[cfg(test)]
mod tests;
