//! Limits: a rate of requests or tokens over a window.
//!
//! A limit is one token bucket that every core shares: a single atomic holding the *theoretical
//! arrival time* (GCRA, ITU-T I.371), the moment at which the bucket would be full again. Taking
//! moves it later, giving back moves it earlier, and a settled overspend moves it as far as it
//! must go: debt is carried and not forgiven.
//! Invariant: over any window `w`, units used by what was admitted in it ≤ rate × w + burst + the
//! misestimates of exchanges in flight at its edges: what those admitted before it give back
//! inside it, and what those admitted in it overran without having settled. Requests have no
//! misestimate. Exact on any number of cores: there is no lease, so nothing is stranded on an
//! idle core. Rounding to nanoseconds gives away less than one unit in all, and nothing where
//! `per / amount` is whole.
//! Not here: amounts over a calendar period (budgets), what a call will cost ([`crate::estimate`]), limits that admit no
//! more than their amount in any window ([`rolling`]).

pub mod rolling;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::clock::{Mono, nanos};

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Exchanges admitted.
    Requests,
    /// LLM tokens, prompt and completion together.
    Tokens,
}

impl Kind {
    /// Whether what a call came to is known only at its end, and corrects what was taken for it.
    #[must_use]
    pub fn is_settled(self) -> bool {
        match self {
            Self::Requests => false,
            Self::Tokens => true,
        }
    }

    /// The word used in headers, metric labels and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
        }
    }
}

/// How a limit counts over its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Window {
    /// By a bucket that refills evenly: over a window its amount, and its burst on top.
    #[default]
    Bucket,
    /// By what any window holds: never more than the amount.
    Rolling,
}

impl Window {
    /// The word for it in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Rolling => "rolling",
        }
    }
}

/// `amount` units per `per`, with room for `burst` at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Units refilled over one `per`; at least 1.
    pub amount: u64,
    /// The window.
    pub per: Duration,
    /// Units that an idle bucket holds; at least 1.
    pub burst: u64,
}

/// A shared bucket. Cores meet here and in the snapshot swap, nowhere else; each bucket has cache
/// lines of its own, so that cores that use different ones do not meet.
#[derive(Debug)]
#[repr(align(128))]
pub struct Bucket {
    terms: Terms<1>,
    /// Theoretical arrival time, [`Mono`] nanoseconds.
    tat: AtomicI64,
    /// The bucket that took its place with another rate, and what it owed.
    next: OnceLock<Arc<Self>>,
}

/// A rate, and how it moves the arrival time of a bucket, in steps of `GRAIN` nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<const GRAIN: i64> {
    rate: Rate,
    /// The window of its rate, nanoseconds.
    per: u64,
    /// How far the arrival time may lie ahead, nanoseconds.
    room: i64,
}

/// Why a bucket would not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Enough again after this long.
    Wait(Duration),
    /// More than the burst: no wait would help.
    Never,
    /// A rolling window of its own has no place for another key or user.
    NoPlace,
}

/// What a bucket holds at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Units left; 0 while in debt.
    pub remaining: u64,
    /// Time until the bucket is full again.
    pub reset: Duration,
}

