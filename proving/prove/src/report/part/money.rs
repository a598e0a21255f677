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
    let (twice, rows): (Vec<&Tokens>, Vec<&Tokens>) =
        document.tokens.iter().partition(|row| row.is_in_others());
    let mut table = Table::each(
        "Tokens by workload and model, by both witnesses: what the engine reported and what the gateway counted; requests of the workload, to whichever model",
        rows.iter().take(MOST_ROWS),
        &[
            ("Workload", |r| r.workload.as_str().into()),
            ("Model", |r| r.model.as_str().into()),
            ("#Requests", |r| count(r.requests).into()),
            ("#Input reported", |r| count(r.input_tokens).into()),
            ("#Input counted", |r| maybe(r.input_counted, count).into()),
            ("#Output reported", |r| count(r.output_tokens).into()),
            ("#Output counted", |r| maybe(r.output_counted, count).into()),
            ("#Drift", |r| maybe(r.drift, difference).into()),
            ("#Cost", |r| cost(r.cost, r.currency.as_deref()).into()),
        ],
    );
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
    Table::each(
        "Token drift, of those exchanges alone whose tokens both witnesses have",
        rows.iter().take(MOST_ROWS),
        &[
            ("Model", |r| r.model.as_str().into()),
            ("#Input reported", |r| count(r.input_tokens).into()),
            ("#Input counted", |r| maybe(r.input_counted, count).into()),
            ("#Output reported", |r| count(r.output_tokens).into()),
            ("#Output counted", |r| maybe(r.output_counted, count).into()),
            ("#Drift", |r| maybe(r.drift, difference).into()),
        ],
    )
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
    let table = Table::each(
        "Requests that failed alike, the most first, with what the first of them said",
        rows.iter().take(MOST_ROWS),
        &[
            ("Phase", |r| r.phase.as_str().into()),
            ("Kind", |r| r.kind.as_str().into()),
            ("#Count", |r| count(r.count).into()),
            ("Said", |r| r.says.as_deref().unwrap_or(ABSENT).into()),
        ],
    );
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
            "{} further {what} stand in the report's JSON.",
            all - MOST_ROWS
        ));
    }
}

pub(super) fn objectives(document: &Document) -> Section {
    let mut section = Section::new("objectives", "Objectives");
    let table = Table::each(
        "What the soak had to keep",
        &document.objectives,
        &[
            ("Objective", |o| o.name.as_str().into()),
            ("Kept", |o| Cell::held(o.kept, "kept", "missed")),
            ("#Limit", |o| plain(o.limit).into()),
            ("#Value", |o| maybe(o.value, plain).into()),
            ("Query", |o| o.query.as_str().into()),
        ],
    );
    section.table(table, "none: the scenario sets no objectives");
    section
}

pub(super) fn published(document: &Document) -> Section {
    let mut section = Section::new("published", "Beside the publication");
    let table = Table::each(
        "Figures that were published, and ours",
        &document.published,
        &[
            ("Figure", |r| r.name.as_str().into()),
            ("#Published", |r| unit(r.published, r).into()),
            ("#Ours", |r| maybe(r.ours, |y| unit(y, r)).into()),
            ("#Ours over theirs", |r| {
                maybe(ratio(r), |x| format!("{x:.3}")).into()
            }),
            ("#Difference", |r| {
                maybe(ratio(r), |x| difference(x - 1.0)).into()
            }),
            ("Why they differ", |r| r.note.as_str().into()),
        ],
    );
    section.table(table, "none: the scenario names no published figures");
    section
}

fn ratio(row: &Published) -> Option<f64> {
    let ours = row.ours?;
    (row.published != 0.0).then(|| ours / row.published)
}

fn unit(value: f64, row: &Published) -> String {
    let text = format!("{} {}", plain(value), row.unit);
    text.trim_end().to_owned()
}
