//! What responses came to that their upstreams keep, so that a call which goes on from one holds what its prompt will be.
//!
//! An atomic for each: the upper half tells responses of one place apart, the lower half is how many tokens.
//! Invariant: its size is fixed, and nothing is kept of it until a response is noted; a newer one takes the place of another.
//! Not here: ids (`wire::meter`), what is made of it (`exchange`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Responses that are kept at most: 256 KiB.
const RESPONSES_MAX: usize = 1 << 15;
/// Places in which one may be.
const PLACES: usize = 4;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Responses(OnceLock<Box<[AtomicU64]>>);

impl Responses {
    pub(super) fn note(&self, hash: u64, tokens: u64) {
        let all = self
            .0
            .get_or_init(|| (0..RESPONSES_MAX).map(|_| AtomicU64::new(0)).collect());
        let places = places(all, hash);
        let mark = mark(hash);
        let held = |at: &&AtomicU64| matches!(at.load(Ordering::Relaxed), before if before == 0 || before & MARK == mark);
        // Which of those that are taken is nobody's choice.
        let other = (hash >> 24) as usize % PLACES;
        let place = places.iter().find(held).or_else(|| places.get(other));
        if let Some(place) = place {
            let tokens = tokens.min(u64::from(u32::MAX));
            place.store(mark | tokens, Ordering::Relaxed);
        }
    }

    pub(super) fn of(&self, hash: u64) -> u64 {
        let Some(all) = self.0.get() else { return 0 };
        let mut held = places(all, hash)
            .iter()
            .map(|at| at.load(Ordering::Relaxed));
        let own = held.find(|held| held & MARK == mark(hash));
        own.map_or(0, |held| held & !MARK)
    }
}

const MARK: u64 = !(u32::MAX as u64);

/// What tells it from others in its places; never that of an empty one.
fn mark(hash: u64) -> u64 {
    (hash & MARK).max(1 << 32)
}

fn places(all: &[AtomicU64], hash: u64) -> &[AtomicU64] {
    let at = hash as usize % (RESPONSES_MAX / PLACES) * PLACES;
    all.get(at..at + PLACES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{RESPONSES_MAX, Responses};

    /// Spread as a hash does.
    fn hash(n: u64) -> u64 {
        (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
    }

    #[test]
    fn a_response_comes_to_what_was_noted_of_it_last() {
        let table = Responses::default();
        assert_eq!(table.of(7), 0);
        for n in 0..1_000 {
            table.note(hash(n), n + 5);
            table.note(hash(n), n + 6);
        }
        for n in 0..1_000 {
            assert_eq!(table.of(hash(n)), n + 6);
        }
        assert_eq!(table.of(hash(5_000)), 0);
        table.note(hash(1), u64::MAX);
        assert_eq!(table.of(hash(1)), u64::from(u32::MAX));
    }

    #[test]
    fn newer_ones_take_the_places_of_older_ones() {
        let table = Responses::default();
        let many = 8 * RESPONSES_MAX as u64;
        for n in 0..many {
            table.note(hash(n), n);
            assert_eq!(table.of(hash(n)), n);
        }
    }
}
