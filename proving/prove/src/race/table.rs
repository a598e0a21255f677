//! What a person reads of a race: a table for each scenario, a line for each subject; what metering costs; who took part.
//!
//! Invariant: a subject without figures has a line that says why.
//! Not here: plots and the page around them (`page`), how tables look (`report`).

use std::collections::BTreeMap;

use experiment::statistics::Spread;

use super::result::{RaceResult, Row};
use super::{metered, published, shape};
use crate::report::content::{Block, Section, Table};

#[cfg(test)]
mod tests;

/// The subject that CPU figures are compared with.
const YARDSTICK: &str = "nginx";

/// In which blocks a column stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Unary,
    Streams,
    Quota,
    Everywhere,
}
use Where::{Everywhere, Quota, Streams, Unary};

/// Head, figure, decimals, whether its spread is shown, and where it stands.
type Column = (&'static str, &'static str, usize, bool, Where);

/// The columns; one without a figure in a block is left out of it. The file holds many more figures.
const COLUMNS: [Column; 29] = [
    ("CPU µs/req", "cpu_us_per_request", 1, true, Unary),
    ("× unmetered", "over_unmetered", 2, true, Unary),
    ("counted %", "counted_percent", 2, false, Unary),
    ("end %", "counted_in_the_end_percent", 2, false, Unary),
    (
        "counting µs/req",
        "counting.us_per_request",
        1,
        false,
        Unary,
    ),
    ("hit %", "counting.hit_percent", 1, false, Unary),
    ("CPU µs/event", "cpu_us_per_event", 2, true, Streams),
    ("of workers", "workers.cpu_us_per_request", 1, true, Unary),
    ("of workers", "workers.cpu_us_per_event", 2, true, Streams),
    ("req/s", "rps", 0, false, Unary),
    (
        "least of CPU %",
        "replicas.least_cpu_percent",
        1,
        false,
        Unary,
    ),
    ("% of ideal", "ideal_percent", 1, false, Unary),
    ("events/s", "events_per_second", 0, false, Streams),
    ("p50 µs", "latency_us.p50", 0, false, Unary),
    ("p90", "latency_us.p90", 0, false, Unary),
    ("p99", "latency_us.p99", 0, false, Unary),
    ("p99.9", "latency_us.p999", 0, false, Unary),
    ("added p50", "added_us.p50", 0, true, Unary),
    ("p99", "added_us.p99", 0, true, Unary),
    ("first byte p50 µs", "first_byte_us.p50", 0, false, Streams),
    ("p99", "first_byte_us.p99", 0, false, Streams),
    ("added p50", "first_byte_added_us.p50", 0, true, Streams),
    ("cores", "cores", 2, false, Quota),
    ("throttled", "cgroup.throttled", 0, false, Quota),
    ("of periods", "cgroup.periods", 0, false, Quota),
    ("RSS MiB", "rss_mib.before", 0, false, Everywhere),
    ("peak", "rss_mib.peak", 0, false, Everywhere),
    ("open", "streams_open", 0, false, Streams),
    ("KiB/stream", "rss_kib_per_stream", 1, true, Streams),
];

/// Who makes so many connections to the upstream for each request keeps none, or not enough.
const NOT_KEPT: f64 = 0.05;
/// More than this used by processes that have no part in the race is worth a line.
const DISTURBED_CORES: f64 = 0.2;
const DISTURBED_PERCENT: f64 = 2.0;

/// The rig's own cost, under each block.
const RIG: [(&str, &str); 3] = [
    ("cpu_us_per_request", "µs/req"),
    ("cpu_us_per_event", "µs/event"),
    ("cores", "cores"),
];

/// All that is said beside plots.
pub(crate) fn sections(result: &RaceResult) -> Vec<Section> {
    let mut names: Vec<&str> = result.rows.iter().map(|row| &*row.scenario).collect();
    names.dedup();
    let mut all: Vec<Section> = names
        .into_iter()
        .map(|name| block(name, &result.rows_of(name)))
        .collect();
    let lines = metered::lines(result);
    if lines.len() > 1 {
        let mut section = Section::new("meter", metered::TITLE);
        section.table(Table::of_lines("", lines), "");
        all.push(section);
    }
    all.extend(ladders(result));
    all.extend(published::section(result));
    all.push(subjects(result));
    all
}

/// How each subject takes ever more users.
fn ladders(result: &RaceResult) -> Option<Section> {
    let shapes = shape::shapes(result);
    if shapes.is_empty() {
        return None;
    }
    let mut section = Section::new("shapes", "shapes of the ladder");
    let table = Table::each(
        "",
        &shapes,
        &[
            ("ladder", |s| s.ladder.as_str().into()),
            ("subject", |s| s.subject.as_str().into()),
            ("shape", |s| s.shape.says().into()),
            ("#users", |s| s.users.to_string().into()),
        ],
    );
    section.table(table, "");
    Some(section)
}

fn subjects(result: &RaceResult) -> Section {
    let mut section = Section::new("subjects", "subjects");
    section.text(
        "median (least–greatest) over rounds; CPU of all processes of the subject, user and system",
    );
    for told in &result.subjects {
        let version = told.version.as_deref().unwrap_or("-");
        let line = format!("{}: {}; {version}", told.name, told.summary);
        let problem = told.problem.iter().map(|problem| format!("; {problem}"));
        section.text(line + &problem.collect::<String>());
        section
            .blocks
            .extend(told.flame.iter().map(|file| Block::Link {
                file: file.clone(),
                says: format!("flame graph of {}", told.name),
            }));
        for note in &told.notes {
            section.text(format!("  note: {note}"));
        }
    }
    section
}

