//! A window of tokens, or of many requests: sums over parts of it.
//!
//! Time is cut into parts of the window, and a cell holds what was taken in one: in one word the units and which part it
//! is, in another the latest moment at which some were taken. All units of a cell count until a window after that. What
//! all cells hold together is one atomic, and a take is decided there: it is ahead of the cells, never behind them, as
//! units go there first when they come, and leave it last.
//! Invariant: in no window is more admitted than the amount. A unit may count for one part of the window too long (of
//! 126 where callers share it, else of 30: 0.8 % and 3.4 %), and only where others were taken after it in that part.
//! Whoever comes with a clock behind another worker's, whose window has dropped units already, is counted as of that
//! window, so that none of those is missing. 16 bytes a cell.
//! Not here: requests that are few enough to be kept one by one (`times`).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::clock::Mono;

/// Cells beside those of a window: of the part that begins, and to spare.
const SPARE: i64 = 2;
/// In a word: the units.
const UNITS: u64 = (1 << UNIT_BITS) - 1;
const UNIT_BITS: u32 = 40;
/// How often a cell went to another part, modulo that.
const TURN: u64 = (1 << (u64::BITS - UNIT_BITS)) - 1;

#[derive(Debug)]
pub(super) struct Cells {
    amount: u64,
    per: i64,
    /// The length of a part.
    part: i64,
    /// In a part's number: which cell it has.
    bits: u32,
    /// What all cells hold, and what is on its way to one.
    held: AtomicU64,
    /// Up to when units have been dropped: those of the window before that moment may be missing.
    dropped: AtomicI64,
    cells: Box<[Cell]>,
}

#[derive(Debug)]
struct Cell {
    /// Units, and the turn of the part they are of.
    word: AtomicU64,
    /// When the latest of them came.
    latest: AtomicI64,
}

impl Cells {
    /// With so many cells, a power of two from 4 on.
    pub(super) fn new(amount: u64, per: i64, cells: u32) -> Self {
        let parts = i64::from(cells).saturating_sub(SPARE).max(1);
        let cell = || Cell {
            word: AtomicU64::new(0),
            latest: AtomicI64::new(i64::MIN),
        };
        Self {
            amount: amount.min(UNITS),
            per,
            part: per.saturating_add(parts - 1) / parts,
            bits: cells.trailing_zeros(),
            held: AtomicU64::new(0),
            dropped: AtomicI64::new(i64::MIN),
            cells: (0..cells).map(|_| cell()).collect(),
        }
    }

    /// Takes `units`, or says how many nanoseconds they do not fit.
    pub(super) fn take(&self, units: u64, now: i64) -> Result<(), i64> {
        loop {
            let mut held = self.held.load(Ordering::Acquire);
            if !self.admits(held, units) {
                self.drop_old(now);
                held = self.held.load(Ordering::Acquire);
                if !self.admits(held, units) {
                    return Err(self.wait(held, units, now));
                }
            }
            let sum = held.saturating_add(units);
            let taken = self
                .held
                .compare_exchange(held, sum, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                break;
            }
        }
        // After it is taken: what others dropped until then is known.
        self.put(units, now.max(self.dropped.load(Ordering::Acquire)));
        Ok(())
    }

    pub(super) fn would_take(&self, units: u64, now: i64) -> Result<(), i64> {
        let (held, _) = self.held(now);
        if self.admits(held, units) {
            return Ok(());
        }
        Err(self.wait(held, units, now))
    }

    fn admits(&self, held: u64, units: u64) -> bool {
        held.saturating_add(units) <= self.amount
    }

    /// How long it is until so many units have room.
    #[cold]
    fn wait(&self, held: u64, units: u64, now: i64) -> i64 {
        let mut short = held.saturating_add(units).saturating_sub(self.amount);
        let begin = self.nth(now.div_euclid(self.part).wrapping_add(1));
        let (before, from) = self
            .cells
            .split_at_checked(begin)
            .unwrap_or((&[], &self.cells));
        let mut wait = 0;
        // The oldest first.
        for cell in from.iter().chain(before) {
            let units = units_of(cell.word.load(Ordering::Acquire));
            let left = self.left(cell.latest.load(Ordering::Acquire), now);
            if units > 0 && left > 0 {
                wait = wait.max(left);
                short = short.saturating_sub(units);
            }
            if short == 0 {
                break;
            }
        }
        wait
    }

