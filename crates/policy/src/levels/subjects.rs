//! Where a call takes its shares: from a bucket that callers share, or from those of its own key or user.
//!
//! Invariant: which it is follows from the limit or the budget and from who calls, so that a call settles where it took.
//! Not here: the tables (`slots`, `accounts`), what a call takes ([`crate::exchange`]).

use super::accounts::{Days, Short};
use super::slots::SlotTerms;
use super::windows::Windows;
use super::{Counter, Levels};
use crate::budget::{Budget, Calendar, Period};
use crate::caller::{OwnBudget, OwnLimit};
use crate::clock::Mono;
use crate::id::{BudgetId, LimitId};
use crate::limit::rolling::{Rolling, Share};
use crate::limit::{Bucket, Denied, Level};
use crate::subject::{Subjects, Who, Whose};

/// The bucket that one call takes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hold<'a> {
    Shared(&'a Bucket),
    Apart(&'a Levels, SlotTerms, u64),
    Rolling(&'a Rolling),
    RollingApart(&'a Windows, u64),
}

impl Hold<'_> {
    #[inline]
    pub(crate) fn take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        match self {
            Self::Shared(bucket) => bucket.take(units, now),
            Self::Apart(of, terms, hash) => of.apart.slots.take(*hash, terms, units, now),
            Self::Rolling(window) => window.take(units, now),
            Self::RollingApart(windows, hash) => windows.take(*hash, units, now),
        }
    }

    pub(crate) fn would_take(&self, units: u64, now: Mono) -> Result<(), Denied> {
        match self {
            Self::Shared(bucket) => bucket.would_take(units, now),
            Self::Apart(of, terms, hash) => of.apart.slots.would_take(*hash, terms, units, now),
            Self::Rolling(window) => window.would_take(units, now),
            Self::RollingApart(windows, hash) => windows.would_take(*hash, units, now),
        }
    }

    /// Corrects what a call is charged, which took that share, from `before` to `actual`.
    #[inline]
    pub(crate) fn settle(&self, share: Share, before: u64, actual: u64, now: Mono) {
        match self {
            Self::Shared(bucket) => bucket.settle(before, actual, now),
            Self::Apart(of, terms, hash) => {
                of.apart.slots.settle(*hash, terms, before, actual, now);
            }
            Self::Rolling(window) => window.settle(share, before, actual, now),
            Self::RollingApart(windows, hash) => {
                windows.settle(*hash, share, before, actual, now);
            }
        }
    }

    #[inline]
    pub(crate) fn level(&self, now: Mono) -> Level {
        match self {
            Self::Shared(bucket) => bucket.level(now),
            Self::Apart(of, terms, hash) => of.apart.slots.level(*hash, terms, now),
            Self::Rolling(window) => window.level(now),
            Self::RollingApart(windows, hash) => windows.level(*hash, now),
        }
    }
}

/// A subject's place in a period of a budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    hash: u64,
    days: Days,
}

/// How far the tables of subjects are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Subjects of limits whose bucket is not full, or whose window holds something.
    pub buckets: usize,
    /// Of those that had come: how many gave their bucket up to another subject before it was full again.
    pub evicted: u64,
    /// Subjects of budgets that have a place in a running period.
    pub accounts: usize,
    /// Calls that were refused because there was no place for their subject.
    pub turned_away: u64,
}

