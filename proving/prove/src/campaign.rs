//! `prove run`: a campaign from its first check to its report.
//!
//! Policies first, in a sterile suite; then a baseline, a ramp that telemetry steers, a step back and a soak; then the
//! pages.
//! Invariant: what is told stands in the [`document`](crate::report::document::Document), and pages are made of it alone. Whatever ends
//! a campaign, what was measured until then is told, and everything that was started is ended.
//! Not here: what is decided (`experiment::campaign`), pages (`report`), policies (`verify`).

mod check;
mod follow;
mod live;
mod note;
mod observed;
mod output;
mod published;
mod queries;
mod real;
mod rig;
mod scenario;
mod simulated;
mod summary;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::report::document::{Document, Verdict};
use output::Output;
use scenario::Scenario;

use crate::host::machine::Machine;
use crate::numbers::within;
use crate::text::say;

/// Runs a campaign: verify, baseline, ramp, retract, soak, report.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Options {
    /// A directory with scenario.toml, such as scenarios/white-paper.
    scenario: PathBuf,
    /// Where the report and its data go; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "results/run")]
    out: PathBuf,
    /// Simulate engine and users in virtual time: seconds instead of hours.
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// The gateway that is started, a directory with subject.toml, in the place of the scenario's.
    /// Given several times: one campaign after the other, each in a directory of --out by its gateway's name, and their comparison.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "is_virtual"])]
    gateway: Vec<PathBuf>,
    /// First fetch the gateway, where a registry carries it.
    #[arg(long, conflicts_with_all = ["target", "is_virtual"])]
    install: bool,
    /// A gateway that runs already: its base URL. Nothing is started.
    #[arg(long, value_name = "URL", conflicts_with = "is_virtual")]
    target: Option<String>,
    /// Where a target is scraped, NAME=URL, in the place of the scenario's.
    #[arg(long, value_name = "NAME=URL", value_parser = named)]
    scrape: Vec<(String, String)>,
    /// A corpus that was built, in the place of the scenario's.
    #[arg(long, value_name = "DIR", conflicts_with = "is_virtual")]
    corpus: Option<PathBuf>,
    /// Where an upstream of the suite listens, so that a gateway that runs can be verified.
    #[arg(long = "upstream", value_name = "NAME=HOST:PORT", requires = "target", value_parser = crate::verify::upstream)]
    upstreams: Vec<(String, SocketAddr)>,
    /// Where a metric of the suite is: a page, and a series where it is not the suite's.
    #[arg(long = "metrics", value_name = "NAME=URL[#SERIES]", requires = "target", value_parser = crate::verify::named)]
    metrics: Vec<(String, String)>,
    /// Refuse a campaign whose sessions repeat themselves: at least this share has to be no repetition.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "0.1", value_parser = |text: &str| within(text, 0.0, 1.0))]
    strict: Option<f64>,
    /// Leave the functional suite out.
    #[arg(long)]
    no_verify: bool,
    /// Seed of everything that is drawn, in the place of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// A page of what goes on, on this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "is_virtual")]
    watch: Option<SocketAddr>,
    #[command(flatten)]
    what_if: WhatIf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// What is changed in virtual time.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What if (with --virtual)")]
pub(crate) struct WhatIf {
    /// Engines behind a balancer.
    #[arg(long, value_name = "N", requires = "is_virtual", value_parser = clap::value_parser!(u32).range(1..=64))]
    replicas: Option<u32>,
    /// How the balancer chooses: least-loaded, prefix-aware or round-robin.
    #[arg(long, requires = "is_virtual")]
    balancer: Option<String>,
    /// Blocks of each engine's KV cache.
    #[arg(long, requires = "is_virtual", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    kv_blocks: Option<u32>,
    /// Requests that an engine has admitted at most.
    #[arg(long, requires = "is_virtual", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_num_seqs: Option<u32>,
    /// Pauses of users times this.
    #[arg(long, value_name = "FACTOR", requires = "is_virtual", value_parser = |text: &str| within(text, 0.001, 1000.0))]
    think: Option<f64>,
    /// Users at most.
    #[arg(long, requires = "is_virtual", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_users: Option<u32>,
}

const AFTER: &str = "\
Exit codes: 0 passed, 1 an objective was missed or too many requests failed,
2 nothing could be done, 3 stopped by a gate (T3), 4 void: the generator could
not keep up, 5 a target could not be reached, 6 the functional suite failed,
130 interrupted.

docs/run.md has the scenario's members, the gates and the report.";

/// Nothing could be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("{}", faults_of(file, faults))]
    Scenario { file: PathBuf, faults: Vec<String> },
    /// It names its file itself.
    #[error("{0}")]
    File(io::Error),
    #[error("{place}: {cause}")]
    Input { place: String, cause: io::Error },
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Load(#[from] crate::load::ReplayError),
    #[error("the rig could not be set up: {0}")]
    Rig(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("interrupted before anything was loaded; everything that was started is ended")]
    Interrupted,
    #[error("bug: {0}")]
    Bug(&'static str),
}

impl RunError {
    /// What went wrong with this: a file, a program, an option.
    fn of(place: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_string();
        move |cause| Self::Input { place, cause }
    }

    /// As the process ends.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable(_) => Verdict::Unreachable.exit_code(),
            Self::Interrupted => Verdict::Interrupted.exit_code(),
            Self::Scenario { .. }
            | Self::File(_)
            | Self::Input { .. }
            | Self::Usage(_)
            | Self::Load(_)
            | Self::Rig(_)
            | Self::Bug(_) => 2,
        }
    }
}

