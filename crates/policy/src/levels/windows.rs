//! Rolling windows of subjects: a table of bounded size for each limit that has them, which all workers share.
//!
//! A subject has one of the 64 places of the set that its hash says: a word that says whose it is, and a window
//! ([`Rolling`]), made when the place is first used and kept for whoever has it next. A place goes to another subject
//! only when its window holds nothing, so that nothing is forgotten; where all 64 hold something, a new subject is
//! refused, and a new user already where the users of its workload leave too few ([`Crowd`]). Taking, settling and looking use no lock. Who comes in does so under the lock of its set: of two workers that
//! bring the same subject, the second must find it, and a place must not change hands while its owner takes.
//! Invariant: a subject has one place at most, and keeps it while its window holds something. So no window admits more
//! than its amount, whatever the number of subjects.
//! Not here: how a window counts ([`crate::limit::rolling`]), buckets of subjects (`slots`).

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::clock::Mono;
use crate::limit::rolling::{Rolling, Room, Share};
use crate::limit::{Denied, Kind, Level, Rate};
use crate::subject::{Crowd, Whose};

/// Places of a set.
const PLACES: usize = 64;
/// Places for each subject, so that a set hardly ever has more than the share of one workload's users.
const PLACES_EACH: usize = 4;
/// So many times the places that they leave free may the users of a workload have.
const SHARE: usize = 3;
/// An owner's word: nobody had the place yet.
const NOBODY: u64 = 0;
/// An owner's word: it is about to change hands.
const CHANGING: u64 = 1;

/// The windows of one limit; the table is made when the first subject comes.
#[derive(Debug)]
pub(crate) struct Windows {
    kind: Kind,
    rate: Rate,
    subjects: usize,
    whose: Whose,
    rule: u64,
    table: OnceLock<Box<[Set]>>,
    turned_away: AtomicU64,
}

#[derive(Debug)]
struct Set {
    owners: [AtomicU64; PLACES],
    windows: [OnceLock<Arc<Rolling>>; PLACES],
    /// Held by who comes in.
    coming: Mutex<()>,
}

/// A place that is a subject's, as it was seen.
struct Found<'a> {
    owner: &'a AtomicU64,
    window: &'a Rolling,
}

impl Windows {
    /// For at least so many subjects; `rule` tells theirs from those of other limits.
    pub(crate) fn new(kind: Kind, rate: Rate, subjects: usize, whose: Whose, rule: u64) -> Self {
        Self {
            kind,
            rate,
            subjects,
            whose,
            rule,
            table: OnceLock::new(),
            turned_away: AtomicU64::new(0),
        }
    }

    /// The same for another rate: each subject's window keeps what it holds. What is taken from the old ones from now on
    /// is taken from these too.
    pub(crate) fn carried(rate: Rate, old: &Self, now: Mono) -> Self {
        let windows = Self::new(old.kind, rate, old.subjects, old.whose, old.rule);
        let sets = old.table.get().map_or(&[][..], |table| table);
        for (owner, window) in sets.iter().flat_map(Set::owned) {
            let carried = || Rolling::carried(old.kind, rate, Room::Scant, window);
            if !window.is_idle(now) {
                let _kept = windows.come_in(owner, now, carried, |_| true);
            }
        }
        windows
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// What tells its subjects, and which they are.
    pub(crate) fn of(&self) -> (u64, Whose) {
        (self.rule, self.whose)
    }

    /// Takes `units` from the window of a subject, or takes nothing and says how long to wait.
    pub(crate) fn take(&self, hash: u64, units: u64, now: Mono) -> Result<(), Denied> {
        if units > self.rate.amount {
            return Err(Denied::Never);
        }
        let subject = word(hash);
        loop {
            let Some(found) = self.find(subject) else {
                self.come_in(
                    subject,
                    now,
                    || self.empty(),
                    |set| set.has_share(subject, now),
                )?;
                continue;
            };
            let taken = found.window.take(units, now);
            // Whoever changes the owner looks at the window after that: one of the two sees the other.
            fence(Ordering::SeqCst);
            if found.owner.load(Ordering::Relaxed) == subject {
                return taken;
            }
            if taken.is_ok() {
                let share = Share {
                    reserved: units,
                    at: now,
                };
                found.window.settle(share, units, 0, now);
            }
        }
    }

    /// Whether a [`Self::take`] would succeed now, as far as the subject's window says. Takes nothing.
    pub(crate) fn would_take(&self, hash: u64, units: u64, now: Mono) -> Result<(), Denied> {
        match self.find(word(hash)) {
            Some(found) => found.window.would_take(units, now),
            None if units > self.rate.amount => Err(Denied::Never),
            None => Ok(()),
        }
    }

    /// Corrects an earlier take, where its subject still has its place: what was taken counts no more where it has not.
    pub(crate) fn settle(&self, hash: u64, share: Share, before: u64, actual: u64, now: Mono) {
        if let Some(found) = self.find(word(hash)) {
            found.window.settle(share, before, actual, now);
        }
    }

    /// What the window of a subject holds now.
    pub(crate) fn level(&self, hash: u64, now: Mono) -> Level {
        let found = self.find(word(hash));
        let full = Level {
            remaining: self.rate.amount,
            reset: std::time::Duration::ZERO,
        };
        found.map_or(full, |found| found.window.level(now))
    }

    /// Subjects whose window holds something.
    pub(crate) fn active(&self, now: Mono) -> usize {
        let sets = self.table.get().map_or(&[][..], |table| table);
        let owned = sets.iter().flat_map(Set::owned);
        owned.filter(|(_, window)| !window.is_idle(now)).count()
    }

    /// Takes that were refused because there was no place for their subject.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    fn empty(&self) -> Arc<Rolling> {
        Arc::new(Rolling::new(self.kind, self.rate, Room::Scant))
    }

