//! The law of an actor's gaps, without its chance: what a certificate holds observed times against.
//!
//! Invariant: for a continuous law and gaps drawn from it, [`Law::uniform`] gives independent values that are uniform
//! between 0 and 1 (the probability integral transform). For a modulated law that is so given its hidden chain.
//! Not here: drawing (`pace`).

use std::time::Duration;

use super::{Actor, Chain, Process, Scope};
use crate::statistics::special::gamma_pq;

/// The law of one actor.
#[derive(Debug, Clone)]
pub struct Law(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Discrete,
    Gamma { shape: f64, scale: f64 },
    Modulated(Chain),
}

impl Law {
    /// The law of this actor under this process.
    #[must_use]
    pub fn new(seed: u64, scope: Scope, actor: Actor, process: &Process) -> Self {
        Self(match *process {
            Process::Constant { .. } | Process::Trace(_) | Process::Recorded => Kind::Discrete,
            Process::Exponential { mean_s } => Kind::Gamma {
                shape: 1.0,
                scale: mean_s,
            },
            Process::Gamma { mean_s, cv } => Kind::Gamma {
                shape: (cv * cv).recip(),
                scale: mean_s * cv * cv,
            },
            Process::Mmpp(mmpp) => Kind::Modulated(Chain::new(seed, scope, actor, mmpp)),
        })
    }

    /// The probability of a gap at most as long as that from `from` to `at`; `None` where the law leaves nothing to
    /// chance (constant, trace, recorded).
    ///
    /// For a modulated law it is `1 - exp(-integral of the rate)`, given the hidden chain. Times are whole nanoseconds;
    /// of other laws a gap is taken half of one longer, since bursty gamma gaps are often shorter than one.
    pub fn uniform(&mut self, from: Duration, at: Duration) -> Option<f64> {
        let gap = at.saturating_sub(from).as_secs_f64() + 0.5e-9;
        match &mut self.0 {
            Kind::Discrete => None,
            Kind::Gamma { shape, scale } if *shape == 1.0 => Some(-(-gap / *scale).exp_m1()),
            Kind::Gamma { shape, scale } => Some(gamma_pq(*shape, gap / *scale).0),
            Kind::Modulated(chain) => {
                let sum = chain.integral(from.as_secs_f64(), at.max(from).as_secs_f64());
                Some(-(-sum).exp_m1())
            }
        }
    }

    /// The hidden chain, where there is one.
    #[must_use]
    pub const fn chain(&self) -> Option<&Chain> {
        match &self.0 {
            Kind::Modulated(chain) => Some(chain),
            Kind::Discrete | Kind::Gamma { .. } => None,
        }
    }
}
