//! A report as text, CSV and JSON.
//!
//! Invariant: the same numbers in all three; shares are of the tokens of the whole report.
//! Not here: what is summed (`report`).

use std::borrow::Cow;

use serde_json::{Value, json};

use super::export::field;
use super::layout::{laid_out, wrapped};
use super::words::{amount, missing};
use super::{By, Drift, Line, Totals, WITNESSES, decimal, shown};

/// A legible table in lines of at most `width` characters, with a sum at the end, and below it what is
/// not in it. Columns that have nothing to tell are left out.
#[must_use]
pub fn table(lines: &[Line], by: &[By], width: usize) -> String {
    let all = whole(lines);
    let heads = [
        "exchanges",
        "errors",
        "input",
        "output",
        "share",
        "cost",
        "drift i/o",
    ];
    let mut rows = vec![
        by.iter()
            .map(By::heading)
            .chain(heads.map(Cow::Borrowed))
            .map(Cow::into_owned)
            .collect(),
    ];
    for line in lines {
        rows.extend(cells(&names(line), &line.totals, &all));
    }
    if !by.is_empty() {
        let mut names = vec!["total".to_owned()];
        names.resize(by.len(), String::new());
        rows.extend(cells(&names, &all, &all));
    }
    let is_there = [
        all.errors > 0,
        !all.cost.is_empty(),
        all.prompt_drift.exchanges + all.completion_drift.exchanges > 0,
    ];
    for (at, is_there) in [1, 5, 6].into_iter().zip(is_there).rev() {
        if !is_there {
            rows.iter_mut().for_each(|row| {
                row.remove(by.len() + at);
            });
        }
    }
    let mut out = laid_out(&rows, by.len(), width);
    for sentence in missing(&all) {
        out.push_str(&wrapped(&sentence, width, 2));
        out.push('\n');
    }
    out
}

/// What a line is of.
fn names(line: &Line) -> Vec<String> {
    let names = line.of.iter().map(|name| shown(name.as_deref()));
    names.map(Cow::into_owned).collect()
}

/// A row, and one below it for each further currency.
fn cells(names: &[String], totals: &Totals, all: &Totals) -> Vec<Vec<String>> {
    let mut costs = costs(totals, amount).into_iter();
    let drifts = [totals.prompt_drift, totals.completion_drift].map(|drift| {
        drift
            .ratio()
            .map_or_else(|| "-".to_owned(), |r| format!("{:.1}", r * 100.0))
    });
    let drift = match drifts.join("/") {
        none if none == "-/-" => "-".to_owned(),
        drift => drift + " %",
    };
    let share = share(totals, all);
    let mut first: Vec<String> = names.to_vec();
    first.extend([
        totals.exchanges.to_string(),
        totals.errors.to_string(),
        totals.prompt.to_string(),
        totals.completion.to_string(),
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        costs.next().unwrap_or_else(|| "-".to_owned()),
        drift,
    ]);
    let mut rows = vec![first];
    for cost in costs {
        let mut row = vec![String::new(); names.len() + 7];
        row[names.len() + 5] = cost;
        rows.push(row);
    }
    rows
}

/// Reported beside counted, in both directions, in lines of at most `width` characters.
#[must_use]
pub fn drift_table(lines: &[Line], by: &[By], width: usize) -> String {
    let heads = [
        "direction",
        "exchanges",
        "reported",
        "counted",
        "difference",
        "drift",
    ];
    let mut rows = vec![
        by.iter()
            .map(By::heading)
            .chain(heads.map(Cow::Borrowed))
            .map(Cow::into_owned)
            .collect(),
    ];
    for line in lines {
        let directions = [
            ("input", line.totals.prompt_drift),
            ("output", line.totals.completion_drift),
        ];
        for (direction, drift) in directions {
            let mut cells = names(line);
            cells.push(direction.to_owned());
            cells.extend(drift_cells(&drift));
            rows.push(cells);
        }
    }
    laid_out(&rows, by.len() + 1, width)
}

fn drift_cells(drift: &Drift) -> [String; 5] {
    let sign = if drift.reported < drift.counted {
        "-"
    } else {
        ""
    };
    [
        drift.exchanges.to_string(),
        drift.reported.to_string(),
        drift.counted.to_string(),
        format!("{sign}{}", drift.reported.abs_diff(drift.counted)),
        percent(drift.ratio()),
    ]
}

