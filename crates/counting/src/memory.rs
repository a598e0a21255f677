//! How many bytes may wait to be counted.
//!
//! Invariant: what a permit took is given back when it is dropped, whatever became of what it was for.
//! Not here: what is done when there is none (`handle`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that all exchanges share.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    taken: AtomicUsize,
    most: usize,
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

    /// `None` when so much is not left. Never waits.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<Permit> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let permit = Permit {
            budget: Arc::clone(self),
            bytes,
        };
        (before.saturating_add(bytes) <= self.most).then_some(permit)
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
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is_and_all_comes_back() {
        let budget = MemoryBudget::new(100);
        let first = budget.take(60);
        assert!(first.is_some());
        assert!(budget.take(41).is_none());
        assert_eq!(budget.taken(), 60);
        let second = budget.take(40);
        assert!(second.is_some() && budget.take(1).is_none());
        drop((first, second));
        assert_eq!(budget.taken(), 0);
    }
}
