//! The table a person reads: a block for each scenario, a line for each subject.
//!
//! Invariant: a subject without figures has a line that says why. Lines have at most eighty columns: a
//! block with more goes on below, each line with its subject again.
//! Not here: colour beyond bold; the caller says whether the terminal wants it.

use std::fmt::Write;

use experiment::statistics::Spread;

use super::metered;
use super::result::{RaceResult, Row};
use crate::text::{WIDTH, wrapped};

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

struct Column {
    head: &'static str,
    figure: &'static str,
    decimals: usize,
    spread: bool,
    place: Where,
}

const fn column(
    head: &'static str,
    figure: &'static str,
    decimals: usize,
    spread: bool,
    place: Where,
) -> Column {
    Column {
        head,
        figure,
        decimals,
        spread,
        place,
    }
}

/// The columns; one without a figure in a block is left out of it. The file holds many more figures.
const COLUMNS: [Column; 28] = [
    column("CPU µs/req", "cpu_us_per_request", 1, true, Where::Unary),
    column("× unmetered", "over_unmetered", 2, true, Where::Unary),
    column("counted %", "counted_percent", 2, false, Where::Unary),
    column(
        "end %",
        "counted_in_the_end_percent",
        2,
        false,
        Where::Unary,
    ),
    column(
        "counting µs/req",
        "counting.us_per_request",
        1,
        false,
        Where::Unary,
    ),
    column("hit %", "counting.hit_percent", 1, false, Where::Unary),
    column("CPU µs/event", "cpu_us_per_event", 2, true, Where::Streams),
    column(
        "of workers",
        "workers.cpu_us_per_request",
        1,
        true,
        Where::Unary,
    ),
    column(
        "of workers",
        "workers.cpu_us_per_event",
        2,
        true,
        Where::Streams,
    ),
    column("req/s", "rps", 0, false, Where::Unary),
    column("% of ideal", "ideal_percent", 1, false, Where::Unary),
    column("events/s", "events_per_second", 0, false, Where::Streams),
    column("p50 µs", "latency_us.p50", 0, false, Where::Unary),
    column("p90", "latency_us.p90", 0, false, Where::Unary),
    column("p99", "latency_us.p99", 0, false, Where::Unary),
    column("p99.9", "latency_us.p999", 0, false, Where::Unary),
    column("added p50", "added_us.p50", 0, true, Where::Unary),
    column("p99", "added_us.p99", 0, true, Where::Unary),
    column(
        "first byte p50 µs",
        "first_byte_us.p50",
        0,
        false,
        Where::Streams,
    ),
    column("p99", "first_byte_us.p99", 0, false, Where::Streams),
    column(
        "added p50",
        "first_byte_added_us.p50",
        0,
        true,
        Where::Streams,
    ),
    column("cores", "cores", 2, false, Where::Quota),
    column("throttled", "cgroup.throttled", 0, false, Where::Quota),
    column("of periods", "cgroup.periods", 0, false, Where::Quota),
    column("RSS MiB", "rss_mib.before", 0, false, Where::Everywhere),
    column("peak", "rss_mib.peak", 0, false, Where::Everywhere),
    column("open", "streams_open", 0, false, Where::Streams),
    column("KiB/stream", "rss_kib_per_stream", 1, true, Where::Streams),
];

/// More than this used by processes that have no part in the race is worth a line.
const DISTURBED_CORES: f64 = 0.2;
const DISTURBED_PERCENT: f64 = 2.0;

/// The rig's own cost, under each block.
const RIG: [(&str, &str); 3] = [
    ("cpu_us_per_request", "µs/req"),
    ("cpu_us_per_event", "µs/event"),
    ("cores", "cores"),
];

pub(crate) fn render(result: &RaceResult, bold: bool) -> String {
    let mut out = String::new();
    let mut scenarios: Vec<&str> = result
        .rows
        .iter()
        .map(|row| row.scenario.as_str())
        .collect();
    scenarios.dedup();
    for scenario in scenarios {
        let rows = result.rows_of(scenario);
        block(&mut out, scenario, &rows, bold);
    }
    metered(&mut out, result, bold);
    let _ = writeln!(
        out,
        "\nmedian (least–greatest) over rounds;\nCPU of all processes of the subject, user and system"
    );
    for told in &result.subjects {
        let version = told.version.as_deref().unwrap_or("-");
        let mut line = format!("{}: {}; {version}", told.name, told.summary);
        let _ = told
            .problem
            .as_ref()
            .map(|problem| write!(line, "; {problem}"));
        let _ = writeln!(out, "{}", wrapped(&line, 2));
        for note in &told.notes {
            let _ = writeln!(out, "{}", wrapped(&format!("  note: {note}"), 4));
        }
    }
    out
}

/// What metering costs, where a subject stands beside the same without its meter.
fn metered(out: &mut String, result: &RaceResult, bold: bool) {
    let lines = metered::lines(result);
    if lines.len() < 2 {
        return;
    }
    let (on, off) = emphasis(bold);
    let widths = widths(&lines);
    let _ = writeln!(out, "\n{on}{}{off}", metered::TITLE);
    for (index, line) in lines.iter().enumerate() {
        let mut text = format!("{:<width$}", line[0], width = widths[0]);
        for (cell, &width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        let (on, off) = emphasis(bold && index == 0);
        let _ = writeln!(out, "{on}{}{off}", text.trim_end());
    }
}

const fn emphasis(bold: bool) -> (&'static str, &'static str) {
    if bold {
        ("\x1b[1m", "\x1b[0m")
    } else {
        ("", "")
    }
}

/// Of each column, in characters.
fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    (0..lines[0].len()).map(width).collect()
}

