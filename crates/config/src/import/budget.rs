//! `max_budget`: money for a period.
//!
//! A budget of money needs a price for every model that it counts, so one that lacks some is a comment.

use std::time::Duration;

use super::plan::Plan;
use super::settings::Settings;
use crate::decode::Written;
use crate::mask::quoted;
use crate::scalar::{Age, Money};

/// What is written of a budget.
pub(super) enum Made {
    Line(String),
    Comment(String),
}

pub(super) fn made(plan: &Plan, settings: &Settings) -> Option<Made> {
    let (money, period, place) = settings.budget.as_ref()?;
    let at = format!("{} (line {})", place.path, place.line);
    if Money::read(money).is_err() {
        let says = format!("{at}: not an amount of money that can be written here.");
        return Some(Made::Comment(says));
    }
    let (per, kept_days) = match period.as_deref() {
        Some("1d" | "24h" | "daily") => ("day", 2),
        Some("7d" | "1w" | "168h" | "weekly") => ("week", 8),
        Some("30d" | "31d" | "1mo" | "monthly") => ("month", 32),
        other => {
            let period = other.map_or_else(|| "none".to_owned(), quoted);
            let says = format!(
                "{at}: budgets are for a day, a week or a month of the calendar, and this one's period is {period}: \
                 budgets: {{ all: {{ money: {money}, per: month }} }}"
            );
            return Some(Made::Comment(says));
        }
    };
    let line = format!("{{ money: {money}, per: {per} }}");
    let kept = settings
        .retention
        .as_deref()
        .and_then(|it| Age::read(it).ok());
    if kept.is_some_and(|kept| kept.0 < Duration::from_secs(kept_days * 24 * 60 * 60)) {
        let says = format!(
            "{at}: a budget's sums are read from the ledger, which has to keep {kept_days}d for it. Once it does: \
             budgets: {{ all: {line} }}"
        );
        return Some(Made::Comment(says));
    }
    let is_priced = |model: &String| plan.prices.iter().any(|price| price.model == *model);
    let unpriced = plan.routes.iter().find(|route| match &route.model {
        Some(model) => !is_priced(model),
        None => route.models.is_empty() || !route.models.iter().all(is_priced),
    });
    Some(match unpriced {
        None => Made::Line(line),
        Some(route) => Made::Comment(format!(
            "{at}: a budget of money needs a price for every model, and those of the route {} lack one. Once they have: \
             budgets: {{ all: {line} }}",
            route.name
        )),
    })
}
