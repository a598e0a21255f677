//! What a load run does: which profiles, how many users or how often a session, and which session comes next.
//!
//! A closed profile has users: each asks, waits for the whole answer, pauses, and asks on. An open profile has
//! arrivals: a session starts when it is due, whoever still waits, and its later turns follow their answers.
//!
//! Invariant: plain data and plain state, the same in virtual and in real time. Threads share nothing: each makes the
//! common sequences again and takes what is its [`Part`]. In every profile each session comes once before any comes
//! again.
//! Not here: what a session says (its owner implements [`Sessions`]), sending (`load`, the simulator's soak).

mod deal;
mod open;
mod permutation;
mod session_counts;
#[cfg(test)]
mod tests;
mod turn;
mod user;

pub use deal::Deal;
pub use open::{Arrival, Arrivals, Visit};
pub use permutation::Permutation;
pub use session_counts::SessionCounts;
pub use turn::{Plain, Sessions, Turn};
pub use user::User;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::arrivals::{Actor, Process, Scope};

/// The number under which the sequence of a profile's arrivals is an actor; users and sessions count from 0.
pub const SEQUENCE: u64 = u64::MAX;
/// Profiles at most.
pub const MOST_PROFILES: usize = 64;
/// Users of a profile at most.
pub const MOST_USERS: u32 = 1_000_000;

/// A load run.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Of everything that is drawn at random.
    pub seed: u64,
    /// Users come in evenly over this time.
    pub ramp: Duration,
    /// Who does what; numbered in this order.
    pub profiles: Vec<Profile>,
}

/// A kind of traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// As reports name it.
    pub name: String,
    /// How it comes.
    pub load: Load,
    /// Who shares the hidden chain of a modulated process; without one, it says nothing.
    pub scope: Scope,
}

/// How traffic comes.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// A closed loop.
    Closed {
        /// How many users.
        users: u32,
        /// The pause before each question.
        think: Process,
        /// What a user does on entering.
        enter: Enter,
        /// How long a user stays.
        stay: Stay,
    },
    /// An open loop.
    Open {
        /// Of sessions.
        arrivals: Process,
        /// The pause before each turn of a session but the first.
        think: Process,
    },
}

/// What a user does on entering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Enter {
    /// Pauses first, so that users who come in together do not ask together.
    #[default]
    Thinking,
    /// Asks at once.
    Asking,
}

/// How long a user stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stay {
    /// To the end of the run.
    #[default]
    Always,
    /// For so many sessions.
    Sessions(u64),
    /// Until its share of the profile's sessions was asked once: all users together ask each session once.
    Once,
}

/// A share of the users and arrivals: those whose number leaves this remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The remainder, less than `of`.
    pub index: u64,
    /// How many parts there are; at least 1.
    pub of: u64,
}

impl Part {
    /// Everything.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Whether this number is of this part.
    #[must_use]
    pub const fn has(self, number: u64) -> bool {
        number % self.of == self.index
    }
}

/// A workload that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// No profile, or too many.
    #[error("a workload has 1 to {MOST_PROFILES} profiles, not {0}")]
    Profiles(usize),
    /// Two of one name.
    #[error("two profiles are named {0}")]
    Twice(String),
    /// One that makes no sense.
    #[error("profile {name}: {says}")]
    Profile {
        /// Which.
        name: String,
        /// What is wrong.
        says: &'static str,
    },
}