    fn find(&self, subject: u64) -> Option<Found<'_>> {
        self.set(subject).and_then(|set| set.find(subject))
    }

    /// The set of a subject; there always is one.
    fn set(&self, subject: u64) -> Option<&Set> {
        let table = self.table.get_or_init(|| {
            let places = self.subjects.saturating_mul(PLACES_EACH);
            let sets = places.div_ceil(PLACES).max(1).next_power_of_two();
            std::iter::repeat_with(Set::new).take(sets).collect()
        });
        let at = usize::try_from(subject >> 1).unwrap_or(usize::MAX);
        table.get(at & table.len().saturating_sub(1))
    }

    /// Gives a subject that may come a place of its set, unless it has one.
    #[cold]
    fn come_in(
        &self,
        subject: u64,
        now: Mono,
        window: impl Fn() -> Arc<Rolling>,
        may_come: impl Fn(&Set) -> bool,
    ) -> Result<(), Denied> {
        let came = self.set(subject).is_some_and(|set| {
            let _alone = set.coming.lock().unwrap_or_else(PoisonError::into_inner);
            set.find(subject).is_some() || may_come(set) && set.let_in(subject, now, window)
        });
        if came {
            return Ok(());
        }
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        Err(Denied::NoPlace)
    }
}

impl Set {
    fn new() -> Self {
        Self {
            owners: std::array::from_fn(|_| AtomicU64::new(NOBODY)),
            windows: std::array::from_fn(|_| OnceLock::new()),
            coming: Mutex::new(()),
        }
    }

    fn places(&self) -> impl Iterator<Item = (&AtomicU64, &OnceLock<Arc<Rolling>>)> {
        self.owners.iter().zip(&self.windows)
    }

    /// The place of a subject, while it has one.
    fn find(&self, subject: u64) -> Option<Found<'_>> {
        let mut places = self.places();
        let (owner, window) = places.find(|(owner, _)| owner.load(Ordering::Acquire) == subject)?;
        let window = window.get()?;
        Some(Found { owner, window })
    }

    /// Those who have a place.
    fn owned(&self) -> impl Iterator<Item = (u64, &Rolling)> {
        self.places().filter_map(|(owner, window)| {
            let owner = owner.load(Ordering::Acquire);
            (owner > CHANGING).then_some((owner, &**window.get()?))
        })
    }

    /// Whether a subject that has no place may take a free one: the users of a workload have three quarters of a set at
    /// most, and of what others leave them three quarters.
    fn has_share(&self, subject: u64, now: Mono) -> bool {
        let Some(crowd) = Crowd::in_hash(subject) else {
            return true;
        };
        let (mut own, mut free) = (0, 0);
        for (owner, window) in self.places() {
            if window.get().is_none_or(|window| window.is_idle(now)) {
                free += 1;
            } else if Crowd::in_hash(owner.load(Ordering::Relaxed)) == Some(crowd) {
                own += 1;
            }
        }
        own < free * SHARE
    }

    /// Makes a place whose window holds nothing that of a subject. By who holds the lock.
    fn let_in(&self, subject: u64, now: Mono, new: impl Fn() -> Arc<Rolling>) -> bool {
        self.places().any(|(owner, window)| {
            let before = owner.load(Ordering::Relaxed);
            let Some(held) = window.get() else {
                let _made = window.set(new());
                owner.store(subject, Ordering::Release);
                return true;
            };
            if !held.is_idle(now) {
                return false;
            }
            owner.store(CHANGING, Ordering::Relaxed);
            // What its owner took until then is seen here, or its owner sees that it is the owner no more.
            fence(Ordering::SeqCst);
            let is_idle = held.is_idle(now);
            let next = if is_idle { subject } else { before };
            owner.store(next, Ordering::Release);
            is_idle
        })
    }
}

/// How a place says whose it is.
fn word(hash: u64) -> u64 {
    // 0 and 1 say something else.
    hash.max(CHANGING + 1)
}

#[cfg(test)]
mod tests;
