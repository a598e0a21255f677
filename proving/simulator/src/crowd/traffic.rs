//! Who asks: profiles of users and of sessions, and how long their conversations are.
//!
//! Invariant: plain data. What it cannot mean is refused before anybody asks.
//! Not here: its file form (`file`), what a conversation draws (`conversation`), when users act (`experiment::workload`).

use std::time::Duration;

use experiment::arrivals::{Process, ProcessError, Scope};
use experiment::workload::{self, Enter, Load, MOST_USERS, Stay, Workload, apportion};

use super::CrowdError;
use crate::preset::Preset;

/// Pauses are not shorter in the mean: on an engine that takes no time, users would take none either.
const LEAST_THINK_S: f64 = 1e-3;
/// Longer lengths are refused: sums of them still fit.
const MOST_TOKENS: f64 = 1e7;
/// Coefficients of variation are at most this.
const MOST_CV: f64 = 10.0;

/// Everybody who asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Numbered in this order.
    pub profiles: Vec<Profile>,
}

/// One kind of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// As reports name it.
    pub name: String,
    /// How it comes.
    pub comes: Comes,
    /// The pause before each question; in an open loop, before each but the first of a conversation.
    pub think: Process,
    /// Who shares the hidden chain of a modulated process.
    pub scope: Scope,
    /// What is said.
    pub talk: Talk,
}

/// How traffic comes.
#[derive(Clone, Debug, PartialEq)]
pub enum Comes {
    /// Users, who begin a new conversation when one ends: a closed loop.
    Users {
        /// Share of all users, over the sum of all weights.
        weight: f64,
    },
    /// Conversations that begin whoever still waits: an open loop.
    Sessions {
        /// When they begin.
        arrivals: Process,
    },
}

/// How long the parts of a conversation are, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Talk {
    /// With which all prompts of the profile begin, as a system prompt and tool definitions do.
    pub shared_tokens: u32,
    /// What the first prompt has beyond those.
    pub first_tokens: Length,
    /// What each later prompt has beyond the prompt and the answer before.
    pub turn_tokens: Length,
    /// An answer.
    pub output_tokens: Length,
    /// Questions of a conversation.
    pub turns: Length,
    /// A conversation ends before its prompt and answer exceed this; the preset's `max_model_len` unless said.
    pub context_tokens: Option<u32>,
    /// Whose answers later prompts hold.
    pub answers: Answers,
    /// So many different conversations, after which the first comes again; without end unless said.
    pub conversations: Option<u64>,
}

/// Whose answers a conversation is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// Those that the engine gave: their blocks are cached.
    #[default]
    Own,
    /// Recorded ones of the same length, as in a replay: the engine has not seen them.
    Recorded,
}

/// A length that is drawn: log-normal, at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Its mean.
    pub mean: f64,
    /// Coefficient of variation; 0 makes all the same.
    pub cv: f64,
}

impl Length {
    /// Always the same.
    #[must_use]
    pub const fn fixed(mean: f64) -> Self {
        Self { mean, cv: 0.0 }
    }

    fn fault(self) -> Option<&'static str> {
        if !(1.0..=MOST_TOKENS).contains(&self.mean) {
            return Some("has a mean that is not between 1 and 10,000,000");
        }
        (!(0.0..=MOST_CV).contains(&self.cv)).then_some("has a variation not between 0 and 10")
    }
}

impl Talk {
    /// Most tokens of prompt and answer.
    pub(super) fn longest(&self, preset: &Preset) -> u32 {
        let most = preset.scheduler.max_model_len;
        self.context_tokens.map_or(most, |tokens| tokens.min(most))
    }

    /// The first member that makes no sense, and why.
    pub(super) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let lengths = [
            ("first_tokens", self.first_tokens),
            ("turn_tokens", self.turn_tokens),
            ("output_tokens", self.output_tokens),
            ("turns", self.turns),
        ];
        lengths
            .into_iter()
            .find_map(|(member, length)| Some((member, length.fault()?)))
            .or_else(|| {
                let none = self.conversations == Some(0);
                none.then_some(("conversations", "is 0: nobody would say anything"))
            })
            .or_else(|| {
                let too_many = f64::from(self.shared_tokens) > MOST_TOKENS;
                too_many.then_some(("shared_tokens", "is more than 10,000,000"))
            })
    }
}