fn faults_of(file: &std::path::Path, faults: &[String]) -> String {
    let file = file.display();
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| format!("{file}: {fault}"))
        .collect();
    lines.join("\n")
}

/// Runs it, and tells what it came to.
pub(crate) fn run(options: &Options) -> Result<Verdict, RunError> {
    let mut scenario = Scenario::read(&options.scenario, |scenario| {
        check::faults(options, scenario)
    })?;
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    if let [first, _, ..] = options.gateway.as_slice() {
        return several(options, first);
    }
    if let [gateway] = options.gateway.as_slice() {
        scenario.gateway = Some(gateway.clone());
    }
    let output = Output::create(&options.out)?;
    let document = if options.is_virtual {
        simulated::run(options, scenario, &output)?
    } else {
        real::run(options, scenario, &output)?
    };
    tell(options, &document, &output)
}

/// A campaign for each gateway, one after the other, and all of them side by side. The verdict is the first that is no good one.
fn several(options: &Options, first: &Path) -> Result<Verdict, RunError> {
    let mut verdict = None;
    let mut runs = Vec::new();
    for gateway in &options.gateway {
        let name = gateway.file_name().unwrap_or(gateway.as_os_str());
        let out = options.out.join(name);
        if runs.contains(&out) {
            let says = format!("--gateway: two are called {}", Path::new(name).display());
            return Err(RunError::Usage(says));
        }
        hint(&format!("gateway {}", gateway.display()));
        let one = Options {
            gateway: vec![gateway.clone()],
            out: out.clone(),
            ..options.clone()
        };
        let is_good = |verdict: &Verdict| verdict.exit_code() == 0;
        let came_to = run(&one)?;
        verdict = verdict.filter(|so_far| !is_good(so_far)).or(Some(came_to));
        runs.push(out);
    }
    let page = options.out.join("comparison.html");
    crate::report::compare(&runs, &page).map_err(RunError::of(page.display()))?;
    verdict.ok_or_else(|| RunError::Usage(format!("--gateway {}: is none", first.display())))
}

fn tell(options: &Options, document: &Document, output: &Output) -> Result<Verdict, RunError> {
    // What was measured is told before what went wrong with its files.
    let written = output.write(document);
    if options.json {
        say(&(output.short(document) + "\n")).map_err(RunError::of("stdout"))?;
        hint(&format!(
            "report: {}",
            output.path(&document.evidence().file("html")).display()
        ));
    } else {
        let bold = crate::text::is_bold();
        let page = output.path(&document.evidence().file("html"));
        say(&crate::report::page(document, &page, bold)).map_err(RunError::of("stdout"))?;
    }
    written?;
    Ok(document.verdict)
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(verdict.exit_code())
    }
}

/// A line for whoever watches. A terminal that is gone takes none, and ends no campaign.
fn hint(says: &str) {
    drop(io::stderr().write_all(format!("{says}\n").as_bytes()));
}

/// What a verdict says of a file that could not be written.
fn not_whole(fault: &str) -> String {
    format!("what was measured could not be kept: {fault}")
}

/// The command line, without anything that might be secret in a URL.
fn command(options: &Options) -> String {
    let mut words = vec![
        "prove run".to_owned(),
        quoted(&options.scenario.display().to_string()),
    ];
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {}", quoted(&value))));
    };
    if options.is_virtual {
        add("--virtual", Some(String::new()));
    }
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    for gateway in &options.gateway {
        add("--gateway", Some(gateway.display().to_string()));
    }
    add(
        "--target",
        options.target.as_deref().map(without_credentials),
    );
    add("--corpus", path(&options.corpus));
    for (name, url) in &options.scrape {
        add(
            "--scrape",
            Some(format!("{name}={}", without_credentials(url))),
        );
    }
    add("--seed", options.seed.map(|seed| seed.to_string()));
    let what_if = &options.what_if;
    add("--replicas", what_if.replicas.map(|n| n.to_string()));
    add("--balancer", what_if.balancer.clone());
    add("--kv-blocks", what_if.kv_blocks.map(|n| n.to_string()));
    add(
        "--max-num-seqs",
        what_if.max_num_seqs.map(|n| n.to_string()),
    );
    add("--think", what_if.think.map(|n| n.to_string()));
    add("--max-users", what_if.max_users.map(|n| n.to_string()));
    for (name, place) in &options.upstreams {
        add("--upstream", Some(format!("{name}={place}")));
    }
    for (name, place) in &options.metrics {
        let place = without_credentials(place);
        add("--metrics", Some(format!("{name}={place}")));
    }
    if options.install {
        add("--install", Some(String::new()));
    }
    add("--strict", options.strict.map(|share| share.to_string()));
    if options.no_verify {
        add("--no-verify", Some(String::new()));
    }
    words
        .iter()
        .map(|word| word.trim_end())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A URL without the user and the password that may stand in it.
pub(super) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The machine, for a reader.
fn told(machine: &Machine) -> BTreeMap<String, String> {
    [
        ("CPU", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("memory", format!("{} MiB", machine.memory_mib)),
        ("kernel", machine.kernel.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// `NAME=URL`.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, url) = text.split_once('=').ok_or("write NAME=URL")?;
    if scenario::OWN_TARGETS.contains(&name) {
        return Err(scenario::OWN_SAYS.into());
    }
    Ok((name.to_owned(), url.to_owned()))
}