/// The same as CSV (RFC 4180), costs exact and numbers. A line with several currencies has one row for
/// each, the counts in the first only, so that every column can be summed.
#[must_use]
pub fn as_csv(lines: &[Line], by: &[By]) -> String {
    let headings: Vec<String> = by.iter().map(|by| field(&by.heading())).collect();
    let mut out: Vec<&str> = headings.iter().map(String::as_str).collect();
    out.extend([
        "exchanges",
        "errors",
        "refused",
        "aborted",
        "indeterminate",
        "at_least_tokens",
        "at_most_tokens",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "reported_tokens",
        "counted_tokens",
        "estimated_tokens",
        "unpriced_exchanges",
        "prompt_drift",
        "completion_drift",
        "cost",
        "currency",
    ]);
    let mut out = out.join(",") + "\r\n";
    for line in lines {
        let (of, t) = (&line.of, &line.totals);
        let mut cells: Vec<String> = names(line).iter().map(|name| field(name)).collect();
        cells.extend(
            [t.exchanges, t.errors, t.refused, t.aborted, t.indeterminate].map(|n| n.to_string()),
        );
        cells.extend(
            [
                t.at_least,
                t.at_most,
                t.prompt,
                t.completion,
                t.cached,
                t.reasoning,
            ]
            .map(|n| n.to_string()),
        );
        cells.extend(t.by_witness.map(|n| n.to_string()));
        cells.push(t.unpriced.to_string());
        cells.extend([t.prompt_drift, t.completion_drift].map(|drift| {
            drift
                .ratio()
                .map_or_else(String::new, |r| format!("{r:.6}"))
        }));
        for cells in by_currency(cells, of.len(), t) {
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
    }
    out
}

/// Ends a row of CSV with the cost and its currency; further currencies repeat the names alone.
pub(super) fn by_currency(row: Vec<String>, names: usize, totals: &Totals) -> Vec<Vec<String>> {
    let mut costs = totals
        .cost
        .iter()
        .map(|(currency, pico)| [decimal(*pico), field(currency)]);
    let mut rest = row.clone();
    rest.iter_mut().skip(names).for_each(String::clear);
    let first = costs.next().unwrap_or_default();
    let mut rows = vec![[row, first.to_vec()].concat()];
    rows.extend(costs.map(|cost| [rest.clone(), cost.to_vec()].concat()));
    rows
}

/// The same as JSON: an array with an object for each line. Sums that could pass what JavaScript
/// counts exactly are still numbers; money is text.
#[must_use]
pub fn as_json(lines: &[Line], by: &[By]) -> Value {
    let all = whole(lines);
    lines.iter().map(|line| object(line, by, &all)).collect()
}

fn object(Line { of, totals: t }: &Line, by: &[By], all: &Totals) -> Value {
    let drift = |drift: &Drift| json!({"exchanges": drift.exchanges, "reported": long(drift.reported), "counted": long(drift.counted), "ratio": drift.ratio()});
    let witnesses: serde_json::Map<String, Value> = WITNESSES
        .iter()
        .zip(t.by_witness)
        .map(|(word, n)| ((*word).to_owned(), long(n)))
        .collect();
    let cost: serde_json::Map<String, Value> = t
        .cost
        .iter()
        .map(|(currency, pico)| (currency.clone(), decimal(*pico).into()))
        .collect();
    let mut object = json!({
        "exchanges": t.exchanges, "errors": t.errors, "refused": t.refused, "aborted": t.aborted,
        "indeterminate": {"exchanges": t.indeterminate, "at_least_tokens": long(t.at_least), "at_most_tokens": long(t.at_most)},
        "prompt_tokens": long(t.prompt), "completion_tokens": long(t.completion),
        "cached_tokens": long(t.cached), "reasoning_tokens": long(t.reasoning),
        "tokens_by_witness": witnesses, "share": share(t, all), "cost": cost, "unpriced_exchanges": t.unpriced,
        "drift": {"input": drift(&t.prompt_drift), "output": drift(&t.completion_drift)},
    });
    for (by, name) in by.iter().zip(of) {
        object[&*by.heading()] = name.as_deref().into();
    }
    object
}

fn long(n: u128) -> Value {
    u64::try_from(n).map_or_else(|_| Value::String(n.to_string()), Value::from)
}

/// All lines as one.
pub(super) fn whole(lines: &[Line]) -> Totals {
    let mut all = Totals::default();
    for Line { totals: t, .. } in lines {
        all.exchanges += t.exchanges;
        all.errors += t.errors;
        all.refused += t.refused;
        all.aborted += t.aborted;
        all.indeterminate += t.indeterminate;
        all.at_least += t.at_least;
        all.at_most += t.at_most;
        all.prompt += t.prompt;
        all.completion += t.completion;
        all.cached += t.cached;
        all.reasoning += t.reasoning;
        all.unpriced += t.unpriced;
        all.prices.extend(t.prices.iter().cloned());
        all.by_witness
            .iter_mut()
            .zip(t.by_witness)
            .for_each(|(all, n)| *all += n);
        for (currency, pico) in &t.cost {
            *all.cost.entry(currency.clone()).or_default() += pico;
        }
        for (all, drift) in [
            (&mut all.prompt_drift, t.prompt_drift),
            (&mut all.completion_drift, t.completion_drift),
        ] {
            all.exchanges += drift.exchanges;
            all.reported += drift.reported;
            all.counted += drift.counted;
        }
    }
    all
}

#[expect(clippy::cast_precision_loss, reason = "a share to be looked at")]
fn share(totals: &Totals, all: &Totals) -> Option<f64> {
    (all.tokens() > 0).then(|| totals.tokens() as f64 / all.tokens() as f64)
}

/// Each currency's amount with its code; none when nothing is known.
pub(super) fn costs(totals: &Totals, written: impl Fn(i128) -> String) -> Vec<String> {
    totals
        .cost
        .iter()
        .map(|(currency, pico)| format!("{} {currency}", written(*pico)))
        .collect()
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0))
}