impl Profile {
    /// The first member that makes no sense, and why.
    pub(super) fn fault(&self) -> Option<(&'static str, &'static str)> {
        match &self.comes {
            Comes::Users { weight } if !(weight.is_finite() && *weight > 0.0) => {
                return Some(("weight", "is not above 0"));
            }
            Comes::Users { .. } | Comes::Sessions { .. } => {}
        }
        if matches!(self.think, Process::Trace(_) | Process::Recorded) {
            return Some(("think", "needs a law: a conversation records no pauses"));
        }
        let pause_s = self.think.rate().map_or(0.0, f64::recip);
        if pause_s < LEAST_THINK_S {
            return Some((
                "think",
                "has a mean pause under 1 ms: time might stand still",
            ));
        }
        self.talk.fault()
    }
}

impl Traffic {
    /// The same as plain data of `experiment`: users by weight, everybody there from the start and thinking.
    #[must_use]
    pub fn workload(&self, users: u32, seed: u64) -> Workload {
        let weights = self.weights();
        let profiles = self
            .profiles
            .iter()
            .zip(apportion(users, &weights))
            .map(|(profile, users)| workload::Profile {
                name: profile.name.clone(),
                load: profile.load(users),
                scope: profile.scope,
            })
            .collect();
        Workload {
            seed,
            ramp: Duration::ZERO,
            profiles,
        }
    }

    /// The same with every pause before a question so many times as long; when sessions of an open loop begin stays.
    ///
    /// # Errors
    /// The factor is no number above 0, or makes a law's parameters senseless.
    pub fn with_think_factor(mut self, factor: f64) -> Result<Self, ProcessError> {
        for profile in &mut self.profiles {
            profile.think = profile.think.slowed(factor)?;
        }
        Ok(self)
    }

    pub(crate) fn weights(&self) -> Vec<f64> {
        self.profiles.iter().map(Profile::weight).collect()
    }

    pub(crate) fn check(&self, users: u32, preset: &Preset) -> Result<(), CrowdError> {
        for profile in &self.profiles {
            profile.check(preset)?;
        }
        let closed = |p: &Profile| matches!(p.comes, Comes::Users { .. });
        if self.profiles.iter().any(closed) && !(1..=MOST_USERS).contains(&users) {
            return Err(CrowdError::Plan("there have to be 1 to 1,000,000 users"));
        }
        let mut workload = self.workload(users, 0);
        for profile in &mut workload.profiles {
            if let Load::Closed { users, .. } = &mut profile.load {
                *users = (*users).max(1); // few users leave a small profile without any
            }
        }
        workload.check().map_err(CrowdError::Workload)
    }
}

impl Profile {
    const fn weight(&self) -> f64 {
        match self.comes {
            Comes::Users { weight } => weight,
            Comes::Sessions { .. } => 0.0,
        }
    }

    fn load(&self, users: u32) -> Load {
        let think = self.think.clone();
        match &self.comes {
            Comes::Users { .. } => Load::Closed {
                users,
                think,
                enter: Enter::Thinking,
                stay: Stay::Always,
            },
            Comes::Sessions { arrivals } => Load::Open {
                arrivals: arrivals.clone(),
                think,
            },
        }
    }

    fn check(&self, preset: &Preset) -> Result<(), CrowdError> {
        if let Some((member, says)) = self.fault() {
            return Err(CrowdError::Profile {
                name: self.name.clone(),
                member,
                says,
            });
        }
        let (talk, most) = (&self.talk, self.talk.longest(preset));
        let mean = f64::from(talk.shared_tokens) + talk.first_tokens.mean + talk.output_tokens.mean;
        if mean > f64::from(most) {
            return Err(CrowdError::Long {
                name: self.name.clone(),
                most,
            });
        }
        Ok(())
    }
}
