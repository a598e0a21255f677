//! The best model that knows nothing: every step takes the same time.
//!
//! What it explains, a recording explains by its arrivals, lengths and limits alone; a fit is worth what it is better.
//! Invariant: one number is fitted, to the same requests and by the same distance.
//! Not here: what it is compared with (`fit`, `score`).

use super::{cost_of, distance, first_guess};
use crate::cost::StepCost;
use crate::replay::{ReplayError, Setup, replay};
use crate::trace::Trace;

/// Times that the step time is scaled by what the run lacks.
const ROUNDS: usize = 12;

/// The constant step time by which these engines come nearest to these requests of the recording.
///
/// # Errors
/// When a request of the recording could never run on these engines.
pub fn null(
    trace: &Trace,
    setup: &Setup,
    counts: impl Fn(usize) -> bool,
) -> Result<StepCost, ReplayError> {
    let which = || (0..trace.requests.len()).filter(|&i| counts(i));
    let [mut step, ..] = first_guess(trace, 0..0);
    let mut best = (f64::INFINITY, step);
    for _ in 0..ROUNDS {
        let replayed = replay(trace, setup, constant(step), |_| {})?;
        let apart = distance(trace, &replayed, which());
        if apart.total < best.0 {
            best = (apart.total, step);
        }
        let [_, tpot, e2e] = apart.of_means;
        let slower = 1.0 + (tpot + e2e) / 2.0;
        step /= slower.clamp(0.1, 10.0);
    }
    Ok(constant(best.1))
}

fn constant(step: f64) -> StepCost {
    cost_of(&[step, 0.0, 0.0, 0.0, 0.0, 0.0])
}
