//! Users who ask, read, think and ask again, for hours of virtual time.
//!
//! The number of users is fixed and each waits for its answer: a closed loop, in which a slow engine is asked less
//! often. Beside them conversations may begin whoever still waits (an open loop). Users have a past: each prompt of a
//! conversation holds the prompts and answers before it, so that the prefix cache finds a user's own history as long as
//! others have not pushed it out.
//! Invariant: the same soak and preset give the same report to the last digit.
//! Not here: real load over HTTP.

mod conversation;
mod file;
mod plan;
mod ramp;
mod report;
mod traffic;
mod users;

pub use file::FileError;
pub use plan::{Plan, Question, Questions, soak};
pub use ramp::{Ramp, RampReport, Window};
pub use report::{ProfileReport, Report};
pub use traffic::{Answers, Comes, Length, Profile, Talk, Traffic};

use std::time::Duration;

use experiment::workload::WorkloadError;

use crate::gpus::Activity;
use crate::preset::Preset;
use crate::scheduler::{NeverFits, RequestId, SchedulerStats};
use crate::virtual_time::{Iteration, VirtualEngine};
use report::Observed;
use users::{Delivered, Users};

/// Traffic, how much of it, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Soak {
    /// Who asks.
    pub traffic: Traffic,
    /// Users of all profiles together; an open loop has none.
    pub users: u32,
    /// How long it goes on.
    pub length: Duration,
    /// From the start, what does not count.
    pub warm_up: Duration,
    /// Of everything that is drawn at random.
    pub seed: u64,
}

/// A step that has run, and what came of it.
struct Tick<'a> {
    iteration: &'a Iteration,
    stats: SchedulerStats,
    delivered: &'a Delivered,
    /// Since the step began or another engine's ended: what nobody has counted yet of the time in which steps run.
    passed: Duration,
}

/// A soak that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// It makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// A profile makes no sense.
    #[error("profile {name}: {member}: {says}")]
    Profile {
        /// Which.
        name: String,
        /// Of what it says.
        member: &'static str,
        /// What is wrong.
        says: &'static str,
    },
    /// The profiles together make no sense.
    #[error(transparent)]
    Workload(WorkloadError),
    /// Requests would be cut.
    #[error("profile {name}: prompt and answer are on average longer than {most} tokens")]
    Long {
        /// Which profile.
        name: String,
        /// Most tokens of prompt and output together.
        most: u32,
    },
    /// Nothing would count.
    #[error("the warm-up of {warm_up_s} s has to be shorter than the soak of {length_s} s")]
    WarmUp {
        /// What does not count, seconds.
        warm_up_s: f64,
        /// The whole soak, seconds.
        length_s: f64,
    },
    /// A request could never run.
    #[error("request {} of the soak never fits: {reason}", .id.0)]
    NeverFits {
        /// Which, from 0.
        id: RequestId,
        /// Why.
        reason: NeverFits,
    },
    /// An open loop that the engine cannot follow.
    #[error("more than 100,000 requests are under way: more arrive than the engine can serve")]
    Overload,
    /// Nothing was finished after the warm-up.
    #[error("no request finished after the warm-up: the soak is too short for this load")]
    Nothing,
}

impl Soak {
    /// Lets everybody at the engine.
    ///
    /// # Errors
    /// When the soak makes no sense, a request could never run, arrivals are too many, or nothing finished.
    pub fn run(&self, preset: &Preset) -> Result<Report, SoakError> {
        if self.warm_up >= self.length {
            return Err(SoakError::WarmUp {
                warm_up_s: self.warm_up.as_secs_f64(),
                length_s: self.length.as_secs_f64(),
            });
        }
        self.traffic.check(self.users, preset)?;
        let mut observed = Observed::of(preset);
        let mut activity = Activity::default();
        let mut users = Users::new(self, preset);
        let engine = self.drive(
            preset,
            &mut users,
            |_, _| Duration::ZERO,
            |tick| {
                if tick.iteration.at >= self.warm_up {
                    let passed = tick.passed.min(tick.iteration.at - self.warm_up);
                    activity.record(passed, tick.iteration.tokens());
                    observed.tick(&Tick { passed, ..*tick });
                }
                true
            },
        )?;
        let activity = activity.close(self.length - self.warm_up, &preset.gpus);
        observed
            .report(preset, self, &users, &engine.stats(), &activity)
            .ok_or(SoakError::Nothing)
    }

    /// Runs until the end, or until `see` has seen enough.
    fn drive(
        &self,
        preset: &Preset,
        users: &mut Users,
        comes_in: impl Fn(usize, u32) -> Duration,
        mut see: impl FnMut(&Tick<'_>) -> bool,
    ) -> Result<VirtualEngine, SoakError> {
        let step = preset.step.clone();
        let mut engine = VirtualEngine::parallel(preset.scheduler, step, preset.parallelism);
        let mut before = Duration::ZERO;
        users.arrive(&mut engine, comes_in);
        let refused = |(id, reason)| SoakError::NeverFits { id, reason };
        loop {
            let arrival = users.next_arrival().filter(|&at| at <= self.length);
            let until = arrival.unwrap_or(self.length);
            match (engine.iterate(until).map_err(refused)?, arrival) {
                (Some(iteration), _) => {
                    let delivered = users.deliver(&iteration, &mut engine);
                    let tick = Tick {
                        stats: engine.stats(),
                        passed: iteration.at - iteration.began.max(before),
                        iteration: &iteration,
                        delivered: &delivered,
                    };
                    before = iteration.at;
                    if !see(&tick) {
                        return Ok(engine);
                    }
                }
                (None, Some(at)) => users.begin_until(at, &mut engine)?,
                (None, None) => return Ok(engine),
            }
        }
    }
}

#[cfg(test)]
mod tests;
