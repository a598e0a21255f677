//! The page a person opens: plots and tables of one race, in one file.
//!
//! Invariant: a plot without a point is no plot at all.
//! Not here: what plots and tables look like (`report`), which columns a table has (`table`).

use experiment::statistics::Spread;

use super::result::RaceResult;
use super::scenario::Scenario;
use super::table;
use crate::plot::short;
use crate::report::chart::{Chart, Side};
use crate::report::content::{Bar, Bars, Block, Section};
use crate::report::html;

#[cfg(test)]
mod tests;

const TITLE: &str = "Gateway race";

/// The whole page.
pub(crate) fn render(result: &RaceResult) -> String {
    let mut all = vec![about(result), plots(result)];
    all.extend(table::sections(result));
    html::page(TITLE, &all)
}

fn about(result: &RaceResult) -> Section {
    let mut section = Section::new("about", "What was measured");
    let machine = &result.machine;
    section.text(format!(
        "{} cores of {}, {} MiB, Linux {}; {} s a measurement, {} rounds, subjects interleaved. Figures are the median with \
         the least and the greatest of the rounds; CPU is that of all processes of a subject, user and system.",
        machine.cores,
        machine.cpu,
        machine.memory_mib,
        machine.kernel,
        result.seconds,
        result.rounds,
    ));
    if !result.trusted() {
        section.text("Not every row is to be trusted: see the problems beside the rows.");
    }
    section
}

fn plots(result: &RaceResult) -> Section {
    let mut section = Section::new("plots", "Plots");
    let ladder = |s: &&Scenario| s.latency_ms > 0 && s.closed() && s.cpu_quota.is_none();
    let quota = |s: &&Scenario| s.cpu_quota.is_some() && s.closed() && s.latency_ms == 0;
    let users = |s: &Scenario| s.users_f64();
    for (title, unit, figure, factor) in [
        ("Latency p50 against users", "ms", "latency_us.p50", 1e-3),
        ("Latency p99 against users", "ms", "latency_us.p99", 1e-3),
        ("Throughput against users", "requests/s", "rps", 1.0),
        ("CPU against users", "cores of the subject", "cores", 1.0),
        (
            "Memory against users",
            "MiB at the peak",
            "rss_mib.peak",
            1.0,
        ),
    ] {
        let mut chart = Chart::new(title, "users, upstream of fixed latency", unit);
        (chart.log_x, chart.log_left) = (true, true);
        lines(
            &mut section,
            chart,
            result,
            &ladder,
            &users,
            (figure, factor),
        );
    }
    let chart = Chart::new(
        "Throughput against CPU quota",
        "cores by cgroup",
        "requests/s",
    );
    let cores = |s: &Scenario| s.cpu_quota.unwrap_or(0.0);
    lines(&mut section, chart, result, &quota, &cores, ("rps", 1.0));
    for scenario in &result.scenarios {
        // Figures are in microseconds unless their names say otherwise.
        let figures: &[(&str, &str, f64)] = if scenario.hold {
            &[("rss_kib_per_stream", "KiB per open stream", 1.0)]
        } else if scenario.streams() {
            &[("cpu_us_per_event", "CPU µs per event", 1.0)]
        } else if scenario.cpu_quota.is_some() && scenario.per_second.is_some() {
            &[
                ("latency_us.p99", "latency p99 ms", 1e-3),
                ("cgroup.throttled", "periods throttled", 1.0),
            ]
        } else if scenario.latency_ms == 0 && scenario.cpu_quota.is_none() {
            &[("cpu_us_per_request", "CPU µs per request", 1.0)]
        } else {
            &[]
        };
        for (figure, unit, factor) in figures {
            bars(
                &mut section,
                result,
                &scenario.name,
                (figure, unit, *factor),
            );
        }
    }
    section
}

/// A line for each subject: the figure, times `factor`, of every scenario that fits, by `x`.
fn lines(
    section: &mut Section,
    mut chart: Chart,
    result: &RaceResult,
    fits: &dyn Fn(&&Scenario) -> bool,
    x: &dyn Fn(&Scenario) -> f64,
    (figure, factor): (&str, f64),
) {
    for told in &result.subjects {
        let spread = |scenario: &Scenario| {
            if scenario.cpu_quota.is_some() {
                // What ran without the quota, as `direct` does, has no part in the plot.
                figure_of(result, &told.name, &scenario.name, "cgroup.periods")?;
            }
            let spread = figure_of(result, &told.name, &scenario.name, figure)?;
            Some((x(scenario), times(spread, factor)))
        };
        let seen = result.scenarios.iter().filter(fits).filter_map(spread);
        let seen: Vec<(f64, Spread)> = seen.collect();
        let points = seen.iter().map(|(x, spread)| (*x, Some(spread.median)));
        if let Some(line) = chart.line(&told.name, Side::Left, points) {
            let label = |(x, spread): &(f64, Spread)| format!("{} at {}", words(spread), short(*x));
            line.labels = seen.iter().map(label).collect();
            line.spreads = seen
                .iter()
                .map(|(_, spread)| (spread.min, spread.max))
                .collect();
        }
    }
    if chart.lines.iter().any(|line| line.points.len() > 1) {
        section.chart(chart, "");
    }
}

fn bars(
    section: &mut Section,
    result: &RaceResult,
    scenario: &str,
    (figure, unit, factor): (&str, &str, f64),
) {
    let bar = |name: &String| {
        let value = times(figure_of(result, name, scenario, figure)?, factor);
        let (name, says) = (name.clone(), words(&value));
        (value.max > 0.0).then_some(Bar { name, value, says })
    };
    let mut rows: Vec<Bar> = result
        .subjects
        .iter()
        .filter_map(|told| bar(&told.name))
        .collect();
    rows.sort_by(|a, b| a.value.median.total_cmp(&b.value.median));
    if !rows.is_empty() {
        let caption = format!("{unit}: {scenario}");
        section.blocks.push(Block::Bars(Bars { caption, rows }));
    }
}

fn figure_of<'a>(
    result: &'a RaceResult,
    subject: &str,
    scenario: &str,
    figure: &str,
) -> Option<&'a Spread> {
    let mut rows = result.rows.iter();
    let row = rows.find(|row| row.subject == subject && row.scenario == scenario)?;
    row.figures.get(figure)
}

fn times(spread: &Spread, factor: f64) -> Spread {
    Spread {
        median: spread.median * factor,
        min: spread.min * factor,
        max: spread.max * factor,
    }
}

/// `16.0 (15.1–17.2)`, without the brackets where there is no spread.
fn words(spread: &Spread) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(short);
    if min == max {
        median
    } else {
        format!("{median} ({min}–{max})")
    }
}
