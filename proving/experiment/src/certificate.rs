//! Whether what was sent has the law that was asked for: a verdict over intended and achieved times.
//!
//! Gaps become uniform values by their law with the *configured* parameters ([`crate::arrivals::Law`]), so that one
//! set of exact tests serves all laws: distribution, tails, and dependence of one gap on the next. Beside them stand
//! the figures that people know: mean, CV, index of dispersion, the hidden chain's sojourns.
//!
//! *Significance.* A correct generator fails a whole certificate less than once in 1,000: the probability of each
//! check is held against [`SIGNIFICANCE`] over the number of all that are judged (Bonferroni). Checks whose
//! distribution is only nearly known ask for enough sends or cycles before they are judged.
//!
//! *Achieved times.* A timer's lag is part of them, and no test of a law survives it for long: with enough sends any
//! lag is seen. They are judged with a margin ([`MARGIN`]): chance, and besides it at most so much. Where more than
//! that share of gaps is shorter than the lag, how short gaps look is the timer's doing; then counts are judged
//! alone, and the rest is said to be unjudged.
//!
//! Invariant: the same sends give the same certificate, in whatever order and from however many threads they came.
//! Not here: sending, colours (`load`, `prove`).

mod cardinality;
mod chain;
mod checks;
mod collector;
mod gaps;
mod lag;
mod leaving;
mod table;
#[cfg(test)]
mod tests;

pub use cardinality::{Cardinality, LEAST_UNIQUE};
pub use collector::{Certifier, MOST_KEPT, Sent};
pub use lag::Lag;
pub use leaving::{LATE_S, Leaving};

use std::time::Duration;

use serde::Serialize;

/// The share of a run in which a sender may not have come to its turn.
const MOST_STALLED: f64 = 0.01;

/// The probability with which a correct generator may fail, all profiles and checks together.
pub const SIGNIFICANCE: f64 = 1e-3;
/// By how much the distribution and the correlations of achieved gaps may differ beyond chance; of their mean, CV and
/// dispersion, the share by which.
pub const MARGIN: f64 = 0.02;
/// Gaps below which nothing is said about a law.
pub const LEAST_GAPS: usize = 100;

/// The verdict, and all it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The worst of the profiles.
    pub verdict: Verdict,
    /// The probability below which a check fails.
    pub significance: f64,
    /// Checks that have a probability.
    pub judged: usize,
    /// How long the worst of the senders did not come to its turn, in seconds; more than 1 % of a run makes it void.
    pub stalled_s: f64,
    /// How late sends left for want of a connection, where whoever sent them says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
    /// How often the same sessions came, where whoever sent them says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cardinality: Option<Cardinality>,
    /// One by one.
    pub profiles: Vec<ProfileCertificate>,
}

/// What is to be thought of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed. Of recorded pauses, which have no law, that they were kept.
    Good,
    /// Nothing speaks against it, and too little was sent to speak for it.
    Unproven,
    /// A check failed: what was sent has not the law.
    Failed,
    /// The generator could not keep up: its figures are about itself.
    Void,
}

/// The certificate of one profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileCertificate {
    /// The profile.
    pub name: String,
    /// Its process, as it is written.
    pub process: String,
    /// Whether the process leaves the pauses to the sessions, so that there is no law to prove.
    #[serde(skip)]
    is_recorded: bool,
    /// Whether the process is of arrivals, and not of users' pauses.
    pub open: bool,
    /// Of this profile alone.
    pub verdict: Verdict,
    /// Requests that left.
    pub sends: u64,
    /// Gaps of the process that were tested; sends beyond a bound are counted alone.
    pub tested: usize,
    /// How late sends were.
    pub lag: Lag,
    /// Every check.
    pub checks: Vec<Check>,
    /// Correlations of the intended uniforms at lags from 1; empty where there are none.
    pub correlations: Vec<f64>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What is looked at.
    pub name: &'static str,
    /// Of which times.
    pub of: Of,
    /// What was found.
    pub found: f64,
    /// What the law has; for a distance, nothing.
    pub expected: Option<f64>,
    /// The interval of 95 % of what was found, where it is known.
    pub interval: Option<[f64; 2]>,
    /// The probability that a correct generator is as far from the law.
    pub p: Option<f64>,
    /// The most it may be, where chance has no part in it.
    pub limit: Option<f64>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The times a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Those at which sends were due.
    Intended,
    /// Those at which they left.
    Achieved,
    /// Those of the hidden chain's switches.
    Chain,
}

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As the law has it.
    Passed,
    /// Not as the law has it.
    Failed,
    /// Reported; too little is known for a judgement.
    Unjudged,
}

