//! Metrics of budgets: what they have, what is left, which marks are passed.
//!
//! Not here: what is held against them (`policy::budget`).

use policy::snapshot::Snapshot;
use telemetry::Extra;

use super::{With, counter, gauge, number};
use crate::budget::{MARKS, amount, now_ms, percent};

/// All of them, now.
pub(super) fn of(snapshot: &Snapshot) -> Vec<Extra> {
    let now = now_ms();
    let mut extras = Vec::new();
    for budget in &snapshot.budgets.list {
        let level = budget.spent.level(budget.spent.calendar().of(now));
        let left = budget.amount.saturating_sub(level.held);
        let labelled = |extra: Extra| {
            extra
                .with("budget", &budget.name)
                .with("unit", budget.unit.as_str())
        };
        let help = "What a period of the budget has: tokens, or money in the unit's currency.";
        let has = gauge(
            "tollgate_budget_amount",
            help,
            amount(budget, budget.amount),
        );
        extras.push(labelled(has));
        let help = "What is left of the running period: neither spent nor reserved.";
        let left = gauge("tollgate_budget_left", help, amount(budget, left));
        extras.push(labelled(left));
        let help = "Calls of the running period that the budget had no room for.";
        let refused = counter("tollgate_budget_refused_total", help, number(level.refused));
        extras.push(refused.with("budget", &budget.name));
        let is = percent(budget, level);
        for mark in MARKS {
            let help = "Whether so much of the running period is spent or reserved (1) or not (0).";
            let passed = f64::from(u8::from(is >= mark));
            let passed = gauge("tollgate_budget_passed", help, passed);
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
