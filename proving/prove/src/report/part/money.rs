//! Tokens and money, what failed, what was promised, and what others published.
//!
//! Not here: prices (the gateway's).

use std::collections::BTreeMap;

use crate::report::content::{Cell, Section, Table};
use crate::report::document::{Document, Published, Tokens};
use crate::report::figure::{ABSENT, count, difference, maybe, plain, sum};
use crate::report::summary::drift;

/// Rows of a table of errors, of tokens: those beyond are counted.
const MOST_ROWS: usize = 50;

pub(super) fn tokens(document: &Document) -> Section {
    let mut section = Section::new("tokens", "Tokens and chargeback");
    let mut table = Table::new(
        "Tokens by workload and model, by both witnesses: what the engine reported and what the gateway counted; requests of the workload, to whichever model",
        &[
            "Workload",
            "Model",
            "#Requests",
            "#Input reported",
            "#Input counted",
            "#Output reported",
            "#Output counted",
            "#Drift",
            "#Cost",
        ],
    );
    let (twice, rows): (Vec<&Tokens>, Vec<&Tokens>) =
        document.tokens.iter().partition(|row| row.is_in_others());
    for row in rows.iter().take(MOST_ROWS) {
        table.row([
            row.workload.as_str().into(),
            row.model.as_str().into(),
            count(row.requests).into(),
            count(row.input_tokens).into(),
            maybe(row.input_counted, count).into(),
            count(row.output_tokens).into(),
            maybe(row.output_counted, count).into(),
            maybe(row.drift, difference).into(),
            cost(row.cost, row.currency.as_deref()).into(),
        ]);
    }
    if rows.len() > 1 {
        table.rows.push(total(&rows));
    }
    section.table(table, "not measured: no tokens were reported");
    beyond(&mut section, rows.len(), "rows of tokens");
    let without = rows.iter().filter(|row| row.cost.is_none()).count();
    if (1..rows.len()).contains(&without) {
        section.text(format!(
            "The gateway priced {} of these {} rows; the cost of all is the sum of those.",
            rows.len() - without,
            rows.len()
        ));
    }
    if !twice.is_empty() {
        section.table(both(&twice), "");
    }
    section
}

/// What both witnesses saw of the same exchanges, which are a part of those above.
fn both(rows: &[&Tokens]) -> Table {
    let mut table = Table::new(
        "Token drift, of those exchanges alone whose tokens both witnesses have",
        &[
            "Model",
            "#Input reported",
            "#Input counted",
            "#Output reported",
            "#Output counted",
            "#Drift",
        ],
    );
    for row in rows.iter().take(MOST_ROWS) {
        table.row([
            row.model.as_str().into(),
            count(row.input_tokens).into(),
            maybe(row.input_counted, count).into(),
            count(row.output_tokens).into(),
            maybe(row.output_counted, count).into(),
            maybe(row.drift, difference).into(),
        ]);
    }
    table
}

fn total(rows: &[&Tokens]) -> Vec<Cell> {
    let all = |of: fn(&Tokens) -> u64| count(sum(rows.iter().map(|row| of(row))));
    let counted = |of: fn(&Tokens) -> Option<u64>| {
        let all: Option<Vec<u64>> = rows.iter().map(|row| of(row)).collect();
        maybe(all, |all| count(sum(all)))
    };
    [
        "All".to_owned(),
        String::new(),
        count(requests(rows)),
        all(|row| row.input_tokens),
        counted(|row| row.input_counted),
        all(|row| row.output_tokens),
        counted(|row| row.output_counted),
        maybe(drift(rows.iter().copied()), difference),
        costs(rows),
    ]
    .map(Cell::from)
    .into()
}

/// Of all workloads. Each row of a workload has all its requests, to whichever model: the gateway counts none by model.
fn requests(rows: &[&Tokens]) -> u64 {
    let mut by_workload: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        let most = by_workload.entry(&row.workload).or_default();
        *most = row.requests.max(*most);
    }
    sum(by_workload.into_values())
}

/// The sum in each currency.
fn costs(rows: &[&Tokens]) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        if let Some(cost) = row.cost {
            *sums
                .entry(row.currency.as_deref().unwrap_or_default())
                .or_default() += cost;
        }
    }
    let each = sums
        .iter()
        .map(|(currency, sum)| cost(Some(*sum), Some(currency)));
    let all = each.collect::<Vec<_>>().join(" + ");
    if all.is_empty() {
        cost(None, None)
    } else {
        all
    }
}

fn cost(cost: Option<f64>, currency: Option<&str>) -> String {
    maybe(cost, |cost| {
        format!("{cost:.2} {}", currency.unwrap_or_default())
            .trim_end()
            .to_owned()
    })
}

pub(super) fn errors(document: &Document) -> Section {
    let mut section = Section::new("errors", "Errors");
    let mut rows: Vec<_> = document.errors.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    let mut table = Table::new(
        "Requests that failed alike, the most first, with what the first of them said",
        &["Phase", "Kind", "#Count", "Said"],
    );
    for row in rows.iter().take(MOST_ROWS) {
        table.row([
            row.phase.as_str().into(),
            row.kind.as_str().into(),
            count(row.count).into(),
            row.says.as_deref().unwrap_or(ABSENT).into(),
        ]);
    }
    let sent = sum(document.phases.iter().map(|phase| phase.requests));
    section.table(
        table,
        &format!("none: no request of {} failed", count(sent)),
    );
    beyond(&mut section, rows.len(), "kinds of errors");
    section
}

fn beyond(section: &mut Section, all: usize, what: &str) {
    if all > MOST_ROWS {
        section.text(format!(
            "{} further {what} stand in report.json.",
            all - MOST_ROWS
        ));
    }
}

pub(super) fn objectives(document: &Document) -> Section {
    let mut section = Section::new("objectives", "Objectives");
    let mut table = Table::new(
        "What the soak had to keep",
        &["Objective", "Kept", "#Limit", "#Value", "Query"],
    );
    for objective in &document.objectives {
        table.row([
            objective.name.as_str().into(),
            Cell::held(objective.kept, "kept", "missed"),
            plain(objective.limit).into(),
            maybe(objective.value, plain).into(),
            objective.query.as_str().into(),
        ]);
    }
    section.table(table, "none: the scenario sets no objectives");
    section
}

pub(super) fn published(document: &Document) -> Section {
    let mut section = Section::new("published", "Beside the publication");
    let mut table = Table::new(
        "Figures that were published, and ours",
        &[
            "Figure",
            "#Published",
            "#Ours",
            "#Ours over theirs",
            "#Within",
            "Why they differ",
        ],
    );
    for row in &document.published {
        let ratio = ratio(row);
        let unit = |value: f64| {
            format!("{} {}", plain(value), row.unit)
                .trim_end()
                .to_owned()
        };
        table.row([
            row.name.as_str().into(),
            unit(row.published).into(),
            maybe(row.ours, unit).into(),
            maybe(ratio, |ratio| format!("{ratio:.3}")).into(),
            maybe(ratio, |ratio| difference(ratio - 1.0)).into(),
            row.note.as_str().into(),
        ]);
    }
    section.table(table, "none: the scenario names no published figures");
    section
}

fn ratio(row: &Published) -> Option<f64> {
    let ours = row.ours?;
    (row.published != 0.0).then(|| ours / row.published)
}
