//! Budgets read back: what the running periods have come to, for budgets that begin.
//!
//! What cannot be known is read on the safe side: a row whose end was not seen counts as what was held for it, one
//! without a cost at today's price.
//! Invariant: a budget that another revision handed on is not read back; one that begins has the running period's
//! sum before the first call is held against it.
//! Not here: admitting and settling (`policy::budget`), what the log says (the host).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use policy::budget::{self, Budget, Calendar, Unit, nano_units};
use policy::caller::{Caller, OwnBudget};
use policy::id::{BackendId, BudgetId};
use policy::levels::Levels;
use policy::price::Pico;
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use policy::subject::{Who, Whose};

use crate::intake::Ledger;
use crate::read::{Period, ReadError};
use crate::shared::unix_ms;
use crate::spent::{Calls, Known, Spent, Subject, Unsure};

/// How long what is on its way to the disk is waited for, before a running gate's ledger is read.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// What makes the sum of a budget uncertain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The disk takes no rows: budgets begin with what is on it.
    NotFlushed,
    /// The rows do not say which key or user asked: budgets that count these apart begin with nothing spent.
    NoSubjects {
        /// Those of the configuration.
        names: Vec<Arc<str>>,
        /// Callers that bring their own.
        own: usize,
    },
    /// There is no place for so many sums of keys and users, whose calls are refused.
    NoPlace {
        /// How many.
        sums: u64,
    },
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
        let mut by_span: BTreeMap<(u64, u64), Begins<'_>> = BTreeMap::new();
        for (id, budget) in snapshot.budgets.iter().filter(|(id, _)| begins(*id)) {
            let Some(spent) = levels.spent(id) else {
                continue;
            };
            let period = budget.calendar.of(now);
            let span = budget.calendar.span(period);
            by_span.entry(span).or_default().shared.push(Begun {
                id,
                budget,
                spent,
                period,
                levels,
            });
        }
        let counted = OwnCounted::by(before);
        for caller in snapshot.identity.budgeted() {
            for (nth, budget) in caller.budgets.iter().enumerate() {
                // Of a caller that this process knew it has counted every call: none yet is nothing spent. A first call
                // that comes while the file is read would be in the sums and in the count.
                if counted.has(&caller, budget) {
                    continue;
                }
                let period = budget.calendar.of(now);
                let who = Who {
                    workload: &caller.workload,
                    caller: Some(&caller),
                };
                let span = budget.calendar.span(period);
                let begun = by_span.entry(span).or_default();
                let own = begun.own.entry(OwnSubject::of(&caller)).or_default();
                own.push(BegunOwn {
                    nth,
                    period,
                    stood: levels.own_held(budget, period, &who).unwrap_or(0),
                    caller: Arc::clone(&caller),
                });
            }
        }
        if by_span.is_empty() {
            return Ok(());
        }
        if before.is_some() && !self.is_flushed() {
            tell(Doubt::NotFlushed);
        }
        let reader = self.shared().reader(self.path())?;
        let knows_subjects = reader.knows_subjects()?;
        let mut read_of = Vec::new();
        for ((from_ms, to_ms), mut budgets) in by_span {
            let period = Period { from_ms, to_ms };
            let by_subject = budgets.count_subjects() && knows_subjects;
            if !by_subject {
                budgets.forget_subjects(&mut tell);
            }
            let (mut sums, mut unsure, mut calls) = (Vec::new(), Vec::new(), Vec::new());
            let read = reader.spent(
                period,
                by_subject,
                |sum| sums.push(sum),
                |row| unsure.push(row),
            );
            // A gate that runs keeps what it has counted; none of it is read anew.
            if let Err(error) = &read
                && error.is_damage()
            {
                self.condemn(&error.to_string());
            }
            read?;
            if budgets.count_calls() {
                reader.calls(period, by_subject, |of| calls.push(of))?;
            }
            read_of.push((budgets, sums, unsure, calls));
        }
        // All of it is read, or nothing counts: a part would stand for the whole.
        for (budgets, sums, unsure, calls) in read_of {
            let mut found = Found::default();
            budgets.clear_own(levels);
            for sum in &sums {
                budgets.add(sum, levels, &mut found);
            }
            for row in &unsure {
                budgets.add_unsure(row, revision, &mut found);
            }
            for of in &calls {
                budgets.add_calls(of, &mut found);
            }
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
    id: BudgetId,
    budget: &'a Budget,
    spent: &'a budget::Spent,
    period: budget::Period,
    levels: &'a Levels,
}

