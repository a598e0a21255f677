//! Levels: what limits and budgets hold now, in a table that lives beside a snapshot.
//!
//! A bucket for each limit and the counters of each budget. All workers share them, and a table hands them on to the
//! next one where the limit or the budget stays the same, so that a reload neither forgives debt nor invents any.
//! A limit is recognised by its key and its window, or by its key alone where its window was rewritten; a budget by
//! its name, what it counts and its calendar.
//! Invariant: ids are used only with the table of the snapshot that made them; the two go together ([`crate::revision`]).
//! Not here: how a bucket works ([`crate::limit`]), how a budget's counters do ([`crate::budget`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::{Budget, Spent};
use crate::clock::Mono;
use crate::id::{BudgetId, LimitId};
use crate::limit::Bucket;
use crate::snapshot::{Limit, Snapshot};

/// The levels of one snapshot's limits and budgets.
#[derive(Debug)]
pub struct Levels {
    /// By limit.
    buckets: Vec<Arc<Bucket>>,
    /// By budget.
    spent: Vec<Arc<Spent>>,
}

impl Levels {
    /// Full buckets, and budgets of which nothing is spent.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        let limits = snapshot.limits.iter();
        let budgets = snapshot.budgets.list.iter();
        Self {
            buckets: limits.map(full).collect(),
            spent: budgets.map(unspent).collect(),
        }
    }

    /// Those of `new`, which takes the place of `old`: what stays the same keeps its bucket or its counters, a limit
    /// whose rate or window changed keeps what it owes.
    #[must_use]
    pub fn carried(new: &Snapshot, old: &Snapshot, levels: &Self, now: Mono) -> Self {
        Self {
            buckets: levels.carried_buckets(&new.limits, &old.limits, now),
            spent: levels.carried_spent(&new.budgets.list, &old.budgets.list),
        }
    }

    /// The bucket of a limit, if the id is of this table's snapshot.
    #[inline]
    #[must_use]
    pub fn bucket(&self, id: LimitId) -> Option<&Bucket> {
        self.buckets.get(id.index()).map(|bucket| &**bucket)
    }

    /// What is spent of a budget, if the id is of this table's snapshot.
    #[inline]
    #[must_use]
    pub fn spent(&self, id: BudgetId) -> Option<&Spent> {
        self.spent.get(id.index()).map(|spent| &**spent)
    }

    /// Whether `before` handed the counters of a budget on.
    #[must_use]
    pub fn has_from(&self, before: &Self, id: BudgetId) -> bool {
        let own = self.spent.get(id.index());
        own.is_some_and(|own| before.spent.iter().any(|old| Arc::ptr_eq(own, old)))
    }

    fn carried_buckets(&self, new: &[Limit], old: &[Limit], now: Mono) -> Vec<Arc<Bucket>> {
        let old = || old.iter().zip(&self.buckets);
        let mut same: HashMap<(&str, Duration), &Arc<Bucket>> = old()
            .map(|(limit, bucket)| ((&*limit.key, limit.rate.per), bucket))
            .collect();
        let exact: Vec<_> = new
            .iter()
            .map(|limit| same.remove(&(&*limit.key, limit.rate.per)))
            .collect();
        // Those that are left were rewritten, or are gone.
        let mut rewritten: HashMap<&str, Vec<&Arc<Bucket>>> = HashMap::new();
        for (limit, bucket) in old().rev() {
            if same.contains_key(&(&*limit.key, limit.rate.per)) {
                rewritten.entry(&limit.key).or_default().push(bucket);
            }
        }
        let bucket = |(limit, exact): (&Limit, Option<&Arc<Bucket>>)| {
            let before = exact.or_else(|| rewritten.get_mut(&*limit.key)?.pop());
            match before {
                Some(before) if before.rate() == limit.rate => Arc::clone(before),
                Some(before) => Bucket::carried(limit.rate, before, now),
                None => full(limit),
            }
        };
        new.iter().zip(exact).map(bucket).collect()
    }

    fn carried_spent(&self, new: &[Budget], old: &[Budget]) -> Vec<Arc<Spent>> {
        let old = old.iter().zip(&self.spent);
        let known: HashMap<&str, _> = old.map(|pair| (&*pair.0.name, pair)).collect();
        let spent = |budget: &Budget| match known.get(&*budget.name) {
            Some((before, spent)) if before.is_counted_as(budget) => Arc::clone(spent),
            _ => unspent(budget),
        };
        new.iter().map(spent).collect()
    }
}

fn full(limit: &Limit) -> Arc<Bucket> {
    Arc::new(Bucket::new(limit.rate))
}

fn unspent(budget: &Budget) -> Arc<Spent> {
    Arc::new(Spent::new(budget.calendar))
}

#[cfg(test)]
mod tests;
