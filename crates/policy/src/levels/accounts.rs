//! What subjects have spent of budgets: a table of bounded size that all workers share.
//!
//! A place is two words: its owner (a tag of the hash and the day on which the period ends) and what is held of that
//! period (with the same day, so that what is left of an earlier owner counts for nothing). A subject's place is the
//! first one of a block, from where its hash says, that is nobody's or whose period had ended a whole day before the subject's
//! began. Whether a place is free for a period follows from the place alone, and what is not free for it never becomes
//! so again: of two workers that bring the same subject, the second finds it. A user that has no place yet gets one only
//! where the users of its workload leave enough of those that it may have ([`Crowd`]): whatever users are invented, keys
//! and other workloads find a place.
//! Invariant: a subject has one place at most in a period, and keeps it until a day after that; where there is none
//! for it, it is refused, and never let through uncounted.
//! Not here: rates, whose slots may be given up (`slots`), which budgets there are ([`crate::budget`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::budget::{Calendar, Period};
use crate::subject::Crowd;

/// Places for each subject: as many again may be of the period before, and three quarters of them stay free, so that few
/// are looked at and the users of one workload are far from their share.
const PLACES_EACH: usize = 8;
/// Places of a block: those that are looked at for one subject, and are of no subject of another block.
const BLOCK: usize = 256;
/// Of these, the free ones that are for no user.
const NOT_FOR_USERS: usize = 8;
/// In an owner: the day on which its period ends, up to the year 2109. Above it stands what is of the hash.
const DAY: u64 = 0x7fff;
/// In what is held: the same day, modulo that.
const STAMP: u64 = 0xfff;
const STAMP_BITS: u32 = 12;
const DAY_MS: u64 = 86_400_000;
/// 2020-01-01, in days since the Unix epoch: the first day that is counted.
const FIRST_DAY: u64 = 18_262;

/// The most that a subject can have of a budget: of money, 4.5 million of the currency's unit.
pub const ACCOUNT_MAX: u64 = u64::MAX >> STAMP_BITS;

/// The table; it is made when the first subject comes.
#[derive(Debug)]
pub(crate) struct Accounts {
    subjects: usize,
    table: OnceLock<Box<[Account]>>,
    turned_away: AtomicU64,
}

#[derive(Debug, Default)]
struct Account {
    owner: AtomicU64,
    held: AtomicU64,
}

/// The days of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    /// The one in which it begins.
    begin: u64,
    /// The first that is wholly after it.
    end: u64,
}

impl Days {
    pub(crate) fn of(calendar: Calendar, period: Period) -> Self {
        let (begins, ends) = calendar.span(period);
        let day = |day: u64| day.saturating_sub(FIRST_DAY).clamp(1, DAY);
        Self {
            begin: day(begins / DAY_MS),
            end: day(ends.div_ceil(DAY_MS)),
        }
    }

    fn stamp(self) -> u64 {
        self.end & STAMP
    }
}

/// Why nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// The amount does not hold it.
    Exhausted,
    /// There is no place for the subject.
    NoPlace,
}