impl Begun<'_> {
    fn counts_apart(&self) -> bool {
        self.budget.whose != Whose::Workload
    }

    /// False where there is no place for the subject.
    fn seed(&self, units: u64, workload: Option<&str>, subject: &Subject) -> bool {
        if !self.counts_apart() {
            self.spent.settle(self.period, 0, units);
            return true;
        }
        let caller = Arc::new(Caller {
            key: subject.key.as_deref().map(Arc::from),
            user: subject.user.as_deref().map(Arc::from),
            claims: subject.claims(),
            ..Caller::default()
        });
        let who = Who {
            workload: workload.unwrap_or_default(),
            caller: Some(&caller),
        };
        let (id, budget) = (self.id, self.budget);
        self.levels.restore(id, budget, self.period, &who, units)
    }
}

/// Whose a caller's own budgets are.
#[derive(PartialEq, Eq, Hash)]
struct OwnSubject {
    workload: String,
    whose: Whose,
    name: Option<String>,
    issuer: Option<String>,
}

impl OwnSubject {
    fn of(caller: &Arc<Caller>) -> Self {
        let subject = Subject {
            key: caller.key.as_deref().map(str::to_owned),
            user: caller.user.as_deref().map(str::to_owned),
            issuer: caller.issuer().map(str::to_owned),
        };
        Self::of_row(&caller.workload, &subject)
    }

    fn of_row(workload: &str, Subject { key, user, issuer }: &Subject) -> Self {
        let (whose, name, issuer) = match (key, user) {
            (None, Some(user)) => (Whose::User, Some(user), issuer.clone()),
            (key, _) => (Whose::Key, key.as_ref(), None),
        };
        Self {
            workload: workload.to_owned(),
            whose,
            name: name.cloned(),
            issuer,
        }
    }
}

/// The budgets that callers brought before a reload, by whose they are.
struct OwnCounted(HashMap<OwnSubject, Vec<(Unit, Calendar)>>);

impl OwnCounted {
    fn by(before: Option<&Revision>) -> Self {
        let mut counted: HashMap<_, Vec<_>> = HashMap::new();
        for caller in before.map_or_else(Vec::new, |of| of.snapshot.identity.budgeted()) {
            let budgets = caller.budgets.iter();
            let budgets = budgets.map(|budget| (budget.unit.clone(), budget.calendar));
            counted
                .entry(OwnSubject::of(&caller))
                .or_default()
                .extend(budgets);
        }
        Self(counted)
    }

    fn has(&self, caller: &Arc<Caller>, budget: &OwnBudget) -> bool {
        let of_caller = self.0.get(&OwnSubject::of(caller));
        of_caller.is_some_and(|counted| {
            let is_it = |(unit, calendar): &(Unit, Calendar)| {
                (unit, calendar) == (&budget.unit, &budget.calendar)
            };
            counted.iter().any(is_it)
        })
    }
}

/// The budgets that begin in one span of time.
#[derive(Default)]
struct Begins<'a> {
    shared: Vec<Begun<'a>>,
    /// By whose they are.
    own: HashMap<OwnSubject, Vec<BegunOwn>>,
}

/// A budget that a caller brings and that begins, with the running period.
struct BegunOwn {
    caller: Arc<Caller>,
    /// Which of its budgets.
    nth: usize,
    period: budget::Period,
    /// What stood in its place before the file was read.
    stood: u64,
}

impl BegunOwn {
    fn of(&self) -> Option<(&OwnBudget, Who<'_>)> {
        let who = Who {
            workload: &self.caller.workload,
            caller: Some(&self.caller),
        };
        Some((self.caller.budgets.get(self.nth)?, who))
    }
}

