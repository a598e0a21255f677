//! A limit by a rolling window: at most so many units in *any* window of its length.
//!
//! A unit counts from the moment at which its call was admitted until one window later. What a call used beyond what it
//! reserved counts from the moment at which that is known: it is owed, and nothing is admitted until the window holds less.
//! Invariant: in no window of its length are more units admitted than the amount, however many workers take; what calls
//! overran, and that alone, comes on top. A refusal is never too late; how much too early it can be is said by
//! [`Times`], which is exact, and by [`Cells`]. There is no lock: all state is atomics, moved by compare-and-swap.
//! Not here: buckets, which refill evenly ([`crate::limit`]); which limit is counted how ([`crate::levels`]).

mod cells;
mod times;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::cells::Cells;
use self::times::Times;
use super::{Denied, Kind, Level, Rate};
use crate::clock::{Mono, nanos};

/// A shared window.
#[derive(Debug)]
#[repr(align(128))]
pub struct Rolling {
    rate: Rate,
    held: Held,
    /// The window that took its place with another rate, and what it held.
    next: OnceLock<Arc<Self>>,
}

#[derive(Debug)]
enum Held {
    Times(Times),
    Cells(Cells),
}

/// How much a window may take of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It is the only one of its limit: at most 8 KiB.
    Ample,
    /// Each key or user has one: at most 512 bytes.
    Scant,
}

impl Room {
    /// Most requests of a window that are kept one by one.
    fn times(self) -> u64 {
        match self {
            Self::Ample => 1024,
            Self::Scant => 64,
        }
    }

    /// Cells of other windows.
    fn cells(self) -> u32 {
        match self {
            Self::Ample => 128,
            Self::Scant => 32,
        }
    }
}

/// What a call took, and when: what is given back is given back there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Units.
    pub reserved: u64,
    /// The `now` of its take.
    pub at: Mono,
}

impl Rolling {
    /// A window in which nothing was taken. Its burst is its amount.
    #[must_use]
    pub fn new(kind: Kind, rate: Rate, room: Room) -> Self {
        let per = nanos(rate.per).max(1);
        let held = match kind {
            Kind::Requests if rate.amount <= room.times() => {
                Held::Times(Times::new(rate.amount, per))
            }
            Kind::Requests | Kind::Tokens => {
                Held::Cells(Cells::new(rate.amount, per, room.cells()))
            }
        };
        Self {
            rate,
            held,
            next: OnceLock::new(),
        }
    }

    /// A window with a new rate that keeps what the old one held, at the moments at which that was taken. What is taken
    /// from the old one or settled with it from now on is taken from this one and settled with it too.
    #[must_use]
    pub fn carried(kind: Kind, rate: Rate, room: Room, old: &Self) -> Arc<Self> {
        let window = Self::new(kind, rate, room);
        for (at, units) in old.taken() {
            window.add(units, at);
        }
        let window = Arc::new(window);
        // Behind those of configurations that were refused after all.
        let mut last = old;
        while last.next.set(Arc::clone(&window)).is_err() {
            let Some(next) = last.next.get() else { break };
            last = next;
        }
        window
    }

    /// A window that holds so many units, as if they were taken now.
    #[must_use]
    pub fn holding(kind: Kind, rate: Rate, units: u64, now: Mono) -> Self {
        let window = Self::new(kind, rate, Room::Ample);
        window.add(units, now);
        window
    }

    /// The rate it was made with.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes `units`, or takes nothing and says how long to wait. Of requests, each take is one.
    ///
    /// # Errors
    /// [`Denied`] when the window does not have room for `units` now.
    pub fn take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        if units > self.rate.amount {
            return Err(Denied::Never);
        }
        // Before it is taken: one that is there has not carried it over.
        let later = self.next.get();
        match &self.held {
            Held::Times(times) => times.take(now.0),
            Held::Cells(cells) => cells.take(units, now.0),
        }
        .map_err(wait)?;
        if let Some(later) = later {
            later.each(|window| window.add(units, now));
        }
        Ok(())
    }

    /// Whether a [`Rolling::take`] would succeed now. Takes nothing.
    ///
    /// # Errors
    /// What that would say.
    pub fn would_take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        if units > self.rate.amount {
            return Err(Denied::Never);
        }
        match &self.held {
            Held::Times(times) => times.would_take(now.0),
            Held::Cells(cells) => cells.would_take(units, now.0),
        }
        .map_err(wait)
    }

    /// Corrects what a call is charged from `before` to `actual`. What it took too much is given back where it was taken,
    /// and if that is a window ago it counts no more; what it overran is owed from `now` on. One that is corrected again
    /// comes with the same `now`: the moment of its end.
    pub fn settle(&self, share: Share, before: u64, actual: u64, now: Mono) {
        self.each(|window| window.correct(share, before, actual, now));
    }

    /// What it holds now.
    #[must_use]
    pub fn level(&self, now: Mono) -> Level {
        let (held, reset) = match &self.held {
            Held::Times(times) => times.held(now.0),
            Held::Cells(cells) => cells.held(now.0),
        };
        Level {
            remaining: self.rate.amount.saturating_sub(held),
            reset: Duration::from_nanos(reset.unsigned_abs()),
        }
    }

    /// Whether nothing of it counts now.
    pub(crate) fn is_idle(&self, now: Mono) -> bool {
        self.units(now) == 0
    }

    /// Units of the window that ends now.
    pub(crate) fn units(&self, now: Mono) -> u64 {
        match &self.held {
            Held::Times(times) => times.held(now.0).0,
            Held::Cells(cells) => cells.held(now.0).0,
        }
    }

    /// Bytes that it takes, beside itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.held {
            Held::Times(times) => times.bytes(),
            Held::Cells(cells) => cells.bytes(),
        }
    }

    /// As [`Self::settle`], in this window alone.
    fn correct(&self, share: Share, before: u64, actual: u64, now: Mono) {
        match &self.held {
            Held::Times(times) if actual < before => times.give_back(share.at.0),
            Held::Times(_) => {}
            Held::Cells(cells) => {
                let of = |used: u64| {
                    let taken = used.min(share.reserved);
                    (taken, used - taken)
                };
                let ((taken, over), (taken_now, over_now)) = (of(before), of(actual));
                cells.correct(share.at.0, taken, taken_now, now.0);
                cells.correct(now.0, over, over_now, now.0);
            }
        }
    }

    /// Adds what was taken elsewhere, whether or not there is room.
    fn add(&self, units: u64, at: Mono) {
        match &self.held {
            Held::Times(times) => times.add(units, at.0),
            Held::Cells(cells) => cells.add(units, at.0),
        }
    }

    /// What was taken, and when, the earliest first.
    fn taken(&self) -> Vec<(Mono, u64)> {
        let mut taken = match &self.held {
            Held::Times(times) => times.taken(),
            Held::Cells(cells) => cells.taken(),
        };
        taken.sort_unstable();
        taken
    }

    /// This window and those that took its place.
    fn each(&self, act: impl Fn(&Self)) {
        let mut window = Some(self);
        while let Some(now_its) = window {
            act(now_its);
            window = now_its.next.get().map(|next| &**next);
        }
    }
}

fn wait(ns: i64) -> Denied {
    Denied::Wait(Duration::from_nanos(ns.max(1).unsigned_abs()))
}

#[cfg(test)]
mod tests;
