//! What a thread that counts works with: what it knows of pieces, and room for those that are counted together.
//!
//! Each thread has its own, a megabyte and a half for all vocabularies, so nobody waits for anybody.
//! Invariant: what is known is of the vocabulary that asks.
//! Not here: counting (`pieced`).

use std::cell::Cell;

use super::known::{self, Key, Known, Place, Short, VOCABULARIES};
use super::pieces::{Pieces, TOGETHER};
use super::processor::Level;

thread_local! {
    static DESK: Cell<Option<Box<Desk>>> = const { Cell::new(None) };
}

/// A thread's.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) known: Known,
    pub(super) batch: Batch,
    /// The numbers of those whose pieces are known, by the number that they have here.
    vocabularies: Vec<u64>,
}

/// Lends the thread's desk.
pub(super) fn with<T>(work: impl FnOnce(&mut Desk) -> T) -> T {
    let mut desk = DESK.take().unwrap_or_default();
    let done = work(&mut desk);
    DESK.set(Some(desk));
    done
}

impl Desk {
    /// The number that a vocabulary has here.
    pub(super) fn vocabulary(&mut self, number: u64) -> u8 {
        let at = self.vocabularies.iter().position(|of| *of == number);
        let at = at.unwrap_or_else(|| {
            if self.vocabularies.len() >= VOCABULARIES {
                self.vocabularies.clear();
                self.known.clear();
            }
            self.vocabularies.push(number);
            self.vocabularies.len() - 1
        });
        at as u8
    }
}

/// Room for pieces.
const ROOM: usize = 2 * TOGETHER;

/// Pieces that are counted together.
pub(super) struct Batch {
    from: usize,
    found: usize,
    missed: usize,
    ends: [usize; ROOM],
    keys: [Key; ROOM],
    places: [Place; ROOM],
    counts: [u32; ROOM],
    /// Those of which nothing was known at first sight.
    misses: [u8; ROOM],
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            from: 0,
            found: 0,
            missed: 0,
            ends: [0; ROOM],
            keys: [Key::default(); ROOM],
            places: [Place::default(); ROOM],
            counts: [0; ROOM],
            misses: [0; ROOM],
        }
    }
}

impl Batch {
    /// Finds the next pieces, and asks for what is known of them. False where there are none.
    #[inline(always)]
    pub(super) fn fill<L: Level>(
        &mut self,
        level: L,
        pieces: &mut Pieces<'_>,
        short: &Short,
        vocabulary: u8,
    ) -> bool {
        self.from = pieces.at();
        let mut found = 0;
        while found <= ROOM - TOGETHER
            && pieces.next(level, |from, to, bytes| {
                let key = Key::of(bytes, to - from, vocabulary);
                let place = key.place();
                known::fetch(short, place);
                if let (Some(to_end), Some(to_key), Some(to_place)) = (
                    self.ends.get_mut(found),
                    self.keys.get_mut(found),
                    self.places.get_mut(found),
                ) {
                    (*to_end, *to_key, *to_place) = (to, key, place);
                }
                found += 1;
            })
        {}
        self.found = found;
        found > 0
    }

    /// Looks all of them up.
    #[inline(always)]
    pub(super) fn look_up(&mut self, short: &Short) {
        let mut missed = 0;
        let asked = self.keys.iter().zip(&self.places).zip(&mut self.counts);
        for (at, ((&key, &place), count)) in asked.take(self.found).enumerate() {
            *count = known::first(short, key, place);
            if let Some(miss) = self.misses.get_mut(missed) {
                *miss = at as u8;
            }
            missed += usize::from(*count == 0);
        }
        self.missed = missed;
    }

    /// Has those counted of which nothing was known: where they begin and end, and their keys.
    #[inline(always)]
    pub(super) fn complete(&mut self, mut count: impl FnMut(usize, usize, Key) -> u64) {
        for &miss in self.misses.iter().take(self.missed) {
            let at = usize::from(miss);
            let before = at.checked_sub(1).and_then(|before| self.ends.get(before));
            let from = before.copied().unwrap_or(self.from);
            if let (Some(&to), Some(&key), Some(tokens)) = (
                self.ends.get(at),
                self.keys.get(at),
                self.counts.get_mut(at),
            ) {
                *tokens = u32::try_from(count(from, to, key)).unwrap_or(u32::MAX);
            }
        }
    }

    /// The tokens of all.
    #[inline(always)]
    pub(super) fn sum(&self) -> u64 {
        let counts = self.counts.iter().take(self.found);
        counts.map(|count| u64::from(*count)).sum()
    }

    /// The length and the tokens of each.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut from = self.from;
        let all = self.ends.iter().zip(&self.counts).take(self.found);
        all.map(move |(&to, &tokens)| {
            let length = to - std::mem::replace(&mut from, to);
            (length, u64::from(tokens))
        })
    }
}

#[cfg(test)]
mod tests;