/// Where the places of a subject end.
enum Sought<'a> {
    Its(&'a Account),
    /// Free for it, and what its owner says.
    Free(&'a Account, u64),
    /// All that may be looked at are others'.
    None,
}

impl Accounts {
    /// For at least so many subjects.
    pub(crate) fn new(subjects: usize) -> Self {
        Self {
            subjects,
            table: OnceLock::new(),
            turned_away: AtomicU64::new(0),
        }
    }

    /// Takes `units` for a subject if then no more than `amount` is held.
    pub(crate) fn take(&self, hash: u64, days: Days, units: u64, amount: u64) -> Result<(), Short> {
        self.moves(hash, days, |held| {
            let next = held.checked_add(units)?;
            (next <= amount.min(ACCOUNT_MAX)).then_some(next)
        })
    }

    /// Adds `units` to what is held, however much that is then.
    pub(crate) fn add(&self, hash: u64, days: Days, units: u64) -> Result<(), Short> {
        self.moves(hash, days, |held| Some(held.saturating_add(units)))
    }

    /// Whether a [`Self::take`] would succeed now. Takes nothing.
    pub(crate) fn fits(&self, hash: u64, days: Days, units: u64, amount: u64) -> Result<(), Short> {
        let held = match self.seek(hash, days) {
            Sought::Its(account) => account.held(days),
            Sought::Free(..) if self.has_share(hash, days) => 0,
            Sought::Free(..) | Sought::None => return Err(self.turn_away()),
        };
        let fits = held.saturating_add(units) <= amount.min(ACCOUNT_MAX);
        if fits { Ok(()) } else { Err(Short::Exhausted) }
    }

    /// Corrects an earlier take of `reserved`, where the subject still has its place.
    pub(crate) fn settle(&self, hash: u64, days: Days, reserved: u64, actual: u64) {
        if let (Sought::Its(account), true) = (self.seek(hash, days), reserved != actual) {
            let _moved = account.moves(days.owner(hash), days, |held| {
                Some(held.saturating_add(actual).saturating_sub(reserved))
            });
        }
    }

    /// What is held of a subject's period; `None` where it has no place.
    pub(crate) fn held(&self, hash: u64, days: Days) -> Option<u64> {
        match self.seek(hash, days) {
            Sought::Its(account) => Some(account.held(days)),
            Sought::Free(..) | Sought::None => None,
        }
    }

    /// Calls that were refused because there was no place for their subject.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Places whose period had not ended on the day before this moment, milliseconds since the Unix epoch.
    pub(crate) fn used(&self, unix_ms: u64) -> usize {
        let today = (unix_ms / DAY_MS).saturating_sub(FIRST_DAY);
        let table = self.table.get().map_or(&[][..], |table| table);
        let ends = table
            .iter()
            .map(|account| account.owner.load(Ordering::Relaxed) & DAY);
        ends.filter(|end| *end > today).count()
    }

    #[cold]
    fn turn_away(&self) -> Short {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        Short::NoPlace
    }

    fn moves(&self, hash: u64, days: Days, to: impl Fn(u64) -> Option<u64>) -> Result<(), Short> {
        let owner = days.owner(hash);
        loop {
            let account = match self.seek(hash, days) {
                Sought::Its(account) => account,
                Sought::Free(account, before) if self.has_share(hash, days) => {
                    let came = account.owner.compare_exchange(
                        before,
                        owner,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    );
                    if came.is_err() {
                        continue;
                    }
                    account
                }
                Sought::Free(..) | Sought::None => return Err(self.turn_away()),
            };
            if let Some(moved) = account.moves(owner, days, &to) {
                return moved;
            }
        }
    }

    /// A subject's place, or the one that it would get.
    fn seek(&self, hash: u64, days: Days) -> Sought<'_> {
        let own = days.owner(hash);
        for account in self.places(hash) {
            let owner = account.owner.load(Ordering::Acquire);
            if owner == own {
                return Sought::Its(account);
            }
            if days.are_free(owner) {
                return Sought::Free(account, owner);
            }
        }
        Sought::None
    }

    /// Whether a subject that has no place may take a free one: the users of a workload have half of the places that it
    /// may have at most, and of what others leave them half.
    #[cold]
    fn has_share(&self, hash: u64, days: Days) -> bool {
        let Some(crowd) = Crowd::in_hash(hash) else {
            return true;
        };
        let (mut own, mut free) = (0, 0);
        for account in self.places(hash) {
            let owner = account.owner.load(Ordering::Relaxed);
            if days.are_free(owner) {
                free += 1;
            } else if Crowd::in_hash(owner) == Some(crowd) {
                own += 1;
            }
        }
        free > NOT_FOR_USERS && own < free
    }

    /// The places that a subject may have, in turn.
    fn places(&self, hash: u64) -> impl Iterator<Item = &Account> {
        let table = self.table.get_or_init(|| {
            let places = self.subjects.saturating_mul(PLACES_EACH);
            let places = places.next_power_of_two().max(BLOCK);
            std::iter::repeat_with(Account::default)
                .take(places)
                .collect()
        });
        let first = usize::try_from(hash).unwrap_or(usize::MAX) & table.len().saturating_sub(1);
        let (block, first) = (first / BLOCK, first % BLOCK);
        let block = table.chunks_exact(BLOCK).nth(block).unwrap_or_default();
        let (before, from) = block.split_at_checked(first).unwrap_or((&[], block));
        from.iter().chain(before)
    }
}

impl Days {
    /// How a place says whose it is; never 0.
    fn owner(self, hash: u64) -> u64 {
        hash & !DAY | self.end
    }

    /// Whether a place with this owner may become that of another one.
    fn are_free(self, owner: u64) -> bool {
        owner == 0 || (owner & DAY) < self.begin
    }
}

impl Account {
    /// What is held of a period, of which it is the place.
    fn held(&self, days: Days) -> u64 {
        held(self.held.load(Ordering::Acquire), days)
    }

    /// Moves what its owner holds; `None` where it has another owner now.
    fn moves(
        &self,
        owner: u64,
        days: Days,
        to: impl Fn(u64) -> Option<u64>,
    ) -> Option<Result<(), Short>> {
        let mut seen = self.held.load(Ordering::Acquire);
        loop {
            // What was seen is this owner's, or an earlier one's: of a later one, that would be seen here.
            if self.owner.load(Ordering::Acquire) != owner {
                return None;
            }
            let Some(next) = to(held(seen, days)) else {
                return Some(Err(Short::Exhausted));
            };
            let next = next.min(ACCOUNT_MAX) << STAMP_BITS | days.stamp();
            match self
                .held
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(Ok(())),
                Err(now_there) => seen = now_there,
            }
        }
    }
}

/// What a word says is held of a period.
fn held(word: u64, days: Days) -> u64 {
    if word & STAMP == days.stamp() {
        word >> STAMP_BITS
    } else {
        0
    }
}

#[cfg(test)]
mod tests;
