//! What one user asks, one question after another.
//!
//! Invariant: it follows from the plan and the user alone, not from when answers come, so that a user asks the same
//! in virtual and in real time.
//! Not here: when answers come (`crowd`).

use std::time::Duration;

use super::Plan;
use crate::chance::Chance;

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Since the answer before, or the start.
    pub pause: Duration,
    /// Tokens of the prompt, those that all prompts share included.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
}

/// A user's questions. They never end.
#[derive(Clone, Debug)]
pub struct Questions {
    plan: Plan,
    longest: u32,
    chance: Chance,
}

impl Plan {
    /// What `user` asks, prompt and answer never more than `longest` tokens together.
    #[must_use]
    pub fn questions(&self, user: u32, longest: u32) -> Questions {
        let seed = Chance::new(self.seed).bits() ^ u64::from(user);
        Questions {
            plan: self.clone(),
            longest,
            chance: Chance::new(Chance::new(seed).bits()),
        }
    }
}

impl Questions {
    /// The next question.
    pub fn ask(&mut self) -> Question {
        let pause = self.chance.exponential(self.plan.think.as_secs_f64());
        let prompt_tokens = self.plan.cached_tokens + self.length(self.plan.prompt_tokens);
        let prompt_tokens = prompt_tokens.min(self.longest.saturating_sub(1)).max(1);
        let output_tokens = self
            .length(self.plan.output_tokens)
            .min(self.longest - prompt_tokens);
        Question {
            pause: Duration::from_secs_f64(pause),
            prompt_tokens,
            output_tokens,
        }
    }

    fn length(&mut self, mean: u32) -> u32 {
        let drawn = self.chance.lognormal(f64::from(mean), self.plan.variation);
        (drawn.round() as u32).max(1)
    }
}
