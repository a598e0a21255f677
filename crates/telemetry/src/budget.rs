//! Metrics of budgets: what they have, what is left, which marks are passed.
//!
//! Not here: what is held against them (`policy::budget`).

use policy::budget::{Budget, Level, Unit};
use policy::revision::Revision;
use policy::subject::Whose;

use crate::extras::{Extra, number};

/// Shares of a budget that are told of, percent.
pub const MARKS: [u64; 3] = [50, 80, 100];

/// All of them, at `now`, milliseconds since the Unix epoch.
#[must_use]
pub fn metrics(of: &Revision, now: u64) -> Vec<Extra> {
    let mut extras = Vec::new();
    for (id, budget) in of.snapshot.budgets.iter() {
        let period = budget.calendar.of(now);
        let spent = of.levels.spent(id);
        let level = spent.map_or_else(Level::default, |spent| spent.level(period));
        let left = budget.amount.saturating_sub(level.held);
        let labelled = |extra: Extra| {
            extra
                .with("budget", &budget.name)
                .with("unit", budget.unit.as_str())
        };
        let help = "What a period of the budget has: tokens, or money in the unit's currency.";
        let has = Extra::gauge(
            "tollgate_budget_amount",
            help,
            amount(budget, budget.amount),
        );
        extras.push(labelled(has));
        let help = "Calls of the running period that the budget had no room for.";
        let refused = Extra::counter("tollgate_budget_refused_total", help, number(level.refused));
        extras.push(refused.with("budget", &budget.name));
        if budget.whose != Whose::Workload {
            // What is left is another number for each key or user.
            continue;
        }
        let help = "What is left of the running period: neither spent nor reserved.";
        let left = Extra::gauge("tollgate_budget_left", help, amount(budget, left));
        extras.push(labelled(left));
        let is = percent(budget, level);
        for mark in MARKS {
            let help = "Whether this share of the running period's amount is spent or reserved (1) or not (0).";
            let passed = f64::from(u8::from(is >= mark));
            let passed = Extra::gauge("tollgate_budget_passed", help, passed);
            extras.push(
                passed
                    .with("budget", &budget.name)
                    .with("percent", &mark.to_string()),
            );
        }
    }
    // A name's samples stand together on the page.
    extras.sort_by(|a, b| a.name.cmp(&b.name));
    extras
}

/// How much of a budget is held, percent.
#[must_use]
pub fn percent(budget: &Budget, level: Level) -> u64 {
    let held = u128::from(level.held) * 100 / u128::from(budget.amount.max(1));
    u64::try_from(held).unwrap_or(u64::MAX)
}

/// Units of a budget as a number that people read.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for logs and metrics")]
pub fn amount(budget: &Budget, units: u64) -> f64 {
    match budget.unit {
        Unit::Tokens | Unit::Calls => units as f64,
        Unit::Money(_) => units as f64 / 1e9,
    }
}
