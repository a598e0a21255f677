//! One actor under a law: when it acts next.
//!
//! Invariant: the same actor told the same things acts at the same moments, whoever else acts. Fractions of a
//! nanosecond are carried, so that a constant rate stays exact however long it goes on.
//! Not here: what is asked (`workload`).

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{Actor, Chain, Law, Process, Scope, Trace};
use crate::random::Rng;

/// Names of the streams of actors, apart from those of chains.
const STREAM: u64 = 1;
/// Gaps are cut here, at 31 years: no run is as long.
const LONGEST_S: f64 = 1e9;

/// When something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// What the gap counts from: the answer before, or the arrival before.
    pub from: Duration,
    /// The moment, since the start of the run.
    pub at: Duration,
    /// Whether the gap has the process's law; a recorded pause and a first entry have not.
    pub drawn: bool,
}

/// One actor under a law.
#[derive(Debug, Clone)]
pub struct Pace {
    kind: Kind,
    law: Law,
    rng: Rng,
    /// Nanoseconds below 1 that the answer before left over.
    carry_ns: f64,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant { mean_s: f64 },
    Exponential { mean_s: f64 },
    Gamma { shape: f64, scale: f64 },
    Modulated(Chain),
    Trace { trace: Trace, next: usize },
    Recorded,
}

impl Pace {
    /// The pace of `actor`, whose hidden chain, if the process has one, is shared in `scope`.
    #[must_use]
    pub fn new(seed: u64, scope: Scope, actor: Actor, process: &Process) -> Self {
        let kind = match process {
            &Process::Constant { mean_s } => Kind::Constant { mean_s },
            &Process::Exponential { mean_s } => Kind::Exponential { mean_s },
            &Process::Gamma { mean_s, cv } => Kind::Gamma {
                shape: (cv * cv).recip(),
                scale: mean_s * cv * cv,
            },
            &Process::Mmpp(mmpp) => Kind::Modulated(Chain::new(seed, scope, actor, mmpp)),
            Process::Trace(trace) => Kind::Trace {
                trace: trace.clone(),
                next: 0,
            },
            Process::Recorded => Kind::Recorded,
        };
        Self {
            kind,
            law: Law::new(seed, scope, actor, process),
            rng: Rng::stream(seed, &[STREAM, u64::from(actor.profile), actor.number]),
            carry_ns: 0.0,
        }
    }

    /// The next moment; `None` once a trace is over.
    ///
    /// `from` is the end of the answer before, for a user with think times, or the arrival before, for arrivals.
    /// `recorded` is the pause that the session itself has, which is followed under [`Process::Recorded`] alone; where
    /// it has none, the next moment is `from`. A trace's moments are its own, whatever `from` is.
    pub fn next(&mut self, from: Duration, recorded: Option<Duration>) -> Option<Due> {
        let start_s = from.as_secs_f64();
        let gap_s = match &mut self.kind {
            Kind::Constant { mean_s } => *mean_s,
            Kind::Exponential { mean_s } => self.rng.exponential(*mean_s),
            Kind::Gamma { shape, scale } => self.rng.gamma(*shape, *scale),
            Kind::Modulated(chain) => {
                let amount = self.rng.exponential(1.0);
                chain.reach(start_s, amount) - start_s
            }
            Kind::Trace { trace, next } => {
                let at = trace.arrivals().get(*next)?.at;
                *next += 1;
                let drawn = true;
                return Some(Due { from, at, drawn });
            }
            Kind::Recorded => {
                let at = from.saturating_add(recorded.unwrap_or_default());
                let drawn = false;
                return Some(Due { from, at, drawn });
            }
        };
        let at = from.saturating_add(self.round(gap_s));
        let drawn = true;
        Some(Due { from, at, drawn })
    }

    /// The probability of a gap at most as long as that from `from` to `at`: [`Law::uniform`].
    pub fn uniform(&mut self, from: Duration, at: Duration, within: f64) -> Option<f64> {
        self.law.uniform(from, at, within)
    }

    fn round(&mut self, gap_s: f64) -> Duration {
        let ns = gap_s.min(LONGEST_S) * 1e9 + self.carry_ns;
        self.carry_ns = ns.fract();
        Duration::from_nanos(ns as u64)
    }
}
