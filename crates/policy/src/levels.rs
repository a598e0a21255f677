//! Levels: what limits and budgets hold now, in a table that lives beside a snapshot.
//!
//! A bucket or a rolling window for each limit and the counters of each budget. All workers share them, and a table hands
//! them on to the next one where the limit or the budget stays the same, so that a reload neither forgives debt nor
//! invents any.
//! A limit is recognised by its key and its window, or by its key alone where its window was rewritten; a budget by
//! its name, what it counts and its calendar. Those that count keys or users apart, and those that a caller brings,
//! have theirs in two tables of bounded size, which are made once and handed on as they are ([`subjects`]); a rolling
//! window for each of them is in a table of its limit (`windows`).
//! Invariant: ids are used only with the table of the snapshot that made them; the two go together ([`crate::revision`]).
//! Not here: how a bucket works ([`crate::limit`]), how a budget's counters do ([`crate::budget`]).

mod accounts;
mod responses;
mod slots;
pub mod subjects;
pub(crate) mod used;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use self::accounts::ACCOUNT_MAX;
use self::accounts::Accounts;
pub(crate) use self::accounts::Short;
use self::responses::Responses;
use self::slots::{SlotTerms, Slots};
use self::windows::Windows;
use crate::budget::{Budget, Spent};
use crate::clock::Mono;
use crate::id::{BudgetId, LimitId};
use crate::limit::rolling::{Rolling, Room};
use crate::limit::{Bucket, Level, Window};
use crate::snapshot::{Limit, Snapshot};
use crate::subject::{Seed, Whose};

/// The levels of one snapshot's limits and budgets.
#[derive(Debug)]
pub struct Levels {
    /// By limit.
    buckets: Vec<Counter>,
    /// By budget; of one that counts subjects apart, only what it refused.
    spent: Vec<Arc<Spent>>,
    /// By budget: the rule of one that counts subjects apart.
    rules: Vec<Option<u64>>,
    apart: Arc<Tables>,
}

/// What a limit takes from.
#[derive(Debug)]
enum Counter {
    /// From one bucket.
    Shared(Arc<Bucket>),
    /// From one rolling window.
    Rolling(Arc<Rolling>),
    /// From a bucket of each subject.
    Apart(Box<Apart>),
    /// From a rolling window of each subject.
    RollingApart(Arc<Windows>),
}

/// A limit that counts subjects apart.
#[derive(Debug)]
struct Apart {
    rule: u64,
    whose: Whose,
    terms: SlotTerms,
}

/// The tables of subjects, one pair for each process.
#[derive(Debug)]
struct Tables {
    /// How many subjects each has room for.
    subjects: usize,
    seed: Seed,
    slots: Slots,
    accounts: Accounts,
    /// Budgets that have begun.
    begun: AtomicU64,
    /// What answers came to that upstreams keep.
    responses: Responses,
}

impl Levels {
    /// Full buckets, and budgets of which nothing is spent.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        Self::seeded(snapshot, [0, 0])
    }

    /// The same, with tables of subjects in which nobody outside knows who shares a place.
    #[must_use]
    pub fn seeded(snapshot: &Snapshot, seed: [u64; 2]) -> Self {
        let subjects = snapshot.bounds.subjects;
        let apart = Arc::new(Tables {
            subjects,
            seed: Seed(seed),
            slots: Slots::new(subjects),
            accounts: Accounts::new(subjects),
            begun: AtomicU64::new(0),
            responses: Responses::default(),
        });
        let limits = snapshot.limits.iter();
        let budgets = || snapshot.budgets.list.iter();
        Self {
            buckets: limits.map(|limit| apart.full(limit)).collect(),
            spent: budgets().map(unspent).collect(),
            rules: budgets().map(|budget| apart.begins(budget)).collect(),
            apart,
        }
    }

    /// Those of `new`, which takes the place of `old`: what stays the same keeps its bucket or its counters, a limit
    /// whose rate or window changed keeps what it owes. A subject's bucket is full again when it would have been where
    /// the amount changed, and full at once where the window did.
    #[must_use]
    pub fn carried(new: &Snapshot, old: &Snapshot, levels: &Self, now: Mono) -> Self {
        let (spent, rules) = levels.carried_spent(&new.budgets.list, &old.budgets.list);
        Self {
            buckets: levels.carried_buckets(&new.limits, &old.limits, now),
            spent,
            rules,
            apart: Arc::clone(&levels.apart),
        }
    }

    /// The bucket of a limit that all callers of its workload share, if the id is of this table's snapshot.
    #[inline]
    #[must_use]
    pub fn bucket(&self, id: LimitId) -> Option<&Bucket> {
        match self.buckets.get(id.index())? {
            Counter::Shared(bucket) => Some(bucket),
            Counter::Rolling(_) | Counter::Apart(_) | Counter::RollingApart(_) => None,
        }
    }

    /// What a limit holds that all callers of its workload share, if the id is of this table's snapshot.
    #[must_use]
    pub fn level(&self, id: LimitId, now: Mono) -> Option<Level> {
        match self.buckets.get(id.index())? {
            Counter::Shared(bucket) => Some(bucket.level(now)),
            Counter::Rolling(window) => Some(window.level(now)),
            Counter::Apart(_) | Counter::RollingApart(_) => None,
        }
    }

    /// The rolling window of a limit that all callers of its workload share, if the id is of this table's snapshot.
    #[must_use]
    pub fn window(&self, id: LimitId) -> Option<&Rolling> {
        match self.buckets.get(id.index())? {
            Counter::Rolling(window) => Some(window),
            Counter::Shared(_) | Counter::Apart(_) | Counter::RollingApart(_) => None,
        }
    }

    /// What is spent of a budget, if the id is of this table's snapshot. Of one that counts subjects apart, nothing
    /// stands there but how many calls it refused.
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

    /// Notes how many tokens a response came to, which its upstream may keep under this id.
    pub(crate) fn note_response(&self, id: &[u8], tokens: u64) {
        let Tables {
            seed, responses, ..
        } = &*self.apart;
        responses.note(seed.response(id), tokens);
    }

    /// The tokens of the response of this id; 0 where nobody knows.
    pub(crate) fn of_response(&self, id: &[u8]) -> u64 {
        let Tables {
            seed, responses, ..
        } = &*self.apart;
        responses.of(seed.response(id))
    }

    fn carried_buckets(&self, new: &[Limit], old: &[Limit], now: Mono) -> Vec<Counter> {
        let old = || {
            let old = old.iter().zip(&self.buckets);
            old.filter(|(_, counter)| !matches!(counter, Counter::Apart(_)))
        };
        let mut same: HashMap<(&str, Duration), &Counter> = old()
            .map(|(limit, counter)| ((&*limit.key, limit.rate.per), counter))
            .collect();
        let exact: Vec<_> = new
            .iter()
            .map(|limit| same.remove(&(&*limit.key, limit.rate.per)))
            .collect();
        // Those that are left were rewritten, or are gone.
        let mut rewritten: HashMap<&str, Vec<&Counter>> = HashMap::new();
        for (limit, counter) in old().collect::<Vec<_>>().into_iter().rev() {
            if same.contains_key(&(&*limit.key, limit.rate.per)) {
                rewritten.entry(&limit.key).or_default().push(counter);
            }
        }
        let counter = |(limit, exact): (&Limit, Option<&Counter>)| {
            let before = exact.or_else(|| rewritten.get_mut(&*limit.key)?.pop());
            let carried = before.and_then(|before| before.carried(limit, now));
            carried.unwrap_or_else(|| self.apart.full(limit))
        };
        new.iter().zip(exact).map(counter).collect()
    }

    fn carried_spent(&self, new: &[Budget], old: &[Budget]) -> (Vec<Arc<Spent>>, Vec<Option<u64>>) {
        let old = old.iter().zip(self.spent.iter().zip(&self.rules));
        let known: HashMap<&str, _> = old.map(|pair| (&*pair.0.name, pair)).collect();
        let spent = |budget: &Budget| match known.get(&*budget.name) {
            Some((before, (spent, rule))) if before.is_counted_as(budget) => {
                (Arc::clone(spent), **rule)
            }
            _ => (unspent(budget), self.apart.begins(budget)),
        };
        new.iter().map(spent).unzip()
    }
}