fn block(out: &mut String, scenario: &str, rows: &[&Row], bold: bool) {
    let (on, off) = emphasis(bold);
    let lines = lines(rows);
    let widths = widths(&lines);
    let _ = writeln!(out, "\n{on}{scenario}{off}");
    for (part, columns) in parts(&widths).into_iter().enumerate() {
        for (index, (line, row)) in lines
            .iter()
            .zip(std::iter::once(None).chain(rows.iter().map(Some)))
            .enumerate()
        {
            let problem = row.and_then(|row| row.problem.as_ref());
            if part > 0 && line.len() == 1 {
                continue;
            }
            let mut text = format!("{:<width$}", line[0], width = widths[0]);
            for (cell, &width) in line
                .iter()
                .zip(&widths)
                .take(columns.end)
                .skip(columns.start)
            {
                let _ = write!(text, "  {cell:>width$}");
            }
            if let Some(problem) = problem.filter(|_| part == 0) {
                let _ = write!(text, "  {problem}");
                text = wrapped(&text, 4);
            }
            let _ = if index == 0 {
                writeln!(out, "{on}{}{off}", text.trim_end())
            } else {
                writeln!(out, "{}", text.trim_end())
            };
        }
    }
    rig(out, rows);
}

/// Columns beside the subject's name that fit in one line, from the first to the last.
fn parts(widths: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    let mut used = 0;
    for (at, width) in widths.iter().enumerate().skip(1) {
        used += 2 + width;
        match parts.last_mut() {
            Some(part) if used <= WIDTH => part.end = at + 1,
            _ => {
                parts.push(at..at + 1);
                used = widths[0] + 2 + width;
            }
        }
    }
    parts
}

/// The head and a line for each row; a row without figures is its name alone.
pub(crate) fn lines(rows: &[&Row]) -> Vec<Vec<String>> {
    let columns = columns_of(rows);
    let mut head = vec!["subject".to_owned(), format!("× {YARDSTICK}")];
    head.extend(columns.iter().map(|column| column.head.to_owned()));
    head.extend(["errors", "limit"].map(ToOwned::to_owned));
    let mut lines = vec![head];
    lines.extend(rows.iter().map(|row| line(row, &columns, rows)));
    lines
}

fn columns_of(rows: &[&Row]) -> Vec<&'static Column> {
    let measured = |name| rows.iter().any(|row| row.figures.contains_key(name));
    let streams = measured("cpu_us_per_event");
    let stands = |column: &&Column| match column.place {
        Where::Unary => !streams,
        Where::Streams => streams,
        Where::Quota => measured("cgroup.periods"),
        Where::Everywhere => true,
    };
    COLUMNS
        .iter()
        .filter(stands)
        .filter(|column| measured(column.figure))
        .collect()
}

fn line(row: &Row, columns: &[&Column], rows: &[&Row]) -> Vec<String> {
    let mut line = vec![row.subject.clone()];
    if row.rounds == 0 {
        return line;
    }
    line.push(ratio(row, rows).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")));
    line.extend(
        columns
            .iter()
            .map(|column| figure(row.figures.get(column.figure), column)),
    );
    let failures: Vec<_> = row
        .failures
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    line.push(if failures.is_empty() {
        "0".into()
    } else {
        failures.join(", ")
    });
    let limits: Vec<_> = row.limits.keys().copied().collect();
    line.push(limits.join("/"));
    line
}

fn figure(spread: Option<&Spread>, column: &Column) -> String {
    let Some(Spread { median, min, max }) = spread else {
        return "-".into();
    };
    let decimals = column.decimals;
    if column.spread && min < max {
        format!("{median:.decimals$} ({min:.decimals$}–{max:.decimals$})")
    } else {
        format!("{median:.decimals$}")
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
pub(crate) fn rig(out: &mut String, rows: &[&Row]) {
    for row in rows.iter().filter(|row| row.rig_was_limit) {
        let _ = writeln!(
            out,
            "  {}: the generator or the upstream was the limit",
            row.subject
        );
    }
    for row in rows.iter().filter(|row| !row.counts.is_empty()) {
        let line = format!("  {}: {}", row.subject, metered::counts_of(row));
        let _ = writeln!(out, "{}", wrapped(&line, 4));
    }
    let most = |name| {
        rows.iter()
            .filter_map(|row| row.figures.get(name))
            .map(|spread| spread.max)
            .fold(0.0, f64::max)
    };
    let (others, stolen) = (most("others.cores"), most("steal_percent"));
    if others > DISTURBED_CORES || stolen > DISTURBED_PERCENT {
        let line = format!(
            "  disturbed: up to {others:.2} cores used by others, {stolen:.1} % of CPU time stolen"
        );
        let _ = writeln!(out, "{}", wrapped(&line, 4));
    }
    for party in ["client", "upstream"] {
        let figures = RIG.iter().filter_map(|(name, unit)| {
            let name = format!("{party}.{name}");
            let spread = Spread::of(rows.iter().filter_map(|row| row.median(&name)))?;
            Some(format!(
                "{:.2} ({:.2}–{:.2}) {unit}",
                spread.median, spread.min, spread.max
            ))
        });
        let figures: Vec<_> = figures.collect();
        if !figures.is_empty() {
            let line = format!("  {party}: {}", figures.join(", "));
            let _ = writeln!(out, "{}", wrapped(&line, 4));
        }
    }
}
