//! Budgets in the log: a line when one runs low, and one when it refuses.
//!
//! Not here: admitting and settling (`policy::budget`), what budgets begin with (`ledger`), the metrics (`metrics`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use policy::budget::{Budget, Period, Spent};
use telemetry::budget::{MARKS, amount, percent};

use crate::running::Running;

/// How often budgets are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
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
        let revision = running.current().revision;
        let budgets = &revision.snapshot.budgets;
        for (id, budget) in budgets.iter() {
            if let Some(spent) = revision.levels.spent(id) {
                look(budget, spent, &mut told);
            }
        }
        told.retain(|name, _| budgets.list.iter().any(|b| b.name == *name));
    }
}

fn look(budget: &Budget, spent: &Spent, told: &mut HashMap<Arc<str>, Told>) {
    let calendar = budget.calendar;
    let period = calendar.of(now_ms());
    let level = spent.level(period);
    let told = told.entry(Arc::clone(&budget.name)).or_default();
    if told.period != period.0 {
        *told = Told {
            period: period.0,
            ..Told::default()
        };
    }
    // The next period's sum is made before a worker needs it.
    let _next = spent.level(Period(period.0 + 1));
    let (_, ends) = calendar.span(period);
    let until = policy::budget::period::timestamp(ends);
    let is = percent(budget, level);
    for mark in MARKS {
        if mark <= told.mark || mark > is {
            continue;
        }
        told.mark = mark;
        let (used, of) = (amount(budget, level.held), amount(budget, budget.amount));
        let unit = budget.unit.as_str();
        tracing::warn!(
            budget = %budget.name,
            percent = mark,
            used,
            of,
            unit,
            until,
            see = "docs/troubleshooting.md#a-budget-has-used-half-or-more",
            "budget {} has used {mark} %: {used} of {of} {unit}",
            budget.name
        );
    }
    if level.refused > 0 && !told.refusal {
        told.refusal = true;
        tracing::warn!(
            budget = %budget.name,
            until,
            see = "docs/troubleshooting.md#a-budget-refused-its-first-call-of-the-period",
            "budget {} refused its first call of the period",
            budget.name
        );
    }
}
