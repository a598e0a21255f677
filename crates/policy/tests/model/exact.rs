//! The model: a level in fractions of a unit, refilled by time, capped at the burst.

use policy::limit::Rate;

/// A bucket whose level is counted in units × window nanoseconds, so that no step rounds.
#[derive(Debug, Clone)]
pub(super) struct Exact {
    rate: Rate,
    level: i128,
    seen_ns: i64,
}

impl Exact {
    pub(super) fn new(rate: Rate) -> Self {
        let level = i128::from(rate.burst) * per_ns(rate);
        Self {
            rate,
            level,
            seen_ns: 0,
        }
    }

    /// Refills up to `now_ns`.
    pub(super) fn advance(&mut self, now_ns: i64) {
        let gone = i128::from(now_ns - self.seen_ns);
        let full = i128::from(self.rate.burst) * per_ns(self.rate);
        self.level = (self.level + gone * i128::from(self.rate.amount)).min(full);
        self.seen_ns = now_ns;
    }

    pub(super) fn take(&mut self, units: u64) {
        self.level -= i128::from(units) * per_ns(self.rate);
    }

    /// Gives back or charges, and never overfills.
    pub(super) fn settle(&mut self, reserved: u64, actual: u64) {
        self.take(actual);
        self.level += i128::from(reserved) * per_ns(self.rate);
        self.advance(self.seen_ns);
    }

    /// Keeps what is owed, in units, at another rate.
    pub(super) fn carry(&mut self, rate: Rate) {
        let full = i128::from(self.rate.burst) * per_ns(self.rate);
        let owed = full - self.level;
        let (from, to) = (per_ns(self.rate), per_ns(rate));
        // Divides last; the remainder is less than the slack of one operation.
        self.level = i128::from(rate.burst) * to - owed * to / from;
        self.rate = rate;
    }

    /// Whether `units` more would not fit, even with `slack` units besides.
    #[expect(clippy::cast_precision_loss, reason = "the slack itself is a bound")]
    pub(super) fn lacks(&self, units: u64, slack: f64) -> bool {
        let short = i128::from(units) * per_ns(self.rate) - self.level;
        short as f64 > slack * per_ns(self.rate) as f64
    }
}

fn per_ns(rate: Rate) -> i128 {
    i128::try_from(rate.per.as_nanos()).expect("a window of years at most")
}
