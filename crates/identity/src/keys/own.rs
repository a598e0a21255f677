//! Limits and budgets that a key has of its own, as its line says them.
//!
//! Invariant: what is written is what holds: an amount that cannot be kept to is refused, and not rounded.
//! Not here: how limits and budgets work (`policy::limit`, `policy::budget`).

use std::collections::HashSet;
use std::time::Duration;

use policy::budget::{Calendar, Every, Unit};
use policy::caller::{MAX_OWN_BUDGETS, MAX_OWN_LIMITS, OwnBudget, OwnLimit};
use policy::levels::ACCOUNT_MAX;
use policy::limit::{Kind, Rate};
use serde::{Deserialize, Serialize};

/// Longest window of a limit, seconds: what is longer is a budget.
const WINDOW_S_MAX: u64 = 31 * 86_400;
/// Most of an amount: what every bucket can hold.
const AMOUNT_MAX: u64 = 1 << 40;

/// A limit of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenLimit {
    /// `requests` or `tokens`.
    pub of: LimitOf,
    /// How many in each window.
    pub amount: u64,
    /// The window, seconds.
    pub per_s: u64,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// Calls.
    Requests,
    /// Tokens of prompt and completion.
    Tokens,
}

/// A budget of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenBudget {
    /// `tokens`, or a currency such as `USD`.
    pub unit: String,
    /// How much in each period: tokens, or money as a decimal such as `10.50`.
    pub amount: String,
    /// The period.
    pub per: BudgetPer,
}

/// The period of a budget, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPer {
    /// A day.
    Day,
    /// A week from Monday.
    Week,
    /// A calendar month.
    Month,
}

impl WrittenLimit {
    /// The limit that it is.
    #[must_use]
    pub fn lowered(&self) -> OwnLimit {
        OwnLimit {
            kind: match self.of {
                LimitOf::Requests => Kind::Requests,
                LimitOf::Tokens => Kind::Tokens,
            },
            rate: Rate {
                amount: self.amount,
                per: Duration::from_secs(self.per_s),
                burst: self.amount,
            },
        }
    }
}

impl WrittenBudget {
    /// The budget that it is; `None` where it is none.
    #[must_use]
    pub fn lowered(&self) -> Option<OwnBudget> {
        let (unit, amount) = if self.unit == "tokens" {
            (Unit::Tokens, whole(&self.amount)?)
        } else {
            let is_currency =
                self.unit.len() == 3 && self.unit.bytes().all(|b| b.is_ascii_uppercase());
            let nanos = nanos(&self.amount).filter(|_| is_currency)?;
            (Unit::Money(self.unit.as_str().into()), nanos)
        };
        let every = match self.per {
            BudgetPer::Day => Every::Day,
            BudgetPer::Week => Every::Week,
            BudgetPer::Month => Every::Month,
        };
        (1..=ACCOUNT_MAX).contains(&amount).then_some(OwnBudget {
            unit,
            amount,
            calendar: Calendar { every, east_min: 0 },
        })
    }
}

/// Whether all of them can hold together.
pub(super) fn check(
    limits: &[WrittenLimit],
    budgets: &[WrittenBudget],
) -> Result<(), &'static str> {
    let is_limit = |limit: &WrittenLimit| {
        (1..=AMOUNT_MAX).contains(&limit.amount) && (1..=WINDOW_S_MAX).contains(&limit.per_s)
    };
    if limits.len() > MAX_OWN_LIMITS || !limits.iter().all(is_limit) {
        return Err("there are at most 8 limits, of 1 or more in a window of 1 second to 31 days");
    }
    let mut windows = HashSet::new();
    if !limits
        .iter()
        .all(|limit| windows.insert((limit.of, limit.per_s)))
    {
        return Err("two limits count the same in the same window");
    }
    if budgets.len() > MAX_OWN_BUDGETS || budgets.iter().any(|budget| budget.lowered().is_none()) {
        return Err(
            "there are at most 8 budgets, of tokens or of a currency such as USD with at most 9 decimals",
        );
    }
    let mut periods = HashSet::new();
    if !budgets
        .iter()
        .all(|budget| periods.insert((&budget.unit, budget.per)))
    {
        return Err("two budgets count the same in the same period");
    }
    Ok(())
}

/// A whole number without a sign.
fn whole(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A decimal in 1e-9.
fn nanos(text: &str) -> Option<u64> {
    let (units, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(9 - part.len()).ok()?);
    let part = whole(part)?.checked_mul(scale)?;
    whole(units)?.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(unit: &str, amount: &str) -> Option<u64> {
        let written = WrittenBudget {
            unit: unit.to_owned(),
            amount: amount.to_owned(),
            per: BudgetPer::Month,
        };
        written.lowered().map(|budget| budget.amount)
    }

    #[test]
    fn amounts_are_exact_or_refused() {
        assert_eq!(budget("tokens", "1000000"), Some(1_000_000));
        assert_eq!(budget("USD", "10"), Some(10_000_000_000));
        assert_eq!(budget("USD", "0.5"), Some(500_000_000));
        assert_eq!(budget("EUR", "10.123456789"), Some(10_123_456_789));
        for (unit, amount) in [
            ("USD", "0"),
            ("USD", "10.1234567891"),
            ("USD", "1."),
            ("USD", ".5"),
            ("USD", "-1"),
            ("USD", "+1"),
            ("USD", "1e3"),
            ("USD", ""),
            ("USD", "99999999999999"),
            ("usd", "1"),
            ("DOLLARS", "1"),
            ("", "1"),
            ("tokens", "1.5"),
            ("tokens", "0"),
            ("tokens", "99999999999999999999"),
        ] {
            assert_eq!(budget(unit, amount), None, "{amount} {unit}");
        }
    }

    #[test]
    fn there_is_one_of_each_kind_and_no_more_than_may_be() {
        let limit = |of, per_s| WrittenLimit {
            of,
            amount: 5,
            per_s,
        };
        let requests = |n: u64| {
            (1..=n)
                .map(|per_s| limit(LimitOf::Requests, per_s))
                .collect::<Vec<_>>()
        };
        assert!(check(&requests(8), &[]).is_ok());
        assert!(check(&requests(9), &[]).is_err());
        assert!(
            check(
                &[limit(LimitOf::Tokens, 60), limit(LimitOf::Requests, 60)],
                &[]
            )
            .is_ok()
        );
        assert!(
            check(
                &[limit(LimitOf::Tokens, 60), limit(LimitOf::Tokens, 60)],
                &[]
            )
            .is_err()
        );
        for (amount, per_s) in [(0, 60), (5, 0), (u64::MAX, 60), (5, u64::MAX)] {
            let of = LimitOf::Tokens;
            assert!(check(&[WrittenLimit { of, amount, per_s }], &[]).is_err());
        }
    }
}
