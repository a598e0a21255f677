//! Users who ask, read, think and ask again, for hours of virtual time.
//!
//! The number of users is fixed and each waits for its answer: a closed loop, in which a slow engine is asked less
//! often. Lengths are log-normal, pauses exponential. All prompts begin with the same `cached_tokens`, as a system
//! prompt and tool definitions do.
//! Invariant: the same plan and preset give the same report to the last digit.
//! Not here: real load over HTTP, arrivals that do not wait for answers.

mod report;
mod users;

pub use report::Report;
pub use users::{Question, Questions};

use std::time::Duration;

use crate::gpus::Activity;
use crate::preset::Preset;
use crate::scheduler::{NeverFits, RequestId};
use crate::virtual_time::{Iteration, VirtualEngine};
use report::Observed;
use users::Users;

/// Shorter pauses are refused: on an engine that takes no time, neither would the users.
const LEAST_THINK: Duration = Duration::from_millis(1);

/// What users do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How many there are.
    pub users: u32,
    /// Mean pause between an answer and the next question.
    pub think: Duration,
    /// Mean prompt tokens that nobody has sent before.
    pub prompt_tokens: u32,
    /// Prompt tokens before those, the same in every prompt.
    pub cached_tokens: u32,
    /// Mean tokens of an answer.
    pub output_tokens: u32,
    /// Coefficient of variation of both lengths; 0 makes all the same.
    pub variation: f64,
    /// How long it goes on.
    pub length: Duration,
    /// From the start, what does not count.
    pub warm_up: Duration,
    /// Of everything that is drawn at random.
    pub seed: u64,
}

/// A plan that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// Requests would be cut.
    #[error(
        "prompt and answer are on average longer than the preset's max_model_len, {max_model_len} tokens"
    )]
    Long {
        /// Most tokens of prompt and output together.
        max_model_len: u32,
    },
    /// A request could never run.
    #[error("request {} of the soak never fits: {reason}", .id.0)]
    NeverFits {
        /// Which, from 0.
        id: RequestId,
        /// Why.
        reason: NeverFits,
    },
    /// Nothing was finished after the warm-up.
    #[error("no request finished after the warm-up: the soak is too short for this load")]
    Nothing,
}

/// Lets the users at the engine.
///
/// # Errors
/// When the plan makes no sense, a request could never run, or none finished.
pub fn soak(preset: &Preset, plan: &Plan) -> Result<Report, SoakError> {
    check(plan, preset)?;
    let mut engine = VirtualEngine::new(preset.scheduler, preset.step.clone());
    let mut users = Users::new(plan, preset);
    let mut observed = Observed::default();
    let mut activity = Activity::default();
    users.arrive(&mut engine);
    let refused = |(id, reason)| SoakError::NeverFits { id, reason };
    while let Some(iteration) = engine.iterate(plan.length).map_err(refused)? {
        let counts = iteration.at >= plan.warm_up;
        if counts {
            let began = iteration.began.max(plan.warm_up);
            activity.record(iteration.at - began, iteration.tokens());
            observed.iteration(&iteration, &engine.stats());
        }
        for answer in users.deliver(&iteration, &mut engine) {
            if counts {
                observed.answer(&answer);
            }
        }
    }
    let span = plan.length - plan.warm_up;
    let activity = activity.close(span, &preset.gpus);
    observed
        .report(preset, plan, &engine.stats(), &activity)
        .ok_or(SoakError::Nothing)
}

fn check(plan: &Plan, preset: &Preset) -> Result<(), SoakError> {
    if plan.users == 0 || plan.prompt_tokens == 0 || plan.output_tokens == 0 {
        return Err(SoakError::Plan(
            "users, prompt tokens and output tokens have to be at least 1",
        ));
    }
    if plan.think < LEAST_THINK {
        return Err(SoakError::Plan(
            "the mean pause has to be at least 1 ms, or time might stand still",
        ));
    }
    let tokens = [plan.cached_tokens, plan.prompt_tokens, plan.output_tokens];
    let max_model_len = preset.scheduler.max_model_len;
    if tokens.iter().map(|&n| u64::from(n)).sum::<u64>() > u64::from(max_model_len) {
        return Err(SoakError::Long { max_model_len });
    }
    if !(0.0..=10.0).contains(&plan.variation) {
        return Err(SoakError::Plan(
            "the variation of lengths has to be between 0 and 10",
        ));
    }
    if plan.warm_up >= plan.length {
        return Err(SoakError::Plan(
            "the warm-up has to be shorter than the soak",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
