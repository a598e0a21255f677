//! How many bytes may wait to be counted.
//!
//! Invariant: what a permit took is given back when it is dropped, whatever became of what it was for. A quarter is kept
//! for exchanges of routes that are billed by count, where there are any.
//! Not here: what is done when there is none (`handle`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One part of so many is kept for what is billed by count.
const KEPT_PART: usize = 4;

/// The bytes that all exchanges share.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    taken: AtomicUsize,
    most: usize,
}

/// How much of the budget an exchange may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    /// All but what is kept for others.
    Shared,
}

/// Some of them, held.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            most,
        })
    }

    /// `None` when so much is not left for these. Never waits.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, reach: Reach) -> Option<Permit> {
        let most = match reach {
            Reach::All => self.most,
            Reach::Shared => self.shared(),
        };
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let permit = Permit {
            budget: Arc::clone(self),
            bytes,
        };
        (before.saturating_add(bytes) <= most).then_some(permit)
    }

    /// Whether half of what is not kept is used.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.taken() > self.shared() / 2
    }

    const fn shared(&self) -> usize {
        self.most - self.most / KEPT_PART
    }

    /// Bytes held now.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn no_more_is_given_than_there_is_and_all_comes_back() {
        let budget = MemoryBudget::new(100);
        let first = budget.take(60, Reach::All);
        assert!(first.is_some());
        assert!(budget.take(41, Reach::All).is_none());
        assert_eq!(budget.taken(), 60);
        let second = budget.take(40, Reach::All);
        assert!(second.is_some() && budget.take(1, Reach::All).is_none());
        drop((first, second));
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn whatever_the_others_take_a_quarter_is_left_for_what_is_billed_by_count() {
        let seed = RandomState::new().hash_one(0) | 1;
        println!("seed {seed}");
        let mut random = seed;
        let mut below = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % bound as u64) as usize
        };
        for _ in 0..500 {
            let most = 4 * (1 + below(1000));
            let budget = MemoryBudget::new(most);
            let (mut shared, mut all) = (Vec::new(), Vec::new());
            for _ in 0..50 {
                let bytes = below(most);
                if below(2) == 0 {
                    all.extend(budget.take(bytes, Reach::All));
                } else {
                    shared.extend(budget.take(bytes, Reach::Shared));
                }
                let sum = |of: &[Permit]| of.iter().map(|permit| permit.bytes).sum::<usize>();
                assert_eq!(budget.taken(), sum(&shared) + sum(&all));
                assert!(budget.taken() <= most);
                assert!(sum(&shared) <= most - most / 4);
                // What a quarter holds finds room where no other that may use it has come before.
                if all.is_empty() {
                    assert!(budget.take(most / 4, Reach::All).is_some());
                }
                let of = if below(2) == 0 { &mut all } else { &mut shared };
                if !of.is_empty() && below(3) == 0 {
                    of.swap_remove(below(of.len()));
                }
            }
            drop((shared, all));
            assert_eq!(budget.taken(), 0);
        }
    }
}