impl Certificate {
    fn of(mut profiles: Vec<ProfileCertificate>, (stalled, end): (Duration, Duration)) -> Self {
        let judged = profiles
            .iter()
            .flat_map(|profile| &profile.checks)
            .filter(|check| check.p.is_some())
            .count();
        let significance = SIGNIFICANCE / judged.max(1) as f64;
        for profile in &mut profiles {
            profile.judge(significance);
        }
        let worst = profiles.iter().map(|profile| profile.verdict).max();
        let stalled_s = stalled.as_secs_f64();
        let verdict = if stalled_s > MOST_STALLED * end.as_secs_f64() {
            Verdict::Void
        } else {
            worst.unwrap_or(Verdict::Unproven)
        };
        Self {
            verdict,
            significance,
            judged,
            stalled_s,
            leaving: None,
            cardinality: None,
            profiles,
        }
    }

    /// With how long sends waited for their connections.
    #[must_use]
    pub fn with_leaving(mut self, leaving: Leaving) -> Self {
        self.leaving = Some(leaving);
        self
    }

    /// With what is known of its sessions.
    #[must_use]
    pub fn with_cardinality(mut self, cardinality: Cardinality) -> Self {
        self.cardinality = Some(cardinality);
        self
    }

    /// Checks that failed, with the profiles they are of.
    pub fn failures(&self) -> impl Iterator<Item = (&ProfileCertificate, &Check)> {
        self.profiles.iter().flat_map(|profile| {
            let failed = |check: &&Check| check.outcome == Outcome::Failed;
            let checks = profile.checks.iter().filter(failed);
            checks.map(move |check| (profile, check))
        })
    }
}

impl ProfileCertificate {
    fn judge(&mut self, significance: f64) {
        for check in &mut self.checks {
            check.outcome = match (check.p, check.limit) {
                (Some(p), _) if p < significance => Outcome::Failed,
                (None, Some(limit)) if check.found.is_nan() || check.found > limit => {
                    Outcome::Failed
                }
                (None, None) => Outcome::Unjudged,
                _ => Outcome::Passed,
            };
        }
        let failed = self.checks.iter().any(|c| c.outcome == Outcome::Failed);
        let proven = self
            .checks
            .iter()
            .any(|c| c.of == Of::Intended && c.outcome == Outcome::Passed);
        self.verdict = if self.lag.is_void() {
            Verdict::Void
        } else if failed {
            Verdict::Failed
        } else if proven || self.is_recorded && self.sends > 0 {
            Verdict::Good
        } else {
            Verdict::Unproven
        };
    }
}

impl Check {
    /// A check that is only reported, until it is given a probability or a limit.
    const fn new(name: &'static str, of: Of, found: f64, expected: Option<f64>) -> Self {
        Self {
            name,
            of,
            found,
            expected,
            interval: None,
            p: None,
            limit: None,
            outcome: Outcome::Unjudged,
        }
    }

    const fn p(mut self, p: f64) -> Self {
        self.p = Some(p);
        self
    }

    /// With a probability where `enough` is known for one.
    fn p_if(mut self, enough: bool, p: f64) -> Self {
        self.p = (enough && p.is_finite()).then_some(p);
        self
    }

    const fn limit(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self
    }

    const fn interval(mut self, interval: [f64; 2]) -> Self {
        self.interval = Some(interval);
        self
    }
}

impl Verdict {
    /// The word for it in tables and files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Unproven => "unproven",
            Self::Failed => "failed",
            Self::Void => "void",
        }
    }
}
