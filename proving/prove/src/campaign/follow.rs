//! Tells what was seen by the phases and windows of the course, as they begin.
//!
//! Invariant: a window of `observed` begins with each window that the controller asks gates about.
//! Not here: the controller, the sums.

use std::time::Duration;

use experiment::campaign::{Controller, Phase};

use super::observed::Observed;

/// What was told of a course.
#[derive(Debug, Default)]
pub(super) struct Follower {
    phase: Option<Phase>,
    steps: usize,
}

impl Follower {
    /// Tells what is new.
    pub(super) fn tell(&mut self, controller: &Controller, observed: &mut Observed) {
        let (phase, began) = (controller.phase(), controller.phase_began());
        if self.phase != Some(phase) {
            if self.phase.is_none() {
                observed.window(controller.plan().baseline.warm_up);
            }
            observed.phase(phase.word(), began);
            if phase == Phase::Ramp {
                observed.window(began);
            }
            self.phase = Some(phase);
        }
        let steps = &controller.course().steps;
        let new: Vec<Duration> = steps.iter().skip(self.steps).map(|step| step.to).collect();
        new.into_iter().for_each(|from| observed.window(from));
        self.steps = steps.len();
    }
}