fn block(scenario: &str, rows: &[&Row]) -> Section {
    let mut section = Section::new(format!("scenario-{scenario}"), scenario);
    let columns = columns_of(rows);
    let mut lines = vec![vec!["subject".to_owned(), format!("× {YARDSTICK}")]];
    lines[0].extend(columns.iter().map(|column| column.0.to_owned()));
    lines[0].extend(["errors", "limit"].map(ToOwned::to_owned));
    for row in rows {
        if row.rounds > 0 {
            lines.push(line(row, &columns, rows));
        }
        let unmeasured = || (row.rounds == 0).then(|| "not measured".to_owned());
        let problem = row.problem.clone().or_else(unmeasured);
        lines.extend(problem.map(|says| vec![row.subject.clone(), says]));
    }
    section.table(Table::of_lines("", lines), "nothing was measured");
    rig(&mut section, rows);
    section
}

fn columns_of(rows: &[&Row]) -> Vec<&'static Column> {
    let measured = |name| rows.iter().any(|row| row.figures.contains_key(name));
    let streams = measured("cpu_us_per_event");
    let stands = |column: &&Column| match column.4 {
        Unary => !streams,
        Streams => streams,
        Quota => measured("cgroup.periods"),
        Everywhere => true,
    };
    let standing = COLUMNS.iter().filter(stands);
    standing.filter(|column| measured(column.1)).collect()
}

fn line(row: &Row, columns: &[&Column], rows: &[&Row]) -> Vec<String> {
    let ratio = ratio(row, rows).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
    let mut line = vec![row.subject.clone(), ratio];
    line.extend(columns.iter().map(|column| figure(&row.figures, column)));
    let failures = row.failures.iter();
    let failures: Vec<_> = failures
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let is_good = failures.is_empty();
    line.push(if is_good {
        "0".into()
    } else {
        failures.join(", ")
    });
    let limits: Vec<_> = row.limits.keys().copied().collect();
    line.push(limits.join("/"));
    line
}

fn figure(figures: &BTreeMap<&str, Spread>, column: &Column) -> String {
    let (_, name, decimals, spread, _) = *column;
    match figures.get(name) {
        None => "-".into(),
        Some(Spread { median, min, max }) if spread && min < max => {
            format!("{median:.decimals$} ({min:.decimals$}–{max:.decimals$})")
        }
        Some(Spread { median, .. }) => format!("{median:.decimals$}"),
    }
}

/// CPU against the yardstick in the same block.
fn ratio(row: &Row, rows: &[&Row]) -> Option<f64> {
    let name = ["cpu_us_per_event", "cpu_us_per_request"]
        .into_iter()
        .find(|name| row.figures.contains_key(name))?;
    let yardstick = rows
        .iter()
        .find(|row| row.subject == YARDSTICK)?
        .median(name)?;
    Some(row.median(name)? / yardstick)
}

/// What a reader has to know of the rig in one block.
fn rig(section: &mut Section, rows: &[&Row]) {
    for row in rows {
        if row.rig_was_limit {
            section.text(format!(
                "{}: the generator or the upstream was the limit",
                row.subject
            ));
        }
        let made = row.median("upstream.connections_per_request");
        if let Some(made) = made.filter(|made| *made >= NOT_KEPT) {
            section.text(format!(
                "{}: {made:.2} connections to the upstream for each request: they are not kept",
                row.subject
            ));
        }
        if !row.counts.is_empty() {
            section.text(format!("{}: {}", row.subject, metered::counts_of(row)));
        }
    }
    let most = |name| {
        let spreads = rows.iter().filter_map(|row| row.figures.get(name));
        spreads.map(|spread| spread.max).fold(0.0, f64::max)
    };
    let (others, stolen) = (most("others.cores"), most("steal_percent"));
    if others > DISTURBED_CORES || stolen > DISTURBED_PERCENT {
        section.text(format!(
            "disturbed: up to {others:.2} cores used by others, {stolen:.1} % of CPU time stolen"
        ));
    }
    for party in ["client", "upstream"] {
        let figures = RIG.iter().filter_map(|(name, unit)| {
            let name = format!("{party}.{name}");
            let spread = Spread::of(rows.iter().filter_map(|row| row.median(&name)))?;
            let Spread { median, min, max } = spread;
            Some(format!("{median:.2} ({min:.2}–{max:.2}) {unit}"))
        });
        let figures: Vec<_> = figures.collect();
        if !figures.is_empty() {
            let senders = (party == "client").then(|| senders(rows)).flatten();
            let senders = senders.unwrap_or_default();
            section.text(format!("{party}{senders}: {}", figures.join(", ")));
        }
    }
}

/// Who sent, where that were several processes.
fn senders(rows: &[&Row]) -> Option<String> {
    let medians = |name| rows.iter().filter_map(move |row| row.median(name));
    let processes = medians("client.processes").reduce(f64::max)?;
    let least = medians("client.least_percent").reduce(f64::min)?;
    Some(format!(
        " ({processes:.0} processes, the least of them {least:.1} % of the answers)"
    ))
}
