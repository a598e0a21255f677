//! Buckets of subjects: a table of bounded size that all workers share.
//!
//! A subject has one of the eight slots of the set that its hash says. A slot is two words: its owner (a tag of the
//! hash, and how often the slot changed hands) and its bucket (the arrival time of [`crate::limit`], with the same
//! count). Whoever moves a bucket compares and swaps word and count together, so that what is meant for one subject
//! never moves another one's bucket. Who comes into a set is decided in one word of the set, its claim; whoever finds
//! a claim that is under way completes it, so that nobody waits for a worker that stands still.
//! A bucket that is full again says nothing, and its slot goes to the next subject. Where all eight say something, the
//! one nearest to full is given up: its subject has a full bucket again, which is counted.
//! Invariant: a subject has one slot at most. What is settled for one without a slot is dropped.
//! Not here: which subjects there are ([`crate::subject`]), rates ([`crate::limit`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Mono;
use crate::limit::{Denied, Level, Terms};

/// Slots of a set: owners are one cache line, buckets another.
const WAYS: usize = 8;
/// Arrival times are kept in steps of so many nanoseconds: 56 bits of them are 18 years.
const GRAIN: i64 = 8;
/// How often a slot changed hands, modulo that.
const COUNT: u64 = 0xff;
const COUNT_BITS: u32 = 8;
/// Bits of a hash that are not in its tag; the set says them, where there are as many sets.
const PLACE_BITS: u32 = 12;
/// In a claim: it is under way.
const PENDING: u64 = 1 << 8;
/// In a claim: which slot it is for.
const WAY_SHIFT: u32 = 9;
/// In a claim: how many there were, modulo that.
const TURN: u64 = 0xff;

/// What a bucket of this table holds, and how its arrival time moves.
pub(crate) type SlotTerms = Terms<GRAIN>;

/// The table; it is made when the first subject comes.
#[derive(Debug)]
pub(crate) struct Slots {
    subjects: usize,
    table: OnceLock<Box<[Set]>>,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Set {
    /// Tag and count.
    owners: [AtomicU64; WAYS],
    /// Arrival time and count.
    buckets: [AtomicU64; WAYS],
    /// Tag and way of who came last, whether that is under way, and a turn.
    claim: AtomicU64,
}

/// A slot, and the count with which its owner was seen.
struct Found<'a> {
    bucket: &'a AtomicU64,
    count: u64,
}

/// What became of moving a bucket.
enum Moved {
    Yes,
    /// The slot has another owner.
    Lost,
}

impl Slots {
    /// For at least so many subjects.
    pub(crate) fn new(subjects: usize) -> Self {
        Self {
            subjects,
            table: OnceLock::new(),
            evicted: AtomicU64::new(0),
        }
    }

    /// Takes `units` from the bucket of a subject, or takes nothing and says how long to wait.
    pub(crate) fn take(
        &self,
        hash: u64,
        terms: &SlotTerms,
        units: u64,
        now: Mono,
    ) -> Result<(), Denied> {
        if units > terms.rate().burst {
            return Err(Denied::Never);
        }
        let tag = tag(hash);
        let Some(set) = self.set(hash) else {
            return Err(Denied::Never);
        };
        loop {
            if let Some(found) = set.find(tag)
                && let Moved::Yes = found.moves(|tat| terms.taken(tat, units, now))?
            {
                return Ok(());
            }
            self.come_in(set, tag, now);
        }
    }

    /// Whether a [`Self::take`] would succeed now. Takes nothing.
    pub(crate) fn would_take(
        &self,
        hash: u64,
        terms: &SlotTerms,
        units: u64,
        now: Mono,
    ) -> Result<(), Denied> {
        terms.taken(self.arrival(hash), units, now).map(drop)
    }

    /// Corrects an earlier `take(reserved)`, where its subject still has its slot.
    pub(crate) fn settle(
        &self,
        hash: u64,
        terms: &SlotTerms,
        reserved: u64,
        actual: u64,
        now: Mono,
    ) {
        let correction = terms.correction(reserved, actual);
        if correction == 0 {
            return;
        }
        if let Some(found) = self.set(hash).and_then(|set| set.find(tag(hash))) {
            let _moved = found.moves(|tat| Ok(SlotTerms::settled(tat, correction, now)));
        }
    }

    /// What the bucket of a subject holds now.
    pub(crate) fn level(&self, hash: u64, terms: &SlotTerms, now: Mono) -> Level {
        terms.level(self.arrival(hash), now)
    }

    /// Subjects whose slot went to another one before their bucket was full again.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Subjects whose bucket is not full.
    pub(crate) fn active(&self, now: Mono) -> usize {
        let sets = self.table.get().map_or(&[][..], |table| table);
        let buckets = sets.iter().flat_map(|set| &set.buckets);
        buckets
            .filter(|bucket| arrival(bucket.load(Ordering::Relaxed)) > now.0)
            .count()
    }