impl Counter {
    /// What a limit takes from that took from this one before. Where it counted the other way, what it owed is taken now.
    /// Slots of subjects need not be carried.
    fn carried(&self, limit: &Limit, now: Mono) -> Option<Self> {
        let (kind, rate) = (limit.kind, limit.rate);
        Some(match (self, limit.window) {
            (Self::Shared(old), Window::Bucket) if old.rate() == rate => {
                Self::Shared(Arc::clone(old))
            }
            (Self::Shared(old), Window::Bucket) => Self::Shared(Bucket::carried(rate, old, now)),
            (Self::Shared(old), Window::Rolling) => {
                let window = Rolling::holding(kind, rate, old.owed(now), now);
                Self::Rolling(Arc::new(window))
            }
            (Self::Rolling(old), Window::Rolling) if old.rate() == rate => {
                Self::Rolling(Arc::clone(old))
            }
            (Self::Rolling(old), Window::Rolling) => {
                Self::Rolling(Rolling::carried(kind, rate, Room::Ample, old))
            }
            (Self::Rolling(old), Window::Bucket) => {
                Self::Shared(Arc::new(Bucket::owing(rate, old.units(now), now)))
            }
            (Self::RollingApart(old), Window::Rolling) if old.rate() == rate => {
                Self::RollingApart(Arc::clone(old))
            }
            (Self::RollingApart(old), Window::Rolling) => {
                Self::RollingApart(Arc::new(Windows::carried(rate, old, now)))
            }
            (Self::Apart(_), _) | (Self::RollingApart(_), Window::Bucket) => return None,
        })
    }

    /// What a limit that begins takes from, where all callers of its workload share it.
    fn begun(limit: &Limit) -> Self {
        match limit.window {
            Window::Bucket => Self::Shared(Arc::new(Bucket::new(limit.rate))),
            Window::Rolling => {
                Self::Rolling(Arc::new(Rolling::new(limit.kind, limit.rate, Room::Ample)))
            }
        }
    }
}

impl Tables {
    /// What a limit that begins takes from. Subjects that it had before have their slots still.
    fn full(&self, limit: &Limit) -> Counter {
        if limit.whose == Whose::Workload {
            return Counter::begun(limit);
        }
        if limit.window == Window::Rolling {
            let rule = self.seed.limit(&limit.key, limit.rate);
            let windows = Windows::new(limit.kind, limit.rate, self.subjects, limit.whose, rule);
            return Counter::RollingApart(Arc::new(windows));
        }
        Counter::Apart(Box::new(Apart {
            rule: self.seed.limit(&limit.key, limit.rate),
            whose: limit.whose,
            terms: SlotTerms::of(limit.rate),
        }))
    }

    /// The rule of a budget that begins: one of its own, so that nothing stands in its subjects' places.
    fn begins(&self, budget: &Budget) -> Option<u64> {
        let nth = self.begun.fetch_add(1, Ordering::Relaxed);
        (budget.whose != Whose::Workload).then(|| self.seed.budget(&budget.name, nth))
    }
}

fn unspent(budget: &Budget) -> Arc<Spent> {
    Arc::new(Spent::new(budget.calendar))
}

#[cfg(test)]
mod tests;
