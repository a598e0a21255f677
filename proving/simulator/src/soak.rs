//! So many users for hours of virtual time, and a ramp of them.
//!
//! The number of users is fixed and each waits for its answer: a closed loop, in which a slow engine is asked less
//! often. Beside them conversations may begin whoever still waits (an open loop). Users have a past: each prompt of a
//! conversation holds the prompts and answers before it, so that the prefix cache finds a user's own history as long as
//! others have not pushed it out.
//! Invariant: the same soak and preset give the same report to the last digit.
//! Not here: real load over HTTP, users and their conversations (`crowd`).

mod plan;
mod ramp;
mod report;

pub use crate::crowd::{
    Answers, Comes, FileError, Length, Profile, Question, Questions, Talk, Traffic,
};
pub use plan::{Plan, soak};
pub use ramp::{Ramp, RampReport, Window};
pub use report::{ProfileReport, Report};

use std::time::Duration;

use experiment::workload::apportion;

use crate::campaign::CampaignError;
use crate::crowd::{Balancer, Crowd, CrowdError, Delivered};
use crate::gpus::Activity;
use crate::preset::Preset;
use crate::scheduler::SchedulerStats;
use crate::virtual_time::Iteration;
use report::Observed;

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
    /// Nobody can be let at the engine.
    #[error(transparent)]
    Crowd(#[from] CrowdError),
    /// A ramp cannot be carried out.
    #[error(transparent)]
    Ramp(#[from] CampaignError),
    /// It makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// Nothing would count.
    #[error("the warm-up of {warm_up_s} s has to be shorter than the soak of {length_s} s")]
    WarmUp {
        /// What does not count, seconds.
        warm_up_s: f64,
        /// The whole soak, seconds.
        length_s: f64,
    },
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
        let workload = self.traffic.workload(self.users, self.seed);
        let counts = apportion(self.users, &self.traffic.weights());
        let mut crowd = Crowd::new(&self.traffic, workload, preset, 1, Balancer::default());
        crowd.wish(&counts, Duration::ZERO);
        let mut before = Duration::ZERO;
        while let Some(ran) = crowd.go_on(self.length)? {
            let (at, began) = (ran.iteration.at, ran.iteration.began);
            let passed = at - began.max(before);
            before = at;
            if at < self.warm_up {
                continue;
            }
            let passed = passed.min(at - self.warm_up);
            activity.record(passed, ran.iteration.tokens());
            observed.tick(&Tick {
                iteration: &ran.iteration,
                stats: crowd.stats(),
                delivered: &ran.delivered,
                passed,
            });
        }
        let activity = activity.close(self.length - self.warm_up, &preset.gpus);
        observed
            .report(preset, self, &crowd, &activity)
            .ok_or(SoakError::Nothing)
    }
}