    /// Full where the subject has no slot.
    fn arrival(&self, hash: u64) -> i64 {
        let found = self.set(hash).and_then(|set| set.find(tag(hash)));
        found.map_or(0, |found| arrival(found.bucket.load(Ordering::Acquire)))
    }

    /// The set of a hash; there always is one.
    fn set(&self, hash: u64) -> Option<&Set> {
        let table = self.table.get_or_init(|| {
            let sets = self.subjects.div_ceil(WAYS).next_power_of_two();
            std::iter::repeat_with(Set::default).take(sets).collect()
        });
        let at = usize::try_from(hash).unwrap_or(usize::MAX) & table.len().saturating_sub(1);
        table.get(at)
    }

    /// Gives a subject that has none a slot of its set, unless another worker does.
    #[cold]
    fn come_in(&self, set: &Set, tag: u64, now: Mono) {
        let last = set.claim.load(Ordering::Acquire);
        if last & PENDING != 0 {
            return self.complete(set, last, now);
        }
        // It is still not there when the claim is made: whoever came in meanwhile changed the claim.
        if set.find(tag).is_some() {
            return;
        }
        let turn = (last + 1) & TURN;
        let claim = tag << PLACE_BITS | set.victim() << WAY_SHIFT | PENDING | turn;
        let made = set
            .claim
            .compare_exchange(last, claim, Ordering::AcqRel, Ordering::Acquire);
        if made.is_ok() {
            self.complete(set, claim, now);
        }
    }

    /// Does what a claim says, as far as nobody has done it yet.
    fn complete(&self, set: &Set, claim: u64, now: Mono) {
        let way = usize::try_from(claim >> WAY_SHIFT).unwrap_or(0) & (WAYS - 1);
        let (Some(owner), Some(bucket)) = (set.owners.get(way), set.buckets.get(way)) else {
            return;
        };
        let before = owner.load(Ordering::Acquire);
        let mut held = bucket.load(Ordering::Acquire);
        if set.claim.load(Ordering::Acquire) != claim {
            // It was done before both were read: they are somebody else's.
            return;
        }
        let tag = claim >> PLACE_BITS;
        if before >> PLACE_BITS != tag {
            let count = (before + 1) & COUNT;
            // From here on the old owner moves it no more.
            while held & COUNT == before & COUNT {
                match bucket.compare_exchange(held, count, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        if arrival(held) > now.0 {
                            self.evicted.fetch_add(1, Ordering::Relaxed);
                        }
                        break;
                    }
                    Err(seen) => held = seen,
                }
            }
            let owned = tag << PLACE_BITS | count;
            let _done = owner.compare_exchange(before, owned, Ordering::AcqRel, Ordering::Acquire);
        }
        let done = claim & !PENDING;
        let _done = set
            .claim
            .compare_exchange(claim, done, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Set {
    /// The slot of a subject, while it has one.
    #[inline]
    fn find(&self, tag: u64) -> Option<Found<'_>> {
        let slots = self.owners.iter().zip(&self.buckets);
        slots.into_iter().find_map(|(owner, bucket)| {
            let owner = owner.load(Ordering::Acquire);
            (owner >> PLACE_BITS == tag).then_some(Found {
                bucket,
                count: owner & COUNT,
            })
        })
    }

    /// The way of a slot without owner, else of the bucket that is the nearest to full.
    fn victim(&self) -> u64 {
        let slots = self.owners.iter().zip(&self.buckets);
        let ways = (0..).zip(slots).min_by_key(|(_, (owner, bucket))| {
            let is_owned = owner.load(Ordering::Relaxed) != 0;
            (is_owned, bucket.load(Ordering::Relaxed) >> COUNT_BITS)
        });
        ways.map_or(0, |(way, _)| way)
    }
}

impl Found<'_> {
    /// Moves the bucket of the owner that was seen.
    fn moves(&self, to: impl Fn(i64) -> Result<i64, Denied>) -> Result<Moved, Denied> {
        let mut seen = self.bucket.load(Ordering::Acquire);
        while seen & COUNT == self.count {
            let next = word(to(arrival(seen))?, self.count);
            match self
                .bucket
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(Moved::Yes),
                Err(now_there) => seen = now_there,
            }
        }
        Ok(Moved::Lost)
    }
}

/// What of a hash tells subjects of a set apart; never 0.
fn tag(hash: u64) -> u64 {
    (hash >> PLACE_BITS).max(1)
}

/// The arrival time in a bucket's word, nanoseconds.
fn arrival(word: u64) -> i64 {
    i64::try_from(word >> COUNT_BITS)
        .unwrap_or(i64::MAX)
        .saturating_mul(GRAIN)
}

/// A bucket's word; an arrival time past what it holds is the last that it does.
fn word(arrival: i64, count: u64) -> u64 {
    let grains = u64::try_from(arrival / GRAIN).unwrap_or(0);
    grains.min(u64::MAX >> COUNT_BITS) << COUNT_BITS | count
}

#[cfg(test)]
mod tests;