impl Workload {
    /// Whether the workload can be carried out.
    ///
    /// # Errors
    /// What is wrong, and in which profile.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let count = self.profiles.len();
        if count == 0 || count > MOST_PROFILES {
            return Err(WorkloadError::Profiles(count));
        }
        let (mut names, mut fleet) = (BTreeSet::new(), None);
        for profile in &self.profiles {
            if !names.insert(&profile.name) {
                return Err(WorkloadError::Twice(profile.name.clone()));
            }
            profile.check(&mut fleet).map_err(|says| {
                let name = profile.name.clone();
                WorkloadError::Profile { name, says }
            })?;
        }
        Ok(())
    }

    /// The users of a closed profile that are of this part; of any other profile, nobody.
    pub fn users(&self, profile: usize, part: Part) -> impl Iterator<Item = User> + '_ {
        let users = match self.profiles.get(profile).map(|profile| &profile.load) {
            Some(Load::Closed { users, .. }) => *users,
            Some(Load::Open { .. }) | None => 0,
        };
        (0..users)
            .filter(move |&number| part.has(u64::from(number)))
            .filter_map(move |number| User::new(self, profile, number))
    }

    /// One user of a closed profile; numbers beyond its users are those that a ramp would add. `None` of any other
    /// profile.
    #[must_use]
    pub fn user(&self, profile: usize, number: u32) -> Option<User> {
        User::new(self, profile, number)
    }

    /// The arrivals of an open profile that are of this part; `None` of any other profile.
    #[must_use]
    pub fn arrivals(&self, profile: usize, part: Part) -> Option<Arrivals> {
        Arrivals::new(self, profile, part)
    }

    /// Names an actor of a profile.
    #[must_use]
    pub const fn actor(profile: usize, number: u64) -> Actor {
        let profile = profile as u32;
        Actor { profile, number }
    }

    /// When a user comes in: users of all profiles in turn, evenly over the ramp.
    fn comes_in(&self, profile: usize, number: u32, users: u32) -> Duration {
        let profiles = self.profiles.len().max(1) as f64;
        let place = f64::from(number) + profile as f64 / profiles;
        self.ramp.mul_f64(place / f64::from(users.max(1)))
    }
}

impl Profile {
    /// The process of which a certificate is given: pauses of a closed profile, arrivals of an open one.
    #[must_use]
    pub const fn process(&self) -> &Process {
        match &self.load {
            Load::Closed { think, .. } => think,
            Load::Open { arrivals, .. } => arrivals,
        }
    }

    /// `fleet` is the sojourns of the fleet's chain, once a profile has said them.
    fn check(&self, fleet: &mut Option<(f64, f64)>) -> Result<(), &'static str> {
        let think = match &self.load {
            Load::Closed { users, think, .. } => {
                if *users == 0 || *users > MOST_USERS {
                    return Err("needs 1 to 1,000,000 users");
                }
                think
            }
            Load::Open { arrivals, think } => {
                match arrivals {
                    Process::Recorded => {
                        return Err("sessions record the pauses inside them, not when they start");
                    }
                    Process::Constant { mean_s } if *mean_s <= 0.0 => {
                        return Err("arrivals need a gap between them");
                    }
                    Process::Constant { .. }
                    | Process::Exponential { .. }
                    | Process::Gamma { .. }
                    | Process::Mmpp(_)
                    | Process::Trace(_) => {}
                }
                think
            }
        };
        match think {
            Process::Trace(_) => {
                return Err("a trace is of arrivals; it says nothing about pauses");
            }
            Process::Constant { .. }
            | Process::Exponential { .. }
            | Process::Gamma { .. }
            | Process::Mmpp(_)
            | Process::Recorded => {}
        }
        let processes = [Some(think), Some(self.process())];
        for process in processes.into_iter().flatten() {
            if let (Process::Mmpp(mmpp), Scope::Fleet) = (process, self.scope) {
                let sojourns = (mmpp.on_s(), mmpp.off_s());
                if *fleet.get_or_insert(sojourns) != sojourns {
                    return Err(
                        "shares the fleet's chain, but has not the on and off of the profile before",
                    );
                }
            }
        }
        Ok(())
    }
}

/// Deals so many users to profiles by weight, by largest remainders; ties go to the first. All 0 where no weight is
/// above 0.
#[must_use]
pub fn apportion(users: u32, weights: &[f64]) -> Vec<u32> {
    let weights: Vec<f64> = weights
        .iter()
        .map(|w| if w.is_finite() { w.max(0.0) } else { 0.0 })
        .collect();
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return vec![0; weights.len()];
    }
    let shares: Vec<f64> = weights
        .iter()
        .map(|weight| f64::from(users) * weight / sum)
        .collect();
    let mut dealt: Vec<u32> = shares.iter().map(|share| share.floor() as u32).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&a, &b| shares[b].fract().total_cmp(&shares[a].fract()));
    let left = users.saturating_sub(dealt.iter().sum());
    for place in order.into_iter().take(left as usize) {
        dealt[place] += 1;
    }
    dealt
}
