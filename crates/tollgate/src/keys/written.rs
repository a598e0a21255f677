//! What a key has, in the words of the options that give it.
//!
//! Invariant: what stands here can be given to `tollgate keys` again, but for an end, which is a date.
//! Not here: tables of keys (`keys`), JSON (`keyring`).

use identity::keys::{BudgetPer, Entry, LimitOf, WrittenBudget, WrittenLimit};
use ledger::date;

/// What a key need not have, by name, in the order of the options.
pub(super) fn parts(entry: &Entry) -> [(&'static str, String); 6] {
    let listed = |list: Vec<String>| match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(", "),
    };
    let tags = entry
        .tags
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let models = match entry.models.is_empty() {
        true => "all of its workload".to_owned(),
        false => entry.models.join(", "),
    };
    let end = entry.expires_unix_s;
    let end = end.map(|at| date::timestamp(at.saturating_mul(1000)));
    [
        (
            "name",
            entry.name.clone().unwrap_or_else(|| "none".to_owned()),
        ),
        ("tags", listed(tags.collect())),
        ("models", models),
        ("limits", listed(entry.limits.iter().map(limit).collect())),
        (
            "budgets",
            listed(entry.budgets.iter().map(budget).collect()),
        ),
        ("expires", end.unwrap_or_else(|| "never".to_owned())),
    ]
}

fn limit(limit: &WrittenLimit) -> String {
    let of = match limit.of {
        LimitOf::Requests => "requests",
        LimitOf::Tokens => "tokens",
    };
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let whole = units
        .iter()
        .find(|(unit, _)| limit.per_s.is_multiple_of(*unit));
    let (unit, letter) = whole.copied().unwrap_or((1, 's'));
    format!("{of}={}/{}{letter}", limit.amount, limit.per_s / unit)
}

fn budget(budget: &WrittenBudget) -> String {
    let per = match budget.per {
        BudgetPer::Day => "day",
        BudgetPer::Week => "week",
        BudgetPer::Month => "month",
    };
    format!("{}{}/{per}", budget.amount, budget.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_budgets_read_as_the_options_that_give_them() {
        for (per_s, is) in [(60, "1m"), (90, "90s"), (7200, "2h"), (604_800, "7d")] {
            let of = LimitOf::Tokens;
            let limit = super::limit(&WrittenLimit {
                of,
                amount: 5,
                per_s,
            });
            assert_eq!(limit, format!("tokens=5/{is}"));
        }
        let budget = super::budget(&WrittenBudget {
            unit: "USD".to_owned(),
            amount: "2.50".to_owned(),
            per: BudgetPer::Week,
        });
        assert_eq!(budget, "2.50USD/week");
    }
}
