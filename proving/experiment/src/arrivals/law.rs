//! The law of an actor's gaps, without its chance: what a certificate holds observed times against.
//!
//! Invariant: for a continuous law and gaps drawn from it, [`Law::uniform`] gives independent values that are uniform
//! between 0 and 1 (the probability integral transform). For a modulated law that is so given its hidden chain.
//! Not here: drawing (`pace`).

use std::time::Duration;

use super::{Actor, Chain, Process, Scope};
use crate::statistics::special::gamma_pq;

/// Gaps up to this are told apart from others of as many nanoseconds.
const SHORT: Duration = Duration::from_micros(1);

/// A gamma law in whole nanoseconds: what a gap has beyond them is carried over to the next (`pace`), so that a gap of
/// `x` becomes the whole part of `x + c`, with `c` uniform between 0 and 1.
struct Rounded {
    shape: f64,
    scale_ns: f64,
}

impl Rounded {
    /// The probability of at most so many: the mean of the law between `ns` and `ns + 1`.
    fn at_most(&self, ns: f64) -> f64 {
        if ns < 0.0 {
            return 0.0;
        }
        self.integral(ns + 1.0) - self.integral(ns)
    }

    /// Of the law from 0 to `t`, by parts: `t P(a, t/s) - a s P(a + 1, t/s)`.
    fn integral(&self, t: f64) -> f64 {
        let x = t / self.scale_ns;
        let (below, next) = (gamma_pq(self.shape, x).0, gamma_pq(self.shape + 1.0, x).0);
        t.mul_add(below, -self.shape * self.scale_ns * next)
    }
}

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
    /// For a modulated law it is `1 - exp(-integral of the rate)`, given the hidden chain. Times are whole nanoseconds,
    /// and bursty gamma gaps are often shorter than one: `within` (uniform between 0 and 1, another for each gap)
    /// says which of the gaps that become the same number of nanoseconds it was, so that short ones are uniform too.
    pub fn uniform(&mut self, from: Duration, at: Duration, within: f64) -> Option<f64> {
        let gap = at.saturating_sub(from);
        match &mut self.0 {
            Kind::Discrete => None,
            Kind::Gamma { shape, scale } if *shape == 1.0 => {
                Some(-(-gap.as_secs_f64() / *scale).exp_m1())
            }
            Kind::Gamma { shape, scale } if gap > SHORT => {
                Some(gamma_pq(*shape, gap.as_secs_f64() / *scale).0)
            }
            Kind::Gamma { shape, scale } => {
                let rounded = Rounded {
                    shape: *shape,
                    scale_ns: *scale * 1e9,
                };
                let ns = gap.as_nanos() as f64;
                let (least, most) = (rounded.at_most(ns - 1.0), rounded.at_most(ns));
                Some((most - least).mul_add(within, least))
            }
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
