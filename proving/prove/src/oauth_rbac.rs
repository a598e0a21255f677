//! `prove oauth-rbac`: tokens validated and rights decided in front of a backend, and what that costs.
//!
//! The scenario repeats what a published benchmark asked of another gateway, so that its figures can stand beside ours.
//! Invariant: a run that could not be made, or a limit that could not be set, is a line that says why.
//! Not here: gateways side by side under the same load (`race`).

mod measure;
mod result;
mod rig;
mod scenario;
mod table;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::host::machine::Machine;
use crate::host::{descriptors, process};
use crate::race::upstream::Upstream;
use result::Outcome;
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

/// Runs the scenario; whether every request of every run had a good answer.
pub(crate) fn oauth_rbac(options: &OauthRbac) -> Result<bool, OauthRbacError> {
    let wanted = Wanted {
        variants: &options.variants,
        limits: &options.limits,
        iterations: options.iterations,
        requests: options.requests,
        connections: options.connections,
    };
    let scenario = Scenario::load(&options.dir, &wanted).map_err(OauthRbacError::Scenario)?;
    let rig =
        |error: io::Error| OauthRbacError::Rig(format!("the rig could not be set up: {error}"));
    let gate = process::gate(options.gate.as_deref()).map_err(OauthRbacError::Rig)?;
    let limit = descriptors::raise();
    process::end_all_on_signal().map_err(rig)?;
    let home = tempfile::Builder::new().prefix("oauth-rbac-").tempdir();
    let home = home.map_err(rig)?;
    let upstream = Upstream::start(home.path()).map_err(OauthRbacError::Rig)?;
    let rig = Rig {
        dir: &options.dir,
        gate: &gate,
        home: home.path(),
        cgroup: options.cgroup.as_deref(),
        scenario: &scenario,
        upstream: &upstream,
    };
    let mut runs = Vec::new();
    for variant in &scenario.variants {
        let limits = scenario.limits.iter().filter(|limit| limit.is_for(variant));
        runs.extend(limits.map(|limit| rig.run(variant, limit)));
    }
    let outcome = Outcome {
        machine: Machine::read(limit),
        gate: version(&gate),
        scenario,
        runs,
    };
    report(options, &outcome)?;
    Ok(outcome.trusted())
}

fn version(gate: &Path) -> String {
    let output = Command::new(gate).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "a gate without a version".into())
}

fn report(options: &OauthRbac, outcome: &Outcome) -> Result<(), OauthRbacError> {
    let bold = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (preface, grids) = (table::preface(outcome), table::grids(outcome));
    let json = outcome.to_json();
    if options.json {
        eprint!(
            "{}",
            table::text(&preface, &grids, bold && io::stderr().is_terminal())
        );
        println!("{json}");
    } else {
        print!(
            "{}",
            table::text(&preface, &grids, bold && io::stdout().is_terminal())
        );
    }
    let page = options.html.clone();
    let page = page.unwrap_or_else(|| options.out.with_extension("html"));
    write(&options.out, &(json + "\n"))?;
    write(&page, &table::page(&preface, &grids))
}

fn write(path: &Path, text: &str) -> Result<(), OauthRbacError> {
    let failed = |source| OauthRbacError::Write {
        path: path.into(),
        source,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)?;
    eprintln!("written: {}", path.display());
    Ok(())
}
