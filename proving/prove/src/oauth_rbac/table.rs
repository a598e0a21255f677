//! What a person reads: a section for each run, the published ones, and the comparison of all.
//!
//! Invariant: a run without figures is a line that says why; a figure that was not measured is `-`.
//! Not here: how it looks (`report`).

use super::measure::{Iteration, Part};
use super::result::{Outcome, Run, Throttled};
use super::scenario::{Figures, ReferenceRun};
use super::stages::Stage;
use crate::report::content::{Cell, Section, Table};

#[cfg(test)]
mod tests;

pub(super) const TITLE: &str = "OAuth and RBAC";

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

/// Where the time of a request goes.
const STAGES: [&str; 3] = ["stage of a request", "times", "µs/req"];

/// All of it, the comparison last.
pub(super) fn sections(outcome: &Outcome) -> Vec<Section> {
    let mut all = vec![preface(outcome)];
    let runs = outcome.runs.iter().enumerate();
    all.extend(runs.map(|(at, run)| of_run(at, run)));
    let reference = &outcome.scenario.reference;
    let full = reference.runs.iter().enumerate();
    let full = full.filter(|(_, run)| !run.iterations.is_empty());
    all.extend(full.map(|(at, run)| published(at, &reference.name, run)));
    all.push(comparison(outcome));
    all.extend(objectives(outcome));
    all
}

/// Whether what was asked of the runs was kept.
fn objectives(outcome: &Outcome) -> Option<Section> {
    let all = outcome.objectives();
    if all.is_empty() {
        return None;
    }
    let mut section = Section::new("objectives", "objectives of runs without a limit");
    let table = Table::each(
        "",
        &all,
        &[
            ("variant", |o| o.variant.as_str().into()),
            ("figure", |o| o.figure.into()),
            ("#bound", |o| o.bound.to_string().into()),
            ("#measured", |o| {
                o.value
                    .map_or_else(|| "-".into(), |v| format!("{v:.2}"))
                    .into()
            }),
            ("", |o| Cell::held(o.is_kept, "kept", "missed")),
        ],
    );
    section.table(table, "");
    Some(section)
}

/// What a reader has to know before the figures mean anything.
fn preface(outcome: &Outcome) -> Section {
    let (scenario, machine) = (&outcome.scenario, &outcome.machine);
    let asked = match (&outcome.gate, &outcome.target) {
        (Some(gate), _) => gate.clone(),
        (None, url) => format!(
            "GET {}, a gateway that ran already",
            url.as_deref().unwrap_or("-")
        ),
    };
    let mut section = Section::new("about", "What was measured");
    section.text(format!(
        "{} iterations of {} requests at {} connections, each with a bearer token; {}; {} cores of {}, Linux {}.",
        scenario.iterations,
        scenario.requests,
        scenario.connections,
        asked,
        machine.cores,
        machine.cpu,
        machine.kernel
    ));
    let reference = &scenario.reference;
    section.text(format!(
        "Published: {}. {}.",
        reference.name, reference.source
    ));
    section.text(
        "The machines, the networks and what is run on them differ: a factor between our lines and the published ones is no \
         measure of either gateway. What compares is each side with itself, with the limit and without, and what share of a core \
         validation takes.",
    );
    section.text(match outcome.target {
        Some(_) => "The cores are the client's: what the gateway used is not known here, and each answer of status 2xx was good.",
        None => "Ours is all on one machine over loopback, without TLS: client, gate, service and backend share its cores.",
    });
    section
}

fn of_run(at: usize, run: &Run) -> Section {
    let title = format!("{}, limit {}: {}", run.variant, run.limit, run.summary);
    let mut section = Section::new(format!("run-{at}"), title);
    if let Some(problem) = &run.problem {
        section.text(format!("problem: {problem}"));
    }
    let mut rows: Vec<Vec<String>> = run.iterations.iter().enumerate().map(iteration).collect();
    rows.extend(run.average.as_ref().map(|average| line("average", average)));
    add(&mut section, &head("iteration"), rows);
    notes(run).into_iter().for_each(|note| section.text(note));
    add(&mut section, &PARTS, run.parts.iter().map(part).collect());
    add(
        &mut section,
        &STAGES,
        run.stages.iter().map(stage).collect(),
    );
    throttled(run)
        .into_iter()
        .for_each(|note| section.text(note));
    section
}

/// Adds a table, if there is a row.
fn add(section: &mut Section, head: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        let head = head.iter().map(|&head| head.to_owned()).collect();
        let lines = std::iter::once(head).chain(rows).collect();
        section.table(Table::of_lines("", lines), "");
    }
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

fn stage(stage: &Stage) -> Vec<String> {
    vec![
        stage.stage.clone(),
        stage.times.to_string(),
        format!("{:.1}", stage.us_per_request),
    ]
}

fn published(at: usize, name: &str, run: &ReferenceRun) -> Section {
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
    let mut section = Section::new(format!("published-{at}"), title);
    add(&mut section, &head("iteration"), rows);
    add(&mut section, &PARTS, parts.collect());
    section
}

/// Averages of all runs, the published ones last.
fn comparison(outcome: &Outcome) -> Section {
    let of_run = |run: &Run| {
        let name = format!("{}, {}", run.variant, run.limit);
        line(&name, &run.average.unwrap_or_default())
    };
    let of_published =
        |run: &ReferenceRun| line(&format!("published, {}", run.limit), &run.average);
    let ours = outcome.runs.iter().map(of_run);
    let theirs = outcome.scenario.reference.runs.iter().map(of_published);
    let mut section = Section::new("averages", "averages of all iterations");
    let rows = ours.chain(theirs).collect();
    add(&mut section, &head("variant, limit"), rows);
    section
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
