//! The page a person opens: plots and tables of one race, in one file.
//!
//! Invariant: nothing is fetched from anywhere; light and dark follow the reader's system.
//! Not here: what a plot looks like (`plot`), which columns a table has (`table`).

mod plot;

use std::fmt::Write;

use experiment::statistics::Spread;

use super::metered;
use super::result::RaceResult;
use super::scenario::Scenario;
use super::table;
use crate::plot::escape;
use plot::{Bar, Lines, Point, Series, bars, lines};

#[cfg(test)]
mod tests;

pub(crate) const STYLE: &str = include_str!("page/style.css");

/// The whole page.
pub(crate) fn render(result: &RaceResult) -> String {
    let mut out =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = write!(
        out,
        "<title>Gateway race</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    head(&mut out, result);
    legend(&mut out, result);
    plots(&mut out, result);
    meter(&mut out, result);
    tables(&mut out, result);
    subjects(&mut out, result);
    out.push_str("</body>\n</html>\n");
    out
}

fn head(out: &mut String, result: &RaceResult) {
    let machine = &result.machine;
    let trust = if result.trusted() {
        ""
    } else {
        "<p class=\"warning\">Not every row is to be trusted: see the problems beside the rows.</p>\n"
    };
    let _ = write!(
        out,
        "<h1>Gateway race</h1>\n<p>{} cores of {}, {} MiB, Linux {}; {} s a measurement, {} rounds, \
         subjects interleaved. Figures are the median with the least and the greatest of the rounds; \
         CPU is that of all processes of a subject, user and system.</p>\n{trust}",
        machine.cores,
        escape(&machine.cpu),
        machine.memory_mib,
        escape(&machine.kernel),
        result.seconds,
        result.rounds,
    );
}

fn legend(out: &mut String, result: &RaceResult) {
    out.push_str("<ul class=\"legend\">\n");
    for (index, told) in result.subjects.iter().enumerate() {
        let name = escape(&told.name);
        let _ = writeln!(out, "<li class=\"c{}\">{name}</li>", colour(index));
    }
    out.push_str("</ul>\n");
}

fn plots(out: &mut String, result: &RaceResult) {
    out.push_str("<div class=\"plots\">\n");
    let ladder = |s: &&Scenario| s.latency_ms > 0 && s.closed() && s.cpu_quota.is_none();
    let quota = |s: &&Scenario| s.cpu_quota.is_some() && s.closed() && s.latency_ms == 0;
    let users = |s: &Scenario| s.users_f64();
    for (figure, title) in [
        ("latency_us.p50", "Latency p50 against users"),
        ("latency_us.p99", "Latency p99 against users"),
    ] {
        let series = series_of(result, ladder, users, figure, 1e-3);
        out.push_str(&lines(&Lines {
            title,
            x: "users, upstream of fixed latency",
            y: "ms",
            log: true,
            series,
        }));
    }
    out.push_str(&lines(&Lines {
        title: "Throughput against users",
        x: "users, upstream of fixed latency",
        y: "requests/s",
        log: true,
        series: series_of(result, ladder, users, "rps", 1.0),
    }));
    out.push_str(&lines(&Lines {
        title: "Throughput against CPU quota",
        x: "cores by cgroup",
        y: "requests/s",
        log: false,
        series: series_of(result, quota, |s| s.cpu_quota.unwrap_or(0.0), "rps", 1.0),
    }));
    for scenario in &result.scenarios {
        let name = &scenario.name;
        let figures: &[(&str, &str)] = if scenario.hold {
            &[("rss_kib_per_stream", "KiB per open stream")]
        } else if scenario.streams() {
            &[("cpu_us_per_event", "CPU µs per event")]
        } else if scenario.cpu_quota.is_some() && scenario.per_second.is_some() {
            &[
                ("latency_us.p99", "latency p99 ms"),
                ("cgroup.throttled", "periods throttled"),
            ]
        } else if scenario.latency_ms == 0 && scenario.cpu_quota.is_none() {
            &[("cpu_us_per_request", "CPU µs per request")]
        } else {
            &[]
        };
        for (figure, unit) in figures {
            out.push_str(&bars(
                &format!("{unit}: {name}"),
                &bars_of(result, name, figure, unit),
            ));
        }
    }
    out.push_str("</div>\n");
}

/// One series a subject: the figure, times `factor`, of every scenario that fits, by `x`.
fn series_of(
    result: &RaceResult,
    fits: impl Fn(&&Scenario) -> bool,
    x: impl Fn(&Scenario) -> f64,
    figure: &str,
    factor: f64,
) -> Vec<Series> {
    let scenarios: Vec<&Scenario> = result.scenarios.iter().filter(|s| fits(s)).collect();
    let series = |(index, name): (usize, &str)| {
        let point = |scenario: &&Scenario| {
            let spread = figure_of(result, name, &scenario.name, figure)?;
            if scenario.cpu_quota.is_some() {
                // What ran without the quota, as `direct` does, has no part in the plot.
                figure_of(result, name, &scenario.name, "cgroup.periods")?;
            }
            Some(Point {
                x: x(scenario),
                y: times(spread, factor),
            })
        };
        Series {
            name: name.to_owned(),
            colour: colour(index),
            points: scenarios.iter().filter_map(point).collect(),
        }
    };
    let all = result.subjects.iter().map(|told| told.name.as_str());
    all.enumerate().map(series).collect()
}

fn bars_of(result: &RaceResult, scenario: &str, figure: &str, unit: &str) -> Vec<Bar> {
    // Figures are in microseconds unless their names say otherwise.
    let factor = if unit.ends_with(" ms") { 1e-3 } else { 1.0 };
    let bar = |(index, name): (usize, &str)| {
        Some(Bar {
            name: name.to_owned(),
            colour: colour(index),
            value: times(figure_of(result, name, scenario, figure)?, factor),
        })
    };
    let all = result.subjects.iter().map(|told| told.name.as_str());
    let mut bars: Vec<Bar> = all.enumerate().filter_map(bar).collect();
    bars.retain(|bar| bar.value.max > 0.0);
    bars.sort_by(|a, b| a.value.median.total_cmp(&b.value.median));
    bars
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

fn meter(out: &mut String, result: &RaceResult) {
    let lines = metered::lines(result);
    if lines.len() < 2 {
        return;
    }
    let title = escape(metered::TITLE);
    let _ = writeln!(out, "<h2>{title}</h2>\n<div class=\"wide\"><table>");
    for (index, line) in lines.iter().enumerate() {
        out.push_str("<tr>");
        line_of(out, line, index == 0);
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn line_of(out: &mut String, line: &[String], is_head: bool) {
    let tag = if is_head { "th" } else { "td" };
    for cell in line {
        let _ = write!(out, "<{tag}>{}</{tag}>", escape(cell));
    }
}

fn tables(out: &mut String, result: &RaceResult) {
    for scenario in &result.scenarios {
        let rows = result.rows_of(&scenario.name);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<div class=\"wide\"><table>",
            escape(&scenario.name)
        );
        let lines = table::lines(&rows);
        for (index, line) in lines.iter().enumerate() {
            out.push_str("<tr>");
            line_of(out, line, index == 0);
            let problem = index
                .checked_sub(1)
                .and_then(|at| rows[at].problem.as_ref());
            if let Some(problem) = problem {
                let rest = lines[0].len().saturating_sub(line.len()).max(1);
                let _ = write!(
                    out,
                    "<td class=\"problem\" colspan=\"{rest}\">{}</td>",
                    escape(problem)
                );
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
        let mut notes = String::new();
        table::rig(&mut notes, &rows);
        let _ = writeln!(out, "<pre>{}</pre>", escape(&notes));
    }
}

fn subjects(out: &mut String, result: &RaceResult) {
    out.push_str("<h2>Subjects</h2>\n<dl>\n");
    for told in &result.subjects {
        let version = told.version.as_deref().unwrap_or("no version");
        let _ = writeln!(out, "<dt>{}</dt>", escape(&told.name));
        let _ = writeln!(
            out,
            "<dd>{}; {}</dd>",
            escape(&told.summary),
            escape(version)
        );
        if let Some(file) = &told.flame {
            let _ = writeln!(out, "<dd><a href=\"{}\">flame graph</a></dd>", escape(file));
        }
        for note in told.notes.iter().chain(&told.problem) {
            let _ = writeln!(out, "<dd class=\"problem\">{}</dd>", escape(note));
        }
    }
    out.push_str("</dl>\n");
}

/// The style sheet has so many colours.
const fn colour(index: usize) -> usize {
    index % 16
}
