//! Subjects: whom a limit or a budget counts apart, and what tells them from one another.
//!
//! A user is a user of a workload and of an issuer, and a key is one of a workload: the same name in two workloads is two subjects, and so
//! is a user's at two issuers. Callers of a
//! workload that bring no key (no user) are one subject together, so that nobody is unlimited by omission.
//! Users are a crowd: one caller who is believed about them can bring as many as it likes. So where a table is full and
//! refuses, the users of a workload have a share of it, and keys, which a person has made, are not bound by that.
//! Invariant: which slot a subject has follows from a hash whose seed nobody outside the process knows.
//! Not here: the slots ([`crate::levels`]), who calls ([`crate::caller`]).

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::budget::{Calendar, Unit};
use crate::caller::Caller;
use crate::fast_hash::finalize;
use crate::limit::{Kind, Rate};
pub use crate::whose::{Holder, Whose};

/// Who calls, as far as limits and budgets ask.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// Who is proven to be behind it, where somebody is.
    pub caller: Option<&'a Arc<Caller>>,
}

impl<'a> Who<'a> {
    /// Whom this is counted as.
    #[must_use]
    pub fn holder(&self, whose: Whose) -> Holder {
        match whose {
            Whose::Workload => Holder::Workload,
            Whose::Key if self.key().is_some() => Holder::Key,
            Whose::Key => Holder::Keyless,
            Whose::User if self.user().is_some() => Holder::User,
            Whose::User => Holder::Userless,
        }
    }

    /// Whose a caller's own limits and budgets are: the key's, or where it brought none the user's.
    #[must_use]
    pub fn own(&self) -> Whose {
        if self.key().is_none() && self.user().is_some() {
            return Whose::User;
        }
        Whose::Key
    }

    fn key(&self) -> Option<&'a str> {
        self.caller.and_then(|caller| caller.key.as_deref())
    }

    fn user(&self) -> Option<&'a str> {
        self.caller.and_then(|caller| caller.user.as_deref())
    }

    /// Within which a user's name says who it is.
    fn issuer(&self) -> Option<&'a str> {
        self.user().and(self.caller).and_then(|of| of.issuer())
    }
}

/// The hashes of one caller, each made when it is first asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subjects {
    key: Cell<Option<u64>>,
    user: Cell<Option<u64>>,
    crowd: Cell<Option<Crowd>>,
}

impl Subjects {
    /// Whether none was asked for.
    pub(crate) fn are_unknown(&self) -> bool {
        self.key.get().is_none() && self.user.get().is_none()
    }
}

/// What nobody outside the process knows, so that nobody chooses which subjects share a slot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seed(pub(crate) [u64; 2]);

impl Seed {
    fn hash(self, what: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        what.hash(&mut hasher);
        hasher.finish()
    }

    /// Of a limit of the configuration over its window.
    pub(crate) fn limit(self, key: &str, rate: Rate) -> u64 {
        self.hash(("limit", key, rate.per))
    }

    /// Of a limit that a caller brings.
    pub(crate) fn own_limit(self, kind: Kind, rate: Rate) -> u64 {
        self.hash(("own limit", kind, rate.per))
    }

    /// Of a response, by the id that its upstream gave it.
    pub(crate) fn response(self, id: &[u8]) -> u64 {
        self.hash(("response", id))
    }

    /// Of the `nth` budget of the configuration that begins.
    pub(crate) fn budget(self, name: &str, nth: u64) -> u64 {
        self.hash(("budget", name, nth))
    }

    /// Of a budget that a caller brings.
    pub(crate) fn own_budget(self, unit: &Unit, calendar: Calendar) -> u64 {
        self.hash(("own budget", unit.as_str(), calendar))
    }

    /// As [`Self::of`], for a table that refuses: with the crowd that the subject is of.
    pub(crate) fn placed(self, rule: u64, whose: Whose, who: &Who<'_>, known: &Subjects) -> u64 {
        let crowd = match who.holder(whose) {
            Holder::User => known.crowd.get().unwrap_or_else(|| {
                let crowd = Crowd::of(self.hash(("crowd", who.workload)));
                known.crowd.set(Some(crowd));
                crowd
            }),
            Holder::Workload | Holder::Key | Holder::Keyless | Holder::Userless => Crowd::NONE,
        };
        crowd.put_into(self.of(rule, whose, who, known))
    }

    /// What tells the subject of a rule from all others of all rules.
    pub(crate) fn of(self, rule: u64, whose: Whose, who: &Who<'_>, known: &Subjects) -> u64 {
        let (known, name) = match whose {
            // Of one that counts nobody apart, nothing is kept here.
            Whose::Workload => return finalize(rule),
            Whose::Key => (&known.key, who.key()),
            Whose::User => (&known.user, who.user()),
        };
        let subject = known.get().unwrap_or_else(|| {
            let issuer = match whose {
                Whose::User => who.issuer(),
                Whose::Key | Whose::Workload => None,
            };
            let subject = self.hash((whose, who.workload, name, issuer));
            known.set(Some(subject));
            subject
        });
        finalize(rule ^ subject.rotate_left(32))
    }
}

/// The users of a workload, as the highest byte of a hash says them; none are keys, and those who have one place together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowd(u8);

impl Crowd {
    const NONE: Self = Self(0);
    const SHIFT: u32 = u64::BITS - u8::BITS;

    fn of(hash: u64) -> Self {
        Self(u8::try_from(hash % 255).unwrap_or(0) + 1)
    }

    fn put_into(self, hash: u64) -> u64 {
        hash & (u64::MAX >> u8::BITS) | u64::from(self.0) << Self::SHIFT
    }

    /// The one of a hash; none where its subject is no crowd's.
    pub(crate) fn in_hash(hash: u64) -> Option<Self> {
        let crowd = Self(u8::try_from(hash >> Self::SHIFT).unwrap_or(0));
        (crowd != Self::NONE).then_some(crowd)
    }
}

#[cfg(test)]
mod tests;
