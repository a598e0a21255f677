//! Step costs from a recorded run.
//!
//! A recording says when requests got their first and last token, not how long steps took. But the time between two
//! such moments is the sum of the steps between them, and what ran in those the simulated scheduler knows: so the
//! costs follow from a regression of recorded times on simulated loads. Better costs give a better schedule, so it
//! is done again from there a few times. Then the costs are moved by small factors as long as the simulated run gets
//! nearer to the recorded one.
//! Invariant: only the times of the requests in the share count; of the others, arrivals and lengths alone are used.
//! The same recording gives the same costs.
//! Not here: prefix caching (a recording does not say which prompts are alike), the frontend's own time.

mod solve;
mod window;

use crate::cost::{DecodeCost, PrefillCost, StepCost};
use crate::replay::{ReplayError, Replayed, replay};
use crate::scheduler::SchedulerConfig;
use crate::score::Share;
use crate::trace::Trace;

/// Rounds of simulating and fitting a line to it.
const ROUNDS: usize = 10;

/// Costs that were found.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The costs.
    pub cost: StepCost,
    /// Mean relative distance from the recording over the share: see [`distance`].
    pub distance: f64,
    /// Runs that were simulated for it.
    pub runs: usize,
}

/// The parameters of a line, in the order of a load's figures (`window::Features`).
type Line = [f64; PARAMETERS];
const PARAMETERS: usize = 6;

/// Finds the costs by which this engine comes nearest to the share of the recording.
///
/// # Errors
/// When a request of the recording could never run on this engine.
pub fn fit(trace: &Trace, config: SchedulerConfig, share: Share) -> Result<Fitted, ReplayError> {
    let range = share.of(trace.requests.len());
    let mut runs = 0;
    let mut best: Option<(f64, Line)> = None;
    let mut line = first_guess(trace, range.clone());
    for _ in 0..ROUNDS {
        let mut log = window::Log::default();
        let replayed = replay(trace, config, cost_of(&line), |iteration| {
            log.record(iteration)
        })?;
        runs += 1;
        let apart = distance(trace, &replayed, range.clone());
        if best.is_none_or(|(least, _)| apart < least) {
            best = Some((apart, line));
        }
        let windows = log.windows(trace, &replayed, range.clone());
        let next = solve::least_squares(&windows);
        for (old, new) in line.iter_mut().zip(next) {
            *old = 0.4 * *old + 0.6 * new;
        }
    }
    let (_, start) = best.unwrap_or((f64::INFINITY, line));
    let (line, distance, more) = solve::refine(start, |line| {
        let replayed = replay(trace, config, cost_of(line), |_| {})?;
        Ok(distance(trace, &replayed, range.clone()))
    })?;
    Ok(Fitted {
        cost: cost_of(&line),
        distance,
        runs: runs + more,
    })
}

/// Steps of 20 ms at first, or what the fastest request needed for each token, and a tenth of a millisecond for
/// each prompt token.
fn first_guess(trace: &Trace, range: std::ops::Range<usize>) -> Line {
    let tpots = trace.requests[range]
        .iter()
        .filter_map(|r| r.times.tpot(r.output_tokens));
    let least = tpots.fold(f64::INFINITY, f64::min);
    let base = if least.is_finite() && least > 0.0 {
        least
    } else {
        0.02
    };
    [0.7 * base, 0.0, 1e-4, 0.0, 0.003 * base, 0.0]
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
    }
}

/// How far apart the runs are over the share: for each of the three measures the mean of the differences and the
/// difference of the means, both as shares of the recorded mean, added up.
fn distance(trace: &Trace, replayed: &Replayed, range: std::ops::Range<usize>) -> f64 {
    let mut sums = [[0.0_f64; 4]; 3];
    for (recorded, simulated) in trace.requests[range.clone()]
        .iter()
        .zip(&replayed.requests[range])
    {
        let output = recorded.output_tokens;
        let pairs = [
            Some((recorded.times.ttft(), simulated.ttft())),
            recorded.times.tpot(output).zip(simulated.tpot(output)),
            Some((recorded.times.e2e(), simulated.e2e())),
        ];
        for (sums, (real, ours)) in sums
            .iter_mut()
            .zip(pairs)
            .filter_map(|(sums, pair)| Some((sums, pair?)))
        {
            for (sum, add) in sums.iter_mut().zip([real, ours, (real - ours).abs(), 1.0]) {
                *sum += add;
            }
        }
    }
    sums.iter()
        .filter(|sums| sums[0] > 0.0)
        .map(|[real, ours, apart, _]| (apart + (real - ours).abs()) / real)
        .sum()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::made_up;
