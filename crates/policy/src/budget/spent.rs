//! What a budget's calls came to and may come to, one atomic for each period.
//!
//! A period's atomic exists before its first call and stays: nothing is ever reset, so a late
//! settlement finds its own period, and a clock that is set back finds what was spent before.
//! Invariant: a take that returns true has brought the sum to at most the amount it was given.
//! Not here: which budgets count a call, and in which unit (`budget`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::period::{Calendar, Period};

/// 2020-01-01, milliseconds since the Unix epoch: the first period there is.
const FIRST_MS: u64 = 1_577_836_800_000;
/// Periods that are made together.
const CHUNK: usize = 64;
/// Enough for the days of 89 years; what lies outside counts in the first or the last period.
const CHUNKS: usize = 512;
/// A cap far below `i64::MAX` keeps sums from saturating into one another.
const MOST: i64 = i64::MAX / 4;

/// The sums of one budget.
#[derive(Debug)]
pub struct Spent {
    first: Period,
    chunks: Box<[OnceLock<Box<Chunk>>]>,
}

/// Cache lines of its own, so that cores that use different budgets do not meet.
#[derive(Debug)]
#[repr(align(128))]
struct Chunk([Cell; CHUNK]);

#[derive(Debug, Default)]
struct Cell {
    /// Spent and reserved, together.
    held: AtomicI64,
    /// Spent alone: what a running call has reserved it says itself.
    used: AtomicI64,
    refused: AtomicU64,
}

/// Where a period stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// Spent and reserved, together.
    pub held: u64,
    /// Spent alone.
    pub used: u64,
    /// Calls that it was too small for.
    pub refused: u64,
}

impl Spent {
    /// Nothing spent in any period.
    #[must_use]
    pub fn new(calendar: Calendar) -> Self {
        Self {
            first: calendar.of(FIRST_MS),
            chunks: std::iter::repeat_with(OnceLock::new).take(CHUNKS).collect(),
        }
    }

    /// Whether so many units fit now.
    #[must_use]
    pub fn fits(&self, period: Period, units: u64, amount: u64) -> bool {
        self.cell(period).is_none_or(|cell| {
            let held = cell.held.load(Ordering::Relaxed);
            held.saturating_add(whole(units)) <= whole(amount)
        })
    }

    /// Takes `units` if then no more than `amount` is held.
    #[must_use]
    pub fn take(&self, period: Period, units: u64, amount: u64) -> bool {
        let Some(cell) = self.cell(period) else {
            return false;
        };
        let taken = cell
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                let next = held.saturating_add(whole(units));
                (next <= whole(amount)).then_some(next)
            });
        taken.is_ok()
    }

    /// Corrects an earlier take of `reserved` to what was really used, however much that is.
    pub fn settle(&self, period: Period, reserved: u64, actual: u64) {
        let Some(cell) = self.cell(period) else {
            return;
        };
        let add = |to: &AtomicI64, delta: i64| {
            if delta != 0 {
                // The closure always has an answer.
                let _seen = to.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                    Some(held.saturating_add(delta).clamp(0, MOST))
                });
            }
        };
        add(&cell.held, whole(actual) - whole(reserved));
        add(&cell.used, whole(actual));
    }

    /// Counts a call that did not fit.
    pub fn refused(&self, period: Period) {
        if let Some(cell) = self.cell(period) {
            cell.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Where a period stands.
    #[must_use]
    pub fn level(&self, period: Period) -> Level {
        self.cell(period).map_or_else(Level::default, |cell| Level {
            held: u64::try_from(cell.held.load(Ordering::Relaxed)).unwrap_or(0),
            used: u64::try_from(cell.used.load(Ordering::Relaxed)).unwrap_or(0),
            refused: cell.refused.load(Ordering::Relaxed),
        })
    }

    fn cell(&self, period: Period) -> Option<&Cell> {
        let at = usize::try_from(period.0.saturating_sub(self.first.0)).unwrap_or(0);
        let at = at.min(CHUNKS * CHUNK - 1);
        let chunk = self.chunks.get(at / CHUNK)?;
        let made = chunk.get_or_init(|| Box::new(Chunk(std::array::from_fn(|_| Cell::default()))));
        made.0.get(at % CHUNK)
    }
}

fn whole(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(MOST).min(MOST)
}

#[cfg(test)]
mod tests {
    //! What of a period is used, and what is only held.

    use super::*;
    use crate::budget::{Calendar, Every};

    #[test]
    fn what_a_running_call_holds_is_not_used() {
        let calendar = Calendar {
            every: Every::Month,
            east_min: 0,
        };
        let (spent, period) = (Spent::new(calendar), calendar.of(FIRST_MS));
        let level = || {
            let level = spent.level(period);
            (level.held, level.used)
        };
        assert!(spent.take(period, 2_000_000_000, u64::MAX));
        assert_eq!(level(), (2_000_000_000, 0));
        spent.settle(period, 2_000_000_000, 1500);
        assert_eq!(level(), (1500, 1500));
        // What is on record at the start was used; a call that never was was not.
        spent.settle(period, 0, 500);
        assert!(spent.take(period, 10, u64::MAX));
        spent.settle(period, 10, 0);
        assert_eq!(level(), (2000, 2000));
    }
}
