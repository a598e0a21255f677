//! The tables a person reads, for a terminal and for a page: the same rows in both.
//!
//! Invariant: a run without figures is a line that says why; a figure that was not measured is `-`.
//! Not here: the tables as text and as HTML (`grid`).

mod grid;

use super::measure::{Iteration, Part};
use super::result::{Outcome, Run, Throttled};
use super::scenario::{Figures, ReferenceRun};
use grid::Grid;
pub(super) use grid::{page, text};

#[cfg(test)]
mod tests;

const FIGURES: [&str; 5] = ["p50 ms", "p95 ms", "p99 ms", "req/s", "good %"];
const PARTS: [&str; 7] = [
    "part",
    "cores at rest",
    "mean",
    "peak",
    "MiB at rest",
    "peak",
    "CPU µs/req",
];

/// All tables: one for each run, the published ones, and the comparison of all.
pub(super) fn grids(outcome: &Outcome) -> Vec<Grid> {
    let mut grids: Vec<Grid> = outcome.runs.iter().flat_map(of_run).collect();
    let reference = &outcome.scenario.reference;
    let full = reference
        .runs
        .iter()
        .filter(|run| !run.iterations.is_empty());
    grids.extend(full.flat_map(|run| published(&reference.name, run)));
    grids.push(comparison(outcome));
    grids
}

/// What a reader has to know before the figures mean anything.
pub(super) fn preface(outcome: &Outcome) -> Vec<String> {
    let (scenario, machine) = (&outcome.scenario, &outcome.machine);
    vec![
        format!(
            "{} iterations of {} requests at {} connections, each with a bearer token; {}; {} cores of {}, Linux {}.",
            scenario.iterations,
            scenario.requests,
            scenario.connections,
            outcome.gate,
            machine.cores,
            machine.cpu,
            machine.kernel
        ),
        format!("Published: {}. {}.", scenario.reference.name, scenario.reference.source),
        "The machines, the networks and what is run on them differ: a factor between our lines and the published ones is no \
         measure of either gateway. What compares is each side with itself, with the limit and without, and what share of a core \
         validation takes."
            .into(),
        "Ours is all on one machine over loopback, without TLS: client, gate, service and backend share its cores.".into(),
    ]
}

fn of_run(run: &Run) -> Vec<Grid> {
    let title = format!("{}, limit {}: {}", run.variant, run.limit, run.summary);
    let mut rows: Vec<Vec<String>> = run.iterations.iter().enumerate().map(iteration).collect();
    rows.extend(run.average.as_ref().map(|average| line("average", average)));
    let mut grid = Grid::new(title, &head("iteration"), rows);
    grid.problem = run.problem.clone();
    grid.notes = notes(run);
    let mut grids = vec![grid];
    if !run.parts.is_empty() {
        let rows = run.parts.iter().map(part).collect();
        let mut grid = Grid::new(String::new(), &PARTS, rows);
        grid.notes = throttled(run);
        grids.push(grid);
    }
    grids
}

fn iteration((at, one): (usize, &Iteration)) -> Vec<String> {
    let mut line = line(&(at + 1).to_string(), &one.figures);
    if let Some(last) = line.last_mut() {
        *last = format!("{last} ({}/{})", one.answered, one.requests);
    }
    line
}

fn notes(run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let checks: Vec<String> = run
        .checks
        .iter()
        .map(|check| format!("{} {}", check.what, check.status))
        .collect();
    if !checks.is_empty() {
        notes.push(format!("checked first: {}", checks.join(", ")));
    }
    for (at, one) in run.iterations.iter().enumerate() {
        let kinds = one
            .failures
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"));
        let kinds: Vec<String> = kinds.collect();
        if !kinds.is_empty() {
            notes.push(format!(
                "failures of iteration {}: {}",
                at + 1,
                kinds.join(", ")
            ));
        }
    }
    if let Some(asked) = run.asked {
        let requests: u64 = run.iterations.iter().map(|one| one.requests).sum();
        notes.push(format!(
            "the service was asked about {} tokens and {} calls, for {requests} requests",
            asked.introspections, asked.authorizations
        ));
    }
    notes
}

/// The limits that held, and what the kernel made of them.
fn throttled(run: &Run) -> Vec<String> {
    let says = |part: &str, cores: Option<f64>, spent: Option<Throttled>| {
        let (cores, spent) = (cores?, spent?);
        let Throttled {
            periods,
            throttled,
            throttled_ms,
        } = spent;
        Some(format!(
            "{part} at {cores} core: stopped in {throttled} of {periods} periods, for {throttled_ms} ms in all"
        ))
    };
    let gate = says("gate", run.gate_cores, run.gate_throttled);
    let service = says("service", run.service_cores, run.service_throttled);
    gate.into_iter().chain(service).collect()
}

fn part(part: &Part) -> Vec<String> {
    vec![
        part.part.to_owned(),
        format!("{:.4}", part.cores_rest),
        format!("{:.4}", part.cores_mean),
        format!("{:.4}", part.cores_peak),
        format!("{:.1}", part.mib_rest),
        format!("{:.1}", part.mib_peak),
        format!("{:.1}", part.cpu_us_per_request),
    ]
}

fn published(name: &str, run: &ReferenceRun) -> Vec<Grid> {
    let mut rows: Vec<Vec<String>> = run
        .iterations
        .iter()
        .enumerate()
        .map(|(at, figures)| line(&(at + 1).to_string(), figures))
        .collect();
    rows.push(line("average", &run.average));
    let title = format!("published, limit {}: {name}", run.limit);
    let parts = run.parts.iter().map(|part| {
        vec![
            part.part.clone(),
            format!("{:.6}", part.cores_rest),
            "-".into(),
            format!("{:.4}", part.cores_peak),
            format!("{:.1}", part.mib_rest),
            format!("{:.1}", part.mib_peak),
            "-".into(),
        ]
    });
    vec![
        Grid::new(title, &head("iteration"), rows),
        Grid::new(String::new(), &PARTS, parts.collect()),
    ]
}

/// Averages of all runs, the published ones last.
fn comparison(outcome: &Outcome) -> Grid {
    let of_run = |run: &Run| {
        let name = format!("{}, {}", run.variant, run.limit);
        line(&name, &run.average.unwrap_or_default())
    };
    let of_published =
        |run: &ReferenceRun| line(&format!("published, {}", run.limit), &run.average);
    let ours = outcome.runs.iter().map(of_run);
    let theirs = outcome.scenario.reference.runs.iter().map(of_published);
    Grid::new(
        "averages of all iterations".into(),
        &head("variant, limit"),
        ours.chain(theirs).collect(),
    )
}

fn head(first: &'static str) -> Vec<&'static str> {
    [&[first], &FIGURES[..]].concat()
}

fn line(name: &str, figures: &Figures) -> Vec<String> {
    let figure = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
    };
    let ms = |value: Option<f64>| figure(value, if value < Some(1_000.0) { 2 } else { 0 });
    vec![
        name.to_owned(),
        ms(figures.p50_ms),
        ms(figures.p95_ms),
        ms(figures.p99_ms),
        figure(figures.rps, 0),
        figure(figures.success_percent, 1),
    ]
}
