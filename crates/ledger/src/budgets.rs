//! Budgets read back: what the running periods have come to, for budgets that begin.
//!
//! What cannot be known is read on the safe side: a row whose end was not seen counts as what was held for it, one
//! without a cost at today's price.
//! Invariant: a budget that another revision handed on is not read back; one that begins has the running period's
//! sum before the first call is held against it.
//! Not here: admitting and settling (`policy::budget`), what the log says (the host).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use policy::budget::{self, Budget, Unit, nano_units};
use policy::id::BackendId;
use policy::price::Pico;
use policy::revision::Revision;
use policy::snapshot::Snapshot;

use crate::intake::Ledger;
use crate::read::{Period, ReadError, Reader};
use crate::shared::unix_ms;
use crate::spent::{Known, Spent, Unsure, Whose};

/// How long what is on its way to the disk is waited for, before a running gate's ledger is read.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// What makes the sum of a budget uncertain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The disk takes no rows: budgets begin with what is on it.
    NotFlushed,
    /// Calls of this budget's period whose end or cost is not on record.
    Rows {
        /// The budget's name.
        budget: Arc<str>,
        /// Counted as what was held for them.
        held: u64,
        /// Counted at today's price.
        today: u64,
        /// Not counted: there is no price today.
        unknown: u64,
    },
}

impl Ledger {
    /// Adds what the running periods came to, to the budgets that `before` did not hand on, and tells of doubts.
    ///
    /// # Errors
    /// When the ledger cannot be read; one that is damaged takes no more rows.
    pub fn seed_budgets(
        &self,
        revision: &Revision,
        before: Option<&Revision>,
        mut tell: impl FnMut(Doubt),
    ) -> Result<(), ReadError> {
        let Revision { snapshot, levels } = revision;
        let begins = |id| before.is_none_or(|before| !levels.has_from(&before.levels, id));
        let now = unix_ms();
        let mut by_span: BTreeMap<(u64, u64), Vec<Begun<'_>>> = BTreeMap::new();
        for (id, budget) in snapshot.budgets.iter().filter(|(id, _)| begins(*id)) {
            let Some(spent) = levels.spent(id) else {
                continue;
            };
            let period = budget.calendar.of(now);
            let span = budget.calendar.span(period);
            by_span.entry(span).or_default().push(Begun {
                budget,
                spent,
                period,
            });
        }
        if by_span.is_empty() {
            return Ok(());
        }
        if before.is_some() && !self.is_flushed() {
            tell(Doubt::NotFlushed);
        }
        let reader = Reader::open(self.path())?;
        for ((from_ms, to_ms), budgets) in by_span {
            let period = Period { from_ms, to_ms };
            let mut found = Found::default();
            let read = reader.spent(
                period,
                Whose::All,
                |sum| budgets.iter().for_each(|begun| begun.add(&sum)),
                |row| {
                    for begun in &budgets {
                        found.add(begun, &row, snapshot);
                    }
                },
            );
            // A gate that runs keeps what it has counted; none of it is read anew.
            if let Err(error) = &read
                && error.is_damage()
            {
                self.condemn(&error.to_string());
            }
            read?;
            found.tell(&mut tell);
        }
        Ok(())
    }

    /// Waits a while for what was entered to reach the disk.
    fn is_flushed(&self) -> bool {
        let (done, is_done) = channel();
        self.intake().flush(move |result| drop(done.send(result)));
        matches!(is_done.recv_timeout(FLUSH_WITHIN), Ok(Ok(())))
    }
}

/// A budget that begins, with its counters and the running period.
struct Begun<'a> {
    budget: &'a Budget,
    spent: &'a budget::Spent,
    period: budget::Period,
}

impl Begun<'_> {
    fn add(&self, sum: &Spent) {
        if !self
            .budget
            .counts(sum.workload.as_deref(), sum.model.as_deref())
        {
            return;
        }
        self.seed(match &self.budget.unit {
            Unit::Tokens => sum.tokens,
            Unit::Money(currency) if sum.currency.as_deref() == Some(currency) => sum.nanos,
            Unit::Money(_) => 0,
        });
    }

    fn seed(&self, units: u64) {
        self.spent.settle(self.period, 0, units);
    }
}

/// What was found that says too little.
#[derive(Default)]
struct Found {
    /// By budget: rows counted as what was held, rows at today's price, rows not counted.
    by: BTreeMap<Arc<str>, [u64; 3]>,
}

impl Found {
    fn add(&mut self, begun: &Begun<'_>, row: &Unsure, snapshot: &Snapshot) {
        let budget = begun.budget;
        if !budget.counts(row.workload.as_deref(), row.model.as_deref()) {
            return;
        }
        let (units, kind) = match (&budget.unit, row.tokens) {
            (Unit::Tokens, Known::Counts(..)) => return,
            (Unit::Tokens, Known::Held(tokens)) => (tokens, 0),
            (Unit::Money(currency), known) => match today(row, currency, snapshot) {
                Some(cost) => (
                    nano_units(cost),
                    usize::from(matches!(known, Known::Counts(..))),
                ),
                None => (0, 2),
            },
        };
        self.by.entry(Arc::clone(&budget.name)).or_default()[kind] += 1;
        begun.seed(units);
    }

    fn tell(self, tell: &mut impl FnMut(Doubt)) {
        for (budget, [held, today, unknown]) in self.by {
            tell(Doubt::Rows {
                budget,
                held,
                today,
                unknown,
            });
        }
    }
}

/// The dearest that today's prices make a row.
fn today(row: &Unsure, currency: &str, snapshot: &Snapshot) -> Option<Pico> {
    let Some(model) = row.model.as_deref() else {
        return listed(row, currency, snapshot);
    };
    let at = |name: &str| {
        let at = snapshot.backends.iter().position(|b| *b.name == *name)?;
        u32::try_from(at).ok().map(BackendId)
    };
    let cost = |price: &std::sync::Arc<policy::price::Price>| match row.tokens {
        Known::Counts(prompt, completion) => price.at_most(prompt, completion),
        Known::Held(tokens) => price.at_most_of(tokens),
    };
    if let Some(backend) = row.backend.as_deref().and_then(at) {
        let price = snapshot.prices.of(model, Some(backend));
        return price.filter(|p| *p.currency == *currency).and_then(cost);
    }
    let anywhere = snapshot.prices.iter();
    anywhere
        .filter(|(of, _, price)| *of == model && *price.currency == *currency)
        .filter_map(|(_, _, price)| cost(price))
        .max()
}

/// The dearest call that the routes of a row's workload list: what a row without a model may have been.
fn listed(row: &Unsure, currency: &str, snapshot: &Snapshot) -> Option<Pico> {
    let workload = snapshot.workload_named(row.workload.as_deref()?.as_bytes())?;
    let grants = snapshot.workload(workload)?.grants.iter();
    grants
        .filter_map(|grant| snapshot.route(grant.route))
        .flat_map(|route| &route.unread)
        .filter_map(|listed| snapshot.prices.get(listed.price?))
        .filter(|price| *price.currency == *currency)
        .map(|price| price.request)
        .max()
}