impl<const GRAIN: i64> Terms<GRAIN> {
    /// Those of a rate.
    pub(crate) fn of(rate: Rate) -> Self {
        let mut terms = Self {
            rate,
            per: nanos(rate.per).unsigned_abs(),
            room: 0,
        };
        terms.room = terms.room();
        terms
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Where a take of `units` brings an arrival time.
    ///
    /// # Errors
    /// [`Denied`] when the bucket does not hold `units` now.
    #[inline]
    pub(crate) fn taken(&self, tat: i64, units: u64, now: Mono) -> Result<i64, Denied> {
        if units > self.rate.burst {
            return Err(Denied::Never);
        }
        let now = whole::<GRAIN>(now);
        let next = tat.max(now).saturating_add(self.cost(units));
        let over = next.saturating_sub(now).saturating_sub(self.room);
        if over > 0 {
            return Err(Denied::Wait(Duration::from_nanos(over.unsigned_abs())));
        }
        Ok(next)
    }

    /// How much later an arrival time is that is corrected from `reserved` to `actual`.
    #[inline]
    pub(crate) fn correction(&self, reserved: u64, actual: u64) -> i64 {
        self.cost(actual).saturating_sub(self.cost(reserved))
    }

    /// Where a correction brings an arrival time.
    #[inline]
    pub(crate) fn settled(tat: i64, correction: i64, now: Mono) -> i64 {
        let now = whole::<GRAIN>(now);
        tat.max(now).saturating_add(correction).max(now)
    }

    /// What a bucket with this arrival time holds.
    pub(crate) fn level(&self, tat: i64, now: Mono) -> Level {
        let owed = tat.saturating_sub(now.0).max(0);
        let free = self.room.saturating_sub(owed).max(0);
        let (free, per) = (free.unsigned_abs(), self.per.max(1));
        let units = match free.checked_mul(self.rate.amount) {
            Some(product) => u128::from(product / per),
            None => u128::from(free) * u128::from(self.rate.amount) / u128::from(per),
        };
        Level {
            remaining: u64::try_from(units)
                .unwrap_or(u64::MAX)
                .min(self.rate.burst),
            reset: Duration::from_nanos(owed.unsigned_abs()),
        }
    }

    /// How far the arrival time may lie ahead. Each take is rounded up, so that a whole burst in
    /// single units would not fit into its cost; the excess is granted up to half a unit.
    fn room(&self) -> i64 {
        let (one, burst) = (self.cost(1), self.rate.burst);
        let singly = one.saturating_mul(i64::try_from(burst).unwrap_or(i64::MAX));
        singly
            .min(self.cost(burst).saturating_add(one / 2))
            .min(COST_MOST)
    }

    #[inline]
    fn cost(&self, units: u64) -> i64 {
        let cost = cost(self.per, self.rate.amount, units);
        if GRAIN == 1 {
            return cost;
        }
        cost.saturating_add(GRAIN - 1) / GRAIN * GRAIN
    }
}

/// A moment in whole grains, rounded down.
#[inline]
fn whole<const GRAIN: i64>(now: Mono) -> i64 {
    if GRAIN == 1 {
        return now.0;
    }
    now.0.div_euclid(GRAIN).saturating_mul(GRAIN)
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            terms: Terms::of(rate),
            tat: AtomicI64::new(i64::MIN / 2),
            next: OnceLock::new(),
        }
    }

    /// A bucket with a new rate that keeps what the old one owed, so that a reload neither
    /// forgives debt nor invents it. What is taken from the old one or settled with it from now on, until the last call
    /// that began with it ends, is taken from this one and settled with it too; but for a take that is under way just
    /// now, which may be missing here.
    #[must_use]
    pub fn carried(rate: Rate, old: &Self, now: Mono) -> Arc<Self> {
        let owed = old.tat.load(Ordering::Relaxed).saturating_sub(now.0);
        let bucket = Self::new(rate);
        if owed > 0 {
            let owed = exchanged(owed, old.rate(), rate);
            bucket
                .tat
                .store(now.0.saturating_add(owed), Ordering::Relaxed);
        }
        let bucket = Arc::new(bucket);
        // Behind those of configurations that were refused after all.
        let mut last = old;
        while last.next.set(Arc::clone(&bucket)).is_err() {
            let Some(next) = last.next.get() else { break };
            last = next;
        }
        bucket
    }

    /// A bucket that owes so many units.
    #[must_use]
    pub fn owing(rate: Rate, units: u64, now: Mono) -> Self {
        let bucket = Self::new(rate);
        bucket.correct(0, units, now);
        bucket
    }

    /// The rate it was made with.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.terms.rate()
    }

    /// Units that it lacks now, rounded up.
    pub(crate) fn owed(&self, now: Mono) -> u64 {
        let Rate { amount, per, .. } = self.rate();
        let scaled = self.level(now).reset.as_nanos() * u128::from(amount);
        let units = scaled.div_ceil(per.as_nanos().max(1));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// Takes `units`, or takes nothing and says how long to wait.
    ///
    /// # Errors
    /// [`Denied`] when the bucket does not hold `units` now.
    pub fn take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        // Before it is taken: one that is there has not carried it over.
        let later = self.next.get();
        let mut seen = self.tat.load(Ordering::Relaxed);
        loop {
            let next = self.terms.taken(seen, units, now)?;
            match self
                .tat
                .compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now_there) => seen = now_there,
            }
        }
        if let Some(later) = later {
            later.settle_in_turn(0, units, now);
        }
        Ok(())
    }

    /// Whether a [`Bucket::take`] would succeed now. Takes nothing.
    ///
    /// # Errors
    /// What that would say.
    pub fn would_take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        let seen = self.tat.load(Ordering::Relaxed);
        self.terms.taken(seen, units, now).map(drop)
    }

    /// Corrects an earlier `take(reserved)` to what was really used. What is given back fills the
    /// bucket and never overfills it; an overspend is owed from now on, however long the bucket
    /// was idle.
    pub fn settle(&self, reserved: u64, actual: u64, now: Mono) {
        if let Some(next) = self.next.get() {
            next.settle_in_turn(reserved, actual, now);
        }
        self.correct(reserved, actual, now);
    }

    /// As [`Self::settle`], in this bucket alone.
    fn correct(&self, reserved: u64, actual: u64, now: Mono) {
        let correction = self.terms.correction(reserved, actual);
        if correction == 0 {
            return;
        }
        let mut seen = self.tat.load(Ordering::Relaxed);
        loop {
            let next = Terms::<1>::settled(seen, correction, now);
            match self
                .tat
                .compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now_there) => seen = now_there,
            }
        }
    }

    /// As [`Self::settle`], with what an earlier bucket gave; apart, so that the usual case stays in line.
    #[cold]
    fn settle_in_turn(&self, reserved: u64, actual: u64, now: Mono) {
        let mut bucket = Some(self);
        while let Some(now_its) = bucket {
            now_its.correct(reserved, actual, now);
            bucket = now_its.next.get().map(|next| &**next);
        }
    }

    /// What it holds now.
    #[must_use]
    pub fn level(&self, now: Mono) -> Level {
        self.terms.level(self.tat.load(Ordering::Relaxed), now)
    }
}

