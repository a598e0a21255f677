//! What others published, beside what was measured here in the scenario that asks the same.
//!
//! Invariant: each figure stands with its own direct call's: machines differ, and what compares is what a gateway adds to that.
//! Not here: reading it (`scenario`).

use super::result::RaceResult;
use super::scenario::{Reference, ReferenceRow, Scenario};
use crate::report::content::{Section, Table};

const ABSENT: &str = "-";

const HEAD: [&str; 6] = [
    "",
    "a call, mean",
    "median",
    "added to the direct call, mean",
    "median",
    "as a factor, mean",
];

/// How long a call takes, microseconds.
#[derive(Clone, Copy)]
struct Call {
    mean: f64,
    median: Option<f64>,
}

/// One table of all; `None` where nothing is to stand beside.
pub(super) fn section(result: &RaceResult) -> Option<Section> {
    if result.references.is_empty() {
        return None;
    }
    let mut section = Section::new("published", "beside published figures, µs a call");
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    let mut names: Vec<&str> = Vec::new();
    for reference in &result.references {
        if !names.contains(&&*reference.scenario) {
            names.push(&reference.scenario);
            lines.extend(here(result, &reference.scenario));
        }
    }
    lines.extend(result.references.iter().flat_map(published));
    section.table(Table::of_lines("", lines), "");
    section.text("The first line of each source is its direct call. Published are means; of what was measured here the median \
        is told, too, which a machine that does something else moves less.");
    for reference in &result.references {
        section.text(reference.source.as_str());
    }
    Some(section)
}

fn here(result: &RaceResult, scenario: &str) -> Vec<Vec<String>> {
    let mut all = result.scenarios.iter();
    let users = all.find(|one| one.name == scenario);
    let users = users.map_or(1.0, Scenario::users_f64);
    let rows = result.rows_of(scenario);
    let call = |subject: &str| {
        let row = rows.iter().find(|row| row.subject == subject)?;
        Some(Call {
            mean: users * 1e6 / row.median("rps")?,
            median: row.median("latency_us.p50"),
        })
    };
    let of = |name: &String| line(&format!("here, {name}"), call(name), call("direct"));
    rows.iter().map(|row| of(&row.subject)).collect()
}

fn published(reference: &Reference) -> Vec<Vec<String>> {
    let call = |row: &ReferenceRow| {
        Some(Call {
            mean: row.us,
            median: None,
        })
    };
    let direct = reference.rows.first().and_then(call);
    let rows = reference.rows.iter();
    rows.map(|row| line(&row.subject, call(row), direct))
        .collect()
}

fn line(name: &str, call: Option<Call>, direct: Option<Call>) -> Vec<String> {
    let means = call
        .zip(direct)
        .map(|(call, direct)| (call.mean, direct.mean));
    let medians = call
        .zip(direct)
        .and_then(|(call, direct)| call.median.zip(direct.median));
    let round = |us: Option<f64>| us.map_or_else(|| ABSENT.to_owned(), |us| format!("{us:.0}"));
    let factor = means.map(|(call, direct)| format!("{:.2}", call / direct));
    vec![
        name.to_owned(),
        round(call.map(|call| call.mean)),
        round(call.and_then(|call| call.median)),
        round(means.map(|(call, direct)| call - direct)),
        round(medians.map(|(call, direct)| call - direct)),
        factor.unwrap_or_else(|| ABSENT.to_owned()),
    ]
}