impl Levels {
    /// The bucket that a call takes from for a limit, if the id is of this table's snapshot.
    #[inline]
    pub(crate) fn hold(&self, id: LimitId, who: &Who<'_>, known: &Subjects) -> Option<Hold<'_>> {
        match self.buckets.get(id.index())? {
            Counter::Shared(bucket) => Some(Hold::Shared(bucket)),
            Counter::Rolling(window) => Some(Hold::Rolling(window)),
            Counter::RollingApart(windows) => {
                let (rule, whose) = windows.of();
                let hash = self.apart.seed.placed(rule, whose, who, known);
                Some(Hold::RollingApart(windows, hash))
            }
            Counter::Apart(limit) => {
                let hash = self.apart.seed.of(limit.rule, limit.whose, who, known);
                Some(Hold::Apart(self, limit.terms, hash))
            }
        }
    }

    /// The bucket of a limit that the caller brings.
    pub(crate) fn own(&self, limit: &OwnLimit, who: &Who<'_>, known: &Subjects) -> Hold<'_> {
        let rule = self.apart.seed.own_limit(limit.kind, limit.rate);
        let hash = self.apart.seed.of(rule, who.own(), who, known);
        Hold::Apart(self, SlotTerms::of(limit.rate), hash)
    }

    /// The place of a call's subject in a budget that counts subjects apart.
    pub(crate) fn account(
        &self,
        id: BudgetId,
        budget: &Budget,
        period: Period,
        who: &Who<'_>,
        known: &Subjects,
    ) -> Option<Account> {
        let rule = self.rules.get(id.index()).copied().flatten()?;
        Some(self.place(rule, budget.whose, budget.calendar, period, who, known))
    }

    /// The place of a call's subject in a budget that its caller brings.
    pub(crate) fn own_account(
        &self,
        budget: &OwnBudget,
        period: Period,
        who: &Who<'_>,
        known: &Subjects,
    ) -> Account {
        let rule = self.apart.seed.own_budget(&budget.unit, budget.calendar);
        self.place(rule, who.own(), budget.calendar, period, who, known)
    }

    fn place(
        &self,
        rule: u64,
        whose: Whose,
        calendar: Calendar,
        period: Period,
        who: &Who<'_>,
        known: &Subjects,
    ) -> Account {
        Account {
            hash: self.apart.seed.placed(rule, whose, who, known),
            days: Days::of(calendar, period),
        }
    }

    pub(crate) fn account_take(&self, at: Account, units: u64, amount: u64) -> Result<(), Short> {
        self.apart.accounts.take(at.hash, at.days, units, amount)
    }

    pub(crate) fn account_fits(&self, at: Account, units: u64, amount: u64) -> Result<(), Short> {
        self.apart.accounts.fits(at.hash, at.days, units, amount)
    }

    pub(crate) fn account_settle(&self, at: Account, reserved: u64, actual: u64) {
        let accounts = &self.apart.accounts;
        accounts.settle(at.hash, at.days, reserved, actual);
    }

    /// What a subject holds of a period of a budget that counts subjects apart; 0 where it never came.
    #[must_use]
    pub fn held(&self, id: BudgetId, budget: &Budget, period: Period, who: &Who<'_>) -> u64 {
        let account = self.account(id, budget, period, who, &Subjects::default());
        let held = account.and_then(|at| self.apart.accounts.held(at.hash, at.days));
        held.unwrap_or(0)
    }

    /// What the caller holds of a period of a budget that it brings; `None` where it never came.
    #[must_use]
    pub fn own_held(&self, budget: &OwnBudget, period: Period, who: &Who<'_>) -> Option<u64> {
        let at = self.own_account(budget, period, who, &Subjects::default());
        self.apart.accounts.held(at.hash, at.days)
    }

    /// Adds what is on record to what a subject holds of a budget that counts subjects apart. False where there is no
    /// place for it: then its calls are refused.
    pub fn restore(
        &self,
        id: BudgetId,
        budget: &Budget,
        period: Period,
        who: &Who<'_>,
        units: u64,
    ) -> bool {
        let account = self.account(id, budget, period, who, &Subjects::default());
        account.is_none_or(|at| self.apart.accounts.add(at.hash, at.days, units).is_ok())
    }

    /// The same of a budget that a caller brings.
    pub fn restore_own(
        &self,
        budget: &OwnBudget,
        period: Period,
        who: &Who<'_>,
        units: u64,
    ) -> bool {
        let at = self.own_account(budget, period, who, &Subjects::default());
        self.apart.accounts.add(at.hash, at.days, units).is_ok()
    }

    /// Takes off what stood in the place of a budget that a caller brings.
    pub fn clear_own(&self, budget: &OwnBudget, period: Period, who: &Who<'_>, units: u64) {
        let at = self.own_account(budget, period, who, &Subjects::default());
        self.account_settle(at, units, 0);
    }

    /// How far the tables of subjects are used; `unix_ms`: the wall clock at `now`. It walks both tables.
    #[must_use]
    pub fn usage(&self, now: Mono, unix_ms: u64) -> Usage {
        let (slots, accounts) = (&self.apart.slots, &self.apart.accounts);
        let windows = || {
            self.buckets.iter().filter_map(|counter| match counter {
                Counter::RollingApart(windows) => Some(windows),
                Counter::Shared(_) | Counter::Rolling(_) | Counter::Apart(_) => None,
            })
        };
        let active: usize = windows().map(|windows| windows.active(now)).sum();
        let turned_away: u64 = windows().map(|windows| windows.turned_away()).sum();
        Usage {
            buckets: slots.active(now).saturating_add(active),
            evicted: slots.evicted(),
            accounts: accounts.used(unix_ms),
            turned_away: accounts.turned_away().saturating_add(turned_away),
        }
    }
}
