//! When somebody acts next: laws of gaps, their closed forms, and who shares what.
//!
//! A [`Process`] is a law with its parameters. A [`Pace`] is one actor under a law: a user with think times, or the
//! sequence of arrivals of an open loop. A [`Chain`] is the hidden trajectory of a modulated law, which several
//! actors may share without sharing memory.
//!
//! Invariant: time is an argument and comes back as a result, counted from the start of the run. What an actor does
//! follows from the seed, its name and what it is told: never from a clock, a thread or another actor.
//! Not here: which session is asked (`workload`), whether what was sent has the law (`certificate`).

mod chain;
mod law;
mod mmpp;
mod moments;
mod pace;
mod text;
mod trace;

pub use chain::{Chain, Sojourn};
pub use law::Law;
pub use mmpp::Mmpp;
pub use pace::{Due, Pace};

pub use text::{ProcessError, Spec, time};
pub use trace::{Trace, TraceError, Traced};

use serde::{Deserialize, Serialize};

/// A law of the gaps between one action and the next.
#[derive(Debug, Clone, PartialEq)]
pub enum Process {
    /// All gaps are the same.
    Constant {
        /// The gap, in seconds.
        mean_s: f64,
    },
    /// Independent exponential gaps: a Poisson process.
    Exponential {
        /// The mean gap, in seconds.
        mean_s: f64,
    },
    /// Independent gamma gaps, of shape `1 / cv^2`.
    Gamma {
        /// The mean gap, in seconds.
        mean_s: f64,
        /// Coefficient of variation: standard deviation over mean.
        cv: f64,
    },
    /// A Poisson process whose rate a hidden chain of two states switches.
    Mmpp(Mmpp),
    /// The moments of a recorded trace, one after another; of arrivals alone.
    Trace(Trace),
    /// The pauses that the sessions themselves have; of think times alone.
    Recorded,
}

/// Who shares one hidden chain, and so has its bursts in common.
///
/// Many independent users look nearly Poisson together, however bursty each is by itself: whoever wants a gateway to
/// see bursts lets users share a chain.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every user has one of its own.
    User,
    /// All users of a profile share one.
    #[default]
    Profile,
    /// All users of all profiles share one.
    Fleet,
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "profile" => Ok(Self::Profile),
            "fleet" => Ok(Self::Fleet),
            _ => Err(format!("{text}: a scope is user, profile or fleet")),
        }
    }
}

/// Names an actor: the number of its profile, and its own number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actor {
    /// The profile, from 0.
    pub profile: u32,
    /// The user, the session or the sequence of arrivals within it, from 0.
    pub number: u64,
}
