//! The simple case: users who are all alike and never come back to what they said.
//!
//! Invariant: what a user asks, and after which pause, follows from the plan and the user alone, not from when answers
//! come, so that a user asks the same in virtual and in real time.
//! Not here: when users act (`experiment::workload`), profiles and conversations (`crowd`).

use std::time::Duration;

use experiment::arrivals::{Process, Scope};

use super::{Report, Soak, SoakError};
use crate::crowd::{Answers, Comes, Conversations, Length, Profile, Questions, Talk, Traffic};
use crate::preset::Preset;

/// What users do who are all alike: each question is a conversation of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How many there are.
    pub users: u32,
    /// Mean pause between an answer and the next question; exponential.
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

/// Lets the users of a plan at the engine.
///
/// # Errors
/// When the plan makes no sense, a request could never run, or none finished.
pub fn soak(preset: &Preset, plan: &Plan) -> Result<Report, SoakError> {
    plan.soak().run(preset)
}

impl Plan {
    /// The same as a soak of one profile.
    #[must_use]
    pub fn soak(&self) -> Soak {
        Soak {
            traffic: self.traffic(),
            users: self.users,
            length: self.length,
            warm_up: self.warm_up,
            seed: self.seed,
        }
    }

    fn traffic(&self) -> Traffic {
        let length = |mean: u32| Length {
            mean: f64::from(mean),
            cv: self.variation,
        };
        Traffic {
            profiles: vec![Profile {
                name: "soak".into(),
                comes: Comes::Users { weight: 1.0 },
                think: Process::Exponential {
                    mean_s: self.think.as_secs_f64(),
                },
                scope: Scope::User,
                talk: Talk {
                    shared_tokens: self.cached_tokens,
                    first_tokens: length(self.prompt_tokens),
                    turn_tokens: length(self.prompt_tokens),
                    output_tokens: length(self.output_tokens),
                    turns: Length::fixed(1.0),
                    context_tokens: None,
                    conversations: None,
                    answers: Answers::Own,
                },
            }],
        }
    }

    /// What `user` asks, prompt and answer never more than `longest` tokens together.
    #[must_use]
    pub fn questions(&self, user: u32, longest: u32) -> Questions {
        let traffic = self.traffic();
        let user = traffic.workload(self.users, self.seed).user(0, user);
        let talk = traffic.profiles[0].talk;
        let conversations = Conversations::new(self.seed, 0, talk, longest, 1);
        Questions::new(conversations, user.expect("its one profile has users"))
    }
}
