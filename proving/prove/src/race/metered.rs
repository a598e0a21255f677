//! What metering costs: a subject beside the same without its meter, in each scenario that both took part in.
//!
//! Invariant: a line for each of them whose CPU was measured in both; nothing is compared over scenarios.
//! Not here: the figures (`result`), which subject is whose pair (`subject.toml`).

use super::counts::UNWRITTEN;
use super::result::{RaceResult, Row};
use super::scenario::Scenario;

#[cfg(test)]
mod tests;

/// Above the table.
pub(crate) const TITLE: &str = "the meter: CPU µs of the whole process for a call";
const HEAD: [&str; 7] = [
    "traffic",
    "rate/s",
    "metered",
    "without",
    "ratio",
    "counted %",
    "end %",
];

/// The head and a line for each comparison.
pub(crate) fn lines(result: &RaceResult) -> Vec<Vec<String>> {
    let mut lines = vec![HEAD.map(ToOwned::to_owned).to_vec()];
    let pairs: Vec<(&str, &str)> = result
        .subjects
        .iter()
        .filter_map(|told| Some((&*told.name, told.unmetered.as_deref()?)))
        .collect();
    for scenario in &result.scenarios {
        let rows = result.rows_of(&scenario.name);
        let row = |name: &str| rows.iter().copied().find(|row| row.subject == name);
        let of = |(metered, unmetered): &(&str, &str)| {
            let both = (row(metered)?, row(unmetered)?);
            line(scenario, both, (pairs.len() > 1).then_some(metered))
        };
        lines.extend(pairs.iter().filter_map(of));
    }
    lines
}

/// `of` names the subject where there is more than one that meters.
fn line(
    scenario: &Scenario,
    (metered, unmetered): (&Row, &Row),
    of: Option<&str>,
) -> Option<Vec<String>> {
    let us = |row: &Row| row.median("cpu_us_per_request");
    let figure = |name: &str, decimals: usize| {
        let value = metered.median(name);
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let rate = match scenario.per_second {
        Some(rate) => format!("{rate:.0}"),
        // As fast as it goes, which is another rate for each of the two.
        None => "max".to_owned(),
    };
    let name = &scenario.name;
    Some(vec![
        of.map_or_else(|| name.clone(), |of| format!("{name} {of}")),
        rate,
        format!("{:.1}", us(metered)?),
        format!("{:.1}", us(unmetered)?),
        figure("over_unmetered", 2),
        figure("counted_percent", 2),
        figure("counted_in_the_end_percent", 2),
    ])
}

/// Calls of a row by what became of their counts, with their shares, the most first.
pub(crate) fn counts_of(row: &Row) -> String {
    let decided = row.counts.iter().filter(|(of, _)| *of != UNWRITTEN);
    let all: u64 = decided.map(|(_, count)| count).sum();
    let mut counts: Vec<(&String, u64)> = row.counts.iter().map(|(of, n)| (of, *n)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let one = |(result, count): &(&String, u64)| {
        let percent = *count as f64 / all.max(1) as f64 * 100.0;
        format!("{result} {count} ({percent:.2} %)")
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}
