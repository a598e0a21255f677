//! Budgets as the process sees them: read back from the ledger when they begin, and marked in the
//! log when they run low.
//!
//! What cannot be known is read on the safe side: a row whose end was not seen counts as what was
//! held for it, one without a cost at today's price.
//! Invariant: a budget that another snapshot carried on is not read back; one that begins has the
//! running period's sum before the first call is held against it.
//! Not here: admitting and settling (`policy::budget`), the metrics (`admin`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ledger::{Known, Reader, Spent, Unsure};
use policy::budget::{Budget, Level, Period, Unit, nanos};
use policy::id::BackendId;
use policy::price::Pico;
use policy::snapshot::Snapshot;

use crate::book::Books;
use crate::running::Running;

/// How long what is on its way to the disk is waited for, before a running gate's ledger is read.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// How often budgets are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// Shares of a budget that are told of, percent.
pub(crate) const MARKS: [u64; 3] = [50, 80, 100];

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Adds what the running periods came to, to the budgets that `before` did not hand on.
pub(crate) fn read_back(
    snapshot: &Snapshot,
    before: Option<&Snapshot>,
    books: &Books,
) -> Result<(), String> {
    let handed_on = |budget: &&Budget| {
        let old = before.map_or(&[][..], |before| &before.budgets.list);
        old.iter().any(|old| Arc::ptr_eq(&old.spent, &budget.spent))
    };
    let begins = snapshot.budgets.list.iter().filter(|b| !handed_on(b));
    let now = now_ms();
    let mut by_span: BTreeMap<(u64, u64), Vec<&Budget>> = BTreeMap::new();
    for budget in begins {
        let calendar = budget.spent.calendar();
        let span = calendar.span(calendar.of(now));
        by_span.entry(span).or_default().push(budget);
    }
    if by_span.is_empty() {
        return Ok(());
    }
    if before.is_some() {
        flush(books);
    }
    let reader = Reader::open(books.ledger.path()).map_err(|error| format!("budgets: {error}"))?;
    for ((from_ms, to_ms), budgets) in by_span {
        let period = ledger::Period { from_ms, to_ms };
        let mut found = Found::default();
        reader
            .spent(
                period,
                |sum| budgets.iter().for_each(|budget| add(budget, &sum, now)),
                |row| {
                    for budget in &budgets {
                        found.add(budget, &row, snapshot, now);
                    }
                },
            )
            .map_err(|error| {
                // A gate that runs keeps what it has counted; none of it is read anew.
                if error.is_damage() {
                    books.ledger.condemn(&error.to_string());
                }
                format!("budgets: {error}")
            })?;
        found.tell();
    }
    Ok(())
}

/// Waits a while for what was entered to reach the disk.
fn flush(books: &Books) {
    let (done, is_done) = channel();
    books
        .ledger
        .intake()
        .flush(move |result| drop(done.send(result)));
    if !matches!(is_done.recv_timeout(FLUSH_WITHIN), Ok(Ok(()))) {
        tracing::warn!("the disk takes no rows: new budgets begin with what is on it");
    }
}

fn add(budget: &Budget, sum: &Spent, now: u64) {
    if !budget.counts(sum.workload.as_deref(), sum.model.as_deref()) {
        return;
    }
    let units = match &budget.unit {
        Unit::Tokens => sum.tokens,
        Unit::Money(currency) if sum.currency.as_deref() == Some(currency) => sum.nanos,
        Unit::Money(_) => 0,
    };
    seed(budget, units, now);
}

fn seed(budget: &Budget, units: u64, now: u64) {
    let period = budget.spent.calendar().of(now);
    budget.spent.settle(period, 0, units);
}

/// What was found that says too little.
#[derive(Default)]
struct Found {
    /// By budget: rows counted as what was held, rows at today's price, rows not counted.
    by: BTreeMap<Arc<str>, [u64; 3]>,
}

impl Found {
    fn add(&mut self, budget: &Budget, row: &Unsure, snapshot: &Snapshot, now: u64) {
        if !budget.counts(row.workload.as_deref(), row.model.as_deref()) {
            return;
        }
        let (units, kind) = match (&budget.unit, row.tokens) {
            (Unit::Tokens, Known::Counts(..)) => return,
            (Unit::Tokens, Known::Held(tokens)) => (tokens, 0),
            (Unit::Money(currency), known) => match today(row, currency, snapshot) {
                Some(cost) => (nanos(cost), usize::from(matches!(known, Known::Counts(..)))),
                None => (0, 2),
            },
        };
        self.by.entry(Arc::clone(&budget.name)).or_default()[kind] += 1;
        seed(budget, units, now);
    }

    fn tell(&self) {
        for (budget, [held, today, unknown]) in &self.by {
            tracing::warn!(
                %budget,
                held,
                today,
                unknown,
                "calls of this period whose end or cost is not on record: counted as what was held \
                 for them, at today's price, or not at all where there is none"
            );
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
        .filter_map(|listed| listed.price.as_ref())
        .filter(|price| *price.currency == *currency)
        .map(|price| price.request)
        .max()
}

/// How much of a budget is held, percent.
pub(crate) fn percent(budget: &Budget, level: Level) -> u64 {
    let held = u128::from(level.held) * 100 / u128::from(budget.amount.max(1));
    u64::try_from(held).unwrap_or(u64::MAX)
}

/// What was told of a budget's period.
#[derive(Default)]
struct Told {
    period: i64,
    mark: u64,
    refusal: bool,
}

/// Tells once a period of each mark that a budget passes, and of its first refusal. Never ends.
pub(crate) async fn mark(running: Arc<Running>) {
    let mut told: HashMap<Arc<str>, Told> = HashMap::new();
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        let snapshot = running.current().snapshot;
        for budget in &snapshot.budgets.list {
            look(budget, &mut told);
        }
        told.retain(|name, _| snapshot.budgets.list.iter().any(|b| b.name == *name));
    }
}

fn look(budget: &Budget, told: &mut HashMap<Arc<str>, Told>) {
    let calendar = budget.spent.calendar();
    let period = calendar.of(now_ms());
    let level = budget.spent.level(period);
    let told = told.entry(Arc::clone(&budget.name)).or_default();
    if told.period != period.0 {
        *told = Told {
            period: period.0,
            ..Told::default()
        };
    }
    // The next period's sum is made before a worker needs it.
    let _next = budget.spent.level(Period(period.0 + 1));
    let (_, ends) = calendar.span(period);
    let until = policy::budget::period::stamp(ends);
    let is = percent(budget, level);
    for mark in MARKS {
        if mark <= told.mark || mark > is {
            continue;
        }
        told.mark = mark;
        tracing::warn!(
            budget = %budget.name,
            percent = mark,
            of = amount(budget, budget.amount),
            unit = budget.unit.as_str(),
            until,
            "so much of the budget is spent or reserved"
        );
    }
    if level.refused > 0 && !told.refusal {
        told.refusal = true;
        tracing::warn!(budget = %budget.name, until, "the budget refused its first call");
    }
}

/// Units of a budget as a number that people read.
#[expect(clippy::cast_precision_loss, reason = "for logs and metrics")]
pub(crate) fn amount(budget: &Budget, units: u64) -> f64 {
    match budget.unit {
        Unit::Tokens => units as f64,
        Unit::Money(_) => units as f64 / 1e9,
    }
}
