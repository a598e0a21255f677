//! How many bytes may wait to be counted.
//!
//! Invariant: what a permit took is given back when it is dropped, whatever became of what it was for. A quarter is kept
//! for exchanges of routes that are billed by count, where there are any. The requests of no workload that wait to be
//! counted fill more than half of what they may use, so that none keeps the others uncounted.
//! Not here: what is done when there is none (`handle`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What an exchange takes besides its bytes: what its counter keeps of it.
pub(crate) const EXCHANGE_BYTES: usize = 4 << 10;
/// One part of so many is kept for what is billed by count.
const KEPT_PART: usize = 4;

/// What answers may take beyond the budget is one part of so many.
const BEGUN_PART: usize = 8;
/// Workloads are told apart by their number, up to so many; more share a place.
const PLACES: usize = 64;

/// The bytes that all exchanges share.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    taken: AtomicUsize,
    most: usize,
    /// What requests of each workload hold.
    by_workload: [AtomicUsize; PLACES],
}

/// How much of the budget an exchange may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    /// All but what is kept for others.
    Shared,
    /// An eighth more: an exchange that has begun is counted to its end where that can be.
    Begun,
}

/// Some of them, held.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<MemoryBudget>,
    bytes: usize,
    /// The workload's place, where it counts for one.
    place: Option<usize>,
}

impl MemoryBudget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            most,
            by_workload: [const { AtomicUsize::new(0) }; PLACES],
        })
    }

    /// `None` when so much is not left for these. Never waits.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, reach: Reach) -> Option<Permit> {
        let most = self.most(reach);
        let with = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= most);
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        taken.is_ok().then(|| Permit {
            budget: Arc::clone(self),
            bytes,
            place: None,
        })
    }

    /// The same for a request of a workload: `None`, too, where that holds half already.
    pub(crate) fn take_for(
        self: &Arc<Self>,
        workload: usize,
        bytes: usize,
        reach: Reach,
    ) -> Option<Permit> {
        let half = self.most(reach) / 2;
        let place = workload % PLACES;
        let with = |held: usize| {
            let sum = held.saturating_add(bytes);
            (sum <= half || held == 0).then_some(sum)
        };
        self.by_workload[place]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with)
            .ok()?;
        let Some(mut permit) = self.take(bytes, reach) else {
            self.give_back_place(bytes, Some(place));
            return None;
        };
        permit.place = Some(place);
        Some(permit)
    }

    /// Whether [`Self::take_for`] finds no room now, and may find some later.
    pub(crate) fn is_full_for(&self, workload: usize, bytes: usize, reach: Reach) -> bool {
        bytes <= self.most(reach) && !self.has_room_for(workload, bytes, reach)
    }

    fn has_room_for(&self, workload: usize, bytes: usize, reach: Reach) -> bool {
        let most = self.most(reach);
        let held = self.by_workload[workload % PLACES].load(Ordering::Relaxed);
        let fits = |held: usize, most: usize| held.saturating_add(bytes) <= most;
        fits(self.taken(), most) && (held == 0 || fits(held, most / 2))
    }

    const fn most(&self, reach: Reach) -> usize {
        match reach {
            Reach::All => self.most,
            Reach::Shared => self.shared(),
            Reach::Begun => self.most.saturating_add(self.most / BEGUN_PART),
        }
    }

    /// Whether half of what is not kept is used.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.taken() > self.shared() / 2
    }

    const fn shared(&self) -> usize {
        self.most - self.most / KEPT_PART
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn give_back_place(&self, bytes: usize, place: Option<usize>) {
        if let Some(of_workload) = place.and_then(|place| self.by_workload.get(place)) {
            of_workload.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes held now.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Permit {
    /// Gives back all but so many bytes, which count for no workload any more.
    pub(crate) fn shrink(&mut self, to: usize) {
        let over = self.bytes.saturating_sub(to);
        self.budget.give_back_place(self.bytes, self.place.take());
        self.bytes -= over;
        self.budget.give_back(over);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.give_back_place(self.bytes, self.place);
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use testing::Draw;

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
    fn a_permit_gives_back_what_it_needs_no_more_of() {
        let budget = MemoryBudget::new(100);
        let mut permit = budget.take(90, Reach::All).expect("there is room");
        permit.shrink(200);
        assert_eq!(budget.taken(), 90, "it never grows");
        permit.shrink(10);
        assert_eq!(budget.taken(), 10);
        drop(permit);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn no_workload_holds_more_than_half_and_all_comes_back() {
        let budget = MemoryBudget::new(1000);
        let take = |workload, bytes| budget.take_for(workload, bytes, Reach::All);
        let greedy: Vec<Permit> = std::iter::from_fn(|| take(1, 100)).collect();
        assert_eq!(greedy.len(), 5);
        let other = take(2, 400);
        assert!(other.is_some(), "one that holds nothing finds room");
        let is_full = |workload, bytes| budget.is_full_for(workload, bytes, Reach::All);
        assert!(is_full(1, 100) && !is_full(2, 100) && !is_full(3, 100));
        assert!(!is_full(3, 1001), "there is never room for that");
        assert_eq!(budget.taken(), 900, "what was refused holds nothing");
        drop((greedy, other));
        assert_eq!(budget.taken(), 0);
        let large = take(1, 900);
        assert!(large.is_some(), "one request that is larger than half");
        drop(large);
        let places = budget.by_workload.each_ref();
        assert!(places.iter().all(|held| held.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn whatever_the_others_take_a_quarter_is_left_for_what_is_billed_by_count() {
        let name = "whatever_the_others_take_a_quarter_is_left_for_what_is_billed_by_count";
        let mut random = Draw::new(testing::seed(name));
        let mut below = |bound| random.below(bound);
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