/// Nanoseconds of refill that `units` stand for, rounded up: rounding never admits more.
fn cost(per: u64, amount: u64, units: u64) -> i64 {
    let amount = amount.max(1);
    // Most products fit a machine word, in which division is several times cheaper.
    let ns = match units.checked_mul(per) {
        Some(product) => product.div_ceil(amount),
        None => wide_cost(per, amount, units),
    };
    i64::try_from(ns).unwrap_or(COST_MOST).min(COST_MOST)
}

#[cold]
fn wide_cost(per: u64, amount: u64, units: u64) -> u64 {
    let ns = (u128::from(units) * u128::from(per)).div_ceil(u128::from(amount));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A cap far below `i64::MAX` keeps sums from saturating into one another: 73 years of refill, the most that is owed for
/// one call, and after a reload to a slower rate.
const COST_MOST: i64 = i64::MAX / 4;

/// What `owed` nanoseconds of refill at one rate are at another, for the same units; rounded up.
fn exchanged(owed: i64, from: Rate, to: Rate) -> i64 {
    let wide = |d: Duration| u128::from(nanos(d).unsigned_abs().max(1));
    let (from_per, to_per) = (wide(from.per), wide(to.per));
    let scaled = u128::from(owed.unsigned_abs()) * u128::from(from.amount);
    let (whole, rest) = (scaled / from_per, scaled % from_per);
    let ns = whole
        .saturating_mul(to_per)
        .saturating_add((rest * to_per).div_ceil(from_per))
        .div_ceil(u128::from(to.amount.max(1)));
    i64::try_from(ns).unwrap_or(i64::MAX).min(COST_MOST)
}

#[cfg(test)]
mod tests;
