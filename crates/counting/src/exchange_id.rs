//! The name of an exchange that is counted.
//!
//! Invariant: no two of a process are the same, and each says by itself whose count its route is billed by: who has
//! nothing but the name (a batch, a row that waited in vain) knows that, too, and whether there is an output to count.
//! Not here: what goes first because of it (`queue`, `memory`).

use policy::billing::BilledBy;

/// Bits for the exchanges of one worker, one for whose count it is, and one for whether it has an output.
const BITS_OF_WORKER: u32 = 48;
/// Set where there is none.
const WITHOUT_OUTPUT: u64 = 2;

/// The `nth` exchange of a worker. The ids of a worker come round after 2^46 exchanges.
pub(crate) const fn exchange_id(worker: usize, nth: u64, billed_by: BilledBy) -> u64 {
    let by_count = match billed_by {
        BilledBy::Reported => 0,
        BilledBy::Counted => 1,
    };
    let of_worker = (nth << 2) % (1 << BITS_OF_WORKER);
    ((worker as u64) << BITS_OF_WORKER) | of_worker | by_count
}

/// The same exchange, where its answer has no text.
pub(crate) const fn without_output(id: u64) -> u64 {
    id | WITHOUT_OUTPUT
}

/// Whether its answer has text.
pub(crate) const fn has_output(id: u64) -> bool {
    id & WITHOUT_OUTPUT == 0
}

/// Whose count it is billed by.
pub(crate) const fn billed_by(id: u64) -> BilledBy {
    if id % 2 == 1 {
        BilledBy::Counted
    } else {
        BilledBy::Reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_say_whose_count_they_are_billed_by() {
        let both = [BilledBy::Reported, BilledBy::Counted];
        let named = |by: BilledBy| {
            let of = move |worker: usize| (1..=3).map(move |nth| exchange_id(worker, nth, by));
            [0, 1, 63].into_iter().flat_map(of)
        };
        let mut all: Vec<u64> = both.into_iter().flat_map(named).collect();
        for by in both {
            assert!(named(by).all(|id| billed_by(id) == by && has_output(id)));
            let mut bare = named(by).map(without_output);
            assert!(bare.all(|id| billed_by(id) == by && !has_output(id)));
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 18);
    }
}
