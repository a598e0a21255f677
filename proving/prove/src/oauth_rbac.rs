//! `prove oauth-rbac`: tokens validated and rights decided in front of a backend, and what that costs.
//!
//! The scenario repeats what a published benchmark asked of another gateway, so that its figures can stand beside ours.
//! Invariant: a run that could not be made, or a limit that could not be set, is a line that says why.
//! Not here: gateways side by side under the same load (`race`).

mod elsewhere;
mod measure;
mod result;
mod rig;
mod scenario;
mod stages;
mod table;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::baseline::{self, Compared};
use crate::host::machine::Machine;
use crate::host::{descriptors, process};
use crate::race::upstream::Upstream;
use crate::report::{Published, html};
use elsewhere::Elsewhere;
use result::{Outcome, Run};
use rig::Rig;
use scenario::{Scenario, Wanted};

/// Measures a gate that validates tokens and decides over rights, beside published figures.
#[derive(Debug, Args)]
pub(crate) struct OauthRbac {
    /// Directory with `scenario.toml`.
    #[arg(default_value = "scenarios/oauth-rbac")]
    dir: PathBuf,
    /// Only these variants, in this order.
    #[arg(long, value_delimiter = ',')]
    variants: Vec<String>,
    /// Only these limits, in this order.
    #[arg(long, value_delimiter = ',')]
    limits: Vec<String>,
    /// Iterations of each variant under each limit [default: as the scenario says].
    #[arg(long)]
    iterations: Option<usize>,
    /// Requests of an iteration [default: as the scenario says].
    #[arg(long)]
    requests: Option<u64>,
    /// Connections [default: as the scenario says].
    #[arg(long)]
    connections: Option<usize>,
    /// The gate's program [default: `tollgate` beside this one].
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// A cgroup in which groups with a CPU quota may be made [default: ours or the root].
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Also print the result as JSON on standard output; the tables then go to standard error.
    #[arg(long)]
    json: bool,
    /// Where to write the result.
    #[arg(long, default_value = "results/oauth-rbac/result.json")]
    out: PathBuf,
    /// Where to write the page [default: beside the result, as .html].
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    elsewhere: elsewhere::Options,
    #[command(flatten)]
    beside: baseline::Options,
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthRbacError {
    #[error("{0}")]
    Scenario(String),
    #[error("{0}")]
    Rig(String),
    #[error("{path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// Runs the scenario; whether every request of every run had a good answer, every objective was kept, and nothing is worse than in
/// the baseline.
pub(crate) fn oauth_rbac(options: &OauthRbac) -> Result<bool, OauthRbacError> {
    let wanted = Wanted {
        variants: &options.variants,
        limits: &options.limits,
        iterations: options.iterations,
        requests: options.requests,
        connections: options.connections,
    };
    let scenario = Scenario::load(&options.dir, &wanted).map_err(OauthRbacError::Scenario)?;
    let before = options.beside.read(result::SCHEMA);
    let before = before.map_err(OauthRbacError::Scenario)?;
    let elsewhere = Elsewhere::of(&options.elsewhere).map_err(OauthRbacError::Scenario)?;
    let limit = descriptors::raise();
    let (gate, runs) = match &elsewhere {
        Some(elsewhere) => (None, vec![elsewhere.run(&scenario)]),
        None => ours(options, &scenario)?,
    };
    let outcome = Outcome {
        machine: Machine::read(limit),
        gate,
        target: elsewhere.map(|elsewhere| elsewhere.url().to_owned()),
        scenario,
        runs,
    };
    let json = outcome.to_json();
    let compared = before.map(|before| options.beside.compare(&before, &json));
    report(options, &outcome, &json, compared.as_ref())?;
    let is_worse = compared.is_some_and(|compared| compared.is_worse());
    Ok(outcome.trusted() && outcome.keeps_objectives() && !is_worse)
}

/// Each variant under each limit, before a gate of our own; the first is what that says of its version.
fn ours(
    options: &OauthRbac,
    scenario: &Scenario,
) -> Result<(Option<String>, Vec<Run>), OauthRbacError> {
    let rig =
        |error: io::Error| OauthRbacError::Rig(format!("the rig could not be set up: {error}"));
    let gate = process::gate(options.gate.as_deref()).map_err(OauthRbacError::Rig)?;
    process::end_all_on_signal().map_err(rig)?;
    let home = tempfile::Builder::new().prefix("oauth-rbac-").tempdir();
    let home = home.map_err(rig)?;
    let upstream = Upstream::start(home.path()).map_err(OauthRbacError::Rig)?;
    let rig = Rig {
        dir: &options.dir,
        gate: &gate,
        home: home.path(),
        cgroup: options.cgroup.as_deref(),
        scenario,
        upstream: &upstream,
    };
    let mut runs = Vec::new();
    for variant in &scenario.variants {
        let missing = variant.hops.iter().find_map(|hop| hop.found().err());
        if let Some(says) = missing.filter(|_| options.variants.is_empty()) {
            eprintln!("{}: left out: {says}", variant.name);
            continue;
        }
        let limits = scenario.limits.iter().filter(|limit| limit.is_for(variant));
        runs.extend(limits.map(|limit| rig.run(variant, limit)));
    }
    Ok((Some(version(&gate)), runs))
}

fn version(gate: &Path) -> String {
    let output = Command::new(gate).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "a gate without a version".into())
}

fn report(
    options: &OauthRbac,
    outcome: &Outcome,
    json: &str,
    compared: Option<&Compared>,
) -> Result<(), OauthRbacError> {
    let published = Published {
        is_json: options.json,
        out: &options.out,
        html: options.html.as_deref(),
    };
    let mut sections = table::sections(outcome);
    sections.extend(compared.map(Compared::section));
    let page = html::page(table::TITLE, &sections);
    let written = published.publish(json, &sections, &page);
    written.map_err(|(path, source)| OauthRbacError::Write { path, source })
}