impl Begins<'_> {
    fn count_subjects(&self) -> bool {
        !self.own.is_empty() || self.shared.iter().any(Begun::counts_apart)
    }

    fn count_calls(&self) -> bool {
        self.shared
            .iter()
            .any(|begun| begun.budget.unit == Unit::Calls)
    }

    fn add_calls(&self, of: &Calls, found: &mut Found) {
        let workload = of.workload.as_deref();
        for begun in &self.shared {
            if begun.budget.counts_tool(workload, &of.tool) {
                found.placed(begun.seed(of.count, workload, &of.subject));
            }
        }
    }

    /// Leaves out those that count subjects apart: the file does not tell them apart.
    fn forget_subjects(&mut self, tell: &mut impl FnMut(Doubt)) {
        let apart = self.shared.extract_if(.., |begun| begun.counts_apart());
        let names: Vec<_> = apart.map(|begun| Arc::clone(&begun.budget.name)).collect();
        let own = std::mem::take(&mut self.own).len();
        if !names.is_empty() || own > 0 {
            tell(Doubt::NoSubjects { names, own });
        }
    }

    fn add(&self, sum: &Spent, levels: &Levels, found: &mut Found) {
        let (workload, model) = (sum.workload.as_deref(), sum.model.as_deref());
        let units = |unit: &Unit| match unit {
            Unit::Tokens => sum.tokens,
            Unit::Calls => 0,
            Unit::Money(currency) if sum.currency.as_deref() == Some(currency) => sum.nanos,
            Unit::Money(_) => 0,
        };
        for begun in &self.shared {
            if begun.budget.counts(workload, model) {
                let units = units(&begun.budget.unit);
                found.placed(units == 0 || begun.seed(units, workload, &sum.subject));
            }
        }
        self.each_own(workload, &sum.subject, |budget, period, who| {
            let units = units(&budget.unit);
            found.placed(units == 0 || levels.restore_own(budget, period, who, units));
        });
    }

    fn add_unsure(&self, row: &Unsure, of: &Revision, found: &mut Found) {
        let Revision { snapshot, levels } = of;
        let (workload, model) = (row.workload.as_deref(), row.model.as_deref());
        for begun in &self.shared {
            let budget = begun.budget;
            if budget.counts(workload, model)
                && let Some(units) = found.units(&budget.name, &budget.unit, row, snapshot)
            {
                found.placed(units == 0 || begun.seed(units, workload, &row.subject));
            }
        }
        let name: Arc<str> = "callers' own".into();
        self.each_own(workload, &row.subject, |budget, period, who| {
            if let Some(units) = found.units(&name, &budget.unit, row, snapshot) {
                found.placed(units == 0 || levels.restore_own(budget, period, who, units));
            }
        });
    }

    /// Empties the places of callers' own budgets. One that was taken away and is given again stands there as it was left: that is on record
    /// too, with what was used meanwhile. What came while the file was read stays; what ended meanwhile is gone already.
    fn clear_own(&self, levels: &Levels) {
        for begun in self.own.values().flatten() {
            if let Some((budget, who)) = begun.of() {
                let stands = levels.own_held(budget, begun.period, &who).unwrap_or(0);
                levels.clear_own(budget, begun.period, &who, begun.stood.min(stands));
            }
        }
    }

    fn each_own(
        &self,
        workload: Option<&str>,
        subject: &Subject,
        mut f: impl FnMut(&OwnBudget, budget::Period, &Who<'_>),
    ) {
        if self.own.is_empty() {
            return;
        }
        let subject = OwnSubject::of_row(workload.unwrap_or_default(), subject);
        for begun in self.own.get(&subject).into_iter().flatten() {
            if let Some((budget, who)) = begun.of() {
                f(budget, begun.period, &who);
            }
        }
    }
}

/// What was found that says too little.
#[derive(Default)]
struct Found {
    /// By budget: rows counted as what was held, rows at today's price, rows not counted.
    by: BTreeMap<Arc<str>, [u64; 3]>,
    /// Sums and rows for which there was no place.
    displaced: u64,
}

impl Found {
    /// What a row counts in this unit, if it says anything of it.
    fn units(
        &mut self,
        name: &Arc<str>,
        unit: &Unit,
        row: &Unsure,
        snapshot: &Snapshot,
    ) -> Option<u64> {
        let (units, kind) = match (unit, row.tokens) {
            (Unit::Calls, _) | (Unit::Tokens, Known::Counts(..)) => return None,
            (Unit::Tokens, Known::Held(tokens)) => (tokens, 0),
            (Unit::Money(currency), known) => match today(row, currency, snapshot) {
                Some(cost) => (
                    nano_units(cost),
                    usize::from(matches!(known, Known::Counts(..))),
                ),
                None => (0, 2),
            },
        };
        self.by.entry(Arc::clone(name)).or_default()[kind] += 1;
        Some(units)
    }

    fn placed(&mut self, is_placed: bool) {
        self.displaced += u64::from(!is_placed);
    }

    fn tell(self, tell: &mut impl FnMut(Doubt)) {
        if self.displaced > 0 {
            tell(Doubt::NoPlace {
                sums: self.displaced,
            });
        }
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
        let of_any = snapshot.prices.of_any(model, backend);
        return of_any
            .filter(|price| *price.currency == *currency)
            .filter_map(cost)
            .max();
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
    let workload = snapshot.workload(workload)?;
    let grants = workload.grants.iter().chain(&workload.plain);
    grants
        .filter_map(|grant| snapshot.route(grant.route))
        .flat_map(|route| &route.unread)
        .filter_map(|listed| snapshot.prices.get(listed.price?))
        .filter(|price| *price.currency == *currency)
        .map(|price| price.request)
        .max()
}
