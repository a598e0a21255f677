//! The hidden trajectory of a modulated process: when it is in its high state.
//!
//! Invariant: a pure function of seed, name and sojourns: two copies agree at every moment, in whatever order they are
//! asked. It begins in its stationary state.
//! Not here: rates of arrivals (`mmpp`).

#[cfg(test)]
mod tests;

use super::{Actor, Mmpp, Scope};
use crate::random::Rng;

/// Names of the streams of chains, apart from those of actors.
const STREAM: u64 = 2;

/// A trajectory with a place in it. Copies are cheap, and each goes forward by itself.
#[derive(Debug, Clone)]
pub struct Chain {
    start: Rng,
    mmpp: Mmpp,
    rng: Rng,
    now: Sojourn,
}

/// A stay in one state; times in seconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sojourn {
    /// Whether the state is the high one.
    pub on: bool,
    /// It begins.
    pub from_s: f64,
    /// It ends.
    pub to_s: f64,
}

impl Chain {
    /// The trajectory that this actor shares with everybody in `scope`.
    #[must_use]
    pub fn new(seed: u64, scope: Scope, actor: Actor, mmpp: Mmpp) -> Self {
        let profile = u64::from(actor.profile);
        let start = match scope {
            Scope::User => Rng::stream(seed, &[STREAM, profile, actor.number]),
            Scope::Profile => Rng::stream(seed, &[STREAM, profile]),
            Scope::Fleet => Rng::stream(seed, &[STREAM]),
        };
        let (rng, now) = begin(&start, &mmpp);
        Self {
            start,
            mmpp,
            rng,
            now,
        }
    }

    /// The parameters.
    #[must_use]
    pub const fn mmpp(&self) -> &Mmpp {
        &self.mmpp
    }

    /// The stay that holds this moment; the trajectory stands there afterwards. To go back begins anew.
    pub fn seek(&mut self, at_s: f64) -> Sojourn {
        if at_s < self.now.from_s {
            (self.rng, self.now) = begin(&self.start, &self.mmpp);
        }
        while at_s >= self.now.to_s {
            self.advance();
        }
        self.now
    }

    /// Goes on to the next stay.
    pub fn advance(&mut self) -> Sojourn {
        let on = !self.now.on;
        let from_s = self.now.to_s;
        let to_s = from_s + self.rng.exponential(mean(&self.mmpp, on));
        self.now = Sojourn { on, from_s, to_s };
        self.now
    }

    /// Arrivals expected between two moments, given the trajectory: the integral of the rate.
    pub fn integral(&mut self, from_s: f64, to_s: f64) -> f64 {
        self.seek(from_s);
        let mut ahead = self.clone();
        let mut sum = 0.0;
        loop {
            let begin = ahead.now.from_s.max(from_s);
            let end = ahead.now.to_s.min(to_s);
            sum += ahead.mmpp.rate_in(ahead.now.on) * (end - begin).max(0.0);
            if ahead.now.to_s >= to_s {
                return sum;
            }
            ahead.advance();
        }
    }

    /// The moment at which the integral of the rate from `from_s` on reaches `amount`.
    pub fn reach(&mut self, from_s: f64, amount: f64) -> f64 {
        self.seek(from_s);
        let (mut at, mut left) = (from_s, amount);
        loop {
            let rate = self.mmpp.rate_in(self.now.on);
            let held = rate * (self.now.to_s - at);
            if held >= left && rate > 0.0 {
                return at + left / rate;
            }
            left -= held;
            at = self.now.to_s;
            self.advance();
        }
    }

    /// Share of time in the high state from the start of the run to this moment.
    pub fn occupancy(&mut self, to_s: f64) -> f64 {
        let mut stay = self.seek(0.0);
        let mut sum = 0.0;
        while stay.from_s < to_s {
            if stay.on {
                sum += stay.to_s.min(to_s) - stay.from_s;
            }
            stay = self.advance();
        }
        sum / to_s
    }
}

fn begin(start: &Rng, mmpp: &Mmpp) -> (Rng, Sojourn) {
    let mut rng = start.clone();
    let on = rng.unit() < mmpp.occupancy();
    let to_s = rng.exponential(mean(mmpp, on));
    let from_s = 0.0;
    (rng, Sojourn { on, from_s, to_s })
}

const fn mean(mmpp: &Mmpp, on: bool) -> f64 {
    if on { mmpp.on_s() } else { mmpp.off_s() }
}