    /// Lets go of what counts no more.
    fn drop_old(&self, now: i64) {
        for cell in &self.cells {
            let mut word = cell.word.load(Ordering::Acquire);
            while units_of(word) > 0 {
                let latest = cell.latest.load(Ordering::Acquire);
                if self.left(latest, now) > 0 {
                    break;
                }
                let until = latest.saturating_add(self.per);
                self.dropped.fetch_max(until, Ordering::AcqRel);
                match cell.swap(word, word & !UNITS) {
                    Ok(_) => {
                        self.held.fetch_sub(units_of(word), Ordering::AcqRel);
                        break;
                    }
                    Err(seen) => word = seen,
                }
            }
        }
    }

    /// How long units of that moment still count.
    fn left(&self, at: i64, now: i64) -> i64 {
        at.saturating_add(self.per).saturating_sub(now)
    }

    /// Brings units that are taken to the cell of a moment.
    fn put(&self, units: u64, at: i64) {
        let Some((cell, turn)) = self.cell(at) else {
            return;
        };
        // Before they come: they must not be dropped as if they were as old as those that are there.
        let before = cell.latest.fetch_max(at, Ordering::AcqRel);
        if before.div_euclid(self.part) > at.div_euclid(self.part) {
            // The cell is a later part's: the moment is more than a window ago.
            self.held.fetch_sub(units, Ordering::AcqRel);
            return;
        }
        let mut word = cell.word.load(Ordering::Acquire);
        loop {
            let (its, there) = (turn_of(word), units_of(word));
            let stays = if its == turn { there } else { 0 };
            let sum = stays.saturating_add(units).min(UNITS);
            if stays < there {
                let until = at.div_euclid(self.part).saturating_mul(self.part);
                self.dropped.fetch_max(until, Ordering::AcqRel);
            }
            match cell.swap(word, turn << UNIT_BITS | sum) {
                Ok(_) => {
                    let gone = there.saturating_add(units).saturating_sub(sum);
                    self.held.fetch_sub(gone, Ordering::AcqRel);
                    return;
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Corrects what was taken at a moment. What is added after that moment's window counts from now on.
    pub(super) fn correct(&self, at: i64, before: u64, after: u64, now: i64) {
        if after > before {
            let now = now.max(self.dropped.load(Ordering::Acquire));
            let at = if self.left(at, now) > 0 { at } else { now };
            self.add(after - before, at);
        } else if before > after {
            self.give_back(before - after, at);
        }
    }

    /// Adds units of a moment, whether or not there is room.
    pub(super) fn add(&self, units: u64, at: i64) {
        let units = units.min(UNITS);
        self.held.fetch_add(units, Ordering::AcqRel);
        self.put(units, at);
    }

    /// Takes units out of the cell of a moment, while it has it.
    fn give_back(&self, units: u64, at: i64) {
        let Some((cell, turn)) = self.cell(at) else {
            return;
        };
        let mut word = cell.word.load(Ordering::Acquire);
        while turn_of(word) == turn {
            let given = units_of(word).min(units);
            match cell.swap(word, word - given) {
                Ok(_) => {
                    self.held.fetch_sub(given, Ordering::AcqRel);
                    return;
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Units of the window that ends now, and until the last of them counts no more.
    pub(super) fn held(&self, now: i64) -> (u64, i64) {
        let cells = self.cells.iter().map(|cell| {
            let units = units_of(cell.word.load(Ordering::Acquire));
            let left = self.left(cell.latest.load(Ordering::Acquire), now);
            (units, left)
        });
        let counting = cells.filter(|(units, left)| *units > 0 && *left > 0);
        counting.fold((0, 0), |(held, reset): (u64, i64), (units, left)| {
            (held.saturating_add(units), reset.max(left))
        })
    }

    pub(super) fn taken(&self) -> Vec<(Mono, u64)> {
        let cells = self.cells.iter().map(|cell| {
            let units = units_of(cell.word.load(Ordering::Acquire));
            (Mono(cell.latest.load(Ordering::Acquire)), units)
        });
        cells.filter(|(_, units)| *units > 0).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// The cell of a moment, and the turn in which it is that moment's.
    fn cell(&self, at: i64) -> Option<(&Cell, u64)> {
        let part = at.div_euclid(self.part);
        let turn = (part >> self.bits).cast_unsigned() & TURN;
        Some((self.cells.get(self.nth(part))?, turn))
    }

    /// Which cell a part has.
    fn nth(&self, part: i64) -> usize {
        usize::try_from(part & ((1 << self.bits) - 1)).unwrap_or(0)
    }
}

impl Cell {
    fn swap(&self, seen: u64, next: u64) -> Result<u64, u64> {
        self.word
            .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire)
    }
}

fn units_of(word: u64) -> u64 {
    word & UNITS
}

fn turn_of(word: u64) -> u64 {
    word >> UNIT_BITS
}
