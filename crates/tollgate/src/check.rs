//! `tollgate check`: every fault and every warning of a configuration at once.
//!
//! Invariant: a fault hides no warning; faults come first.
//! Not here: what is a fault (`config`, `needs`), the width of lines (`width`).

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use config::{EditorServers, Fault, Faults, Loaded, Located, Sources};
use counting::TokenizerCache;
use ledger::report::wrapped;
use policy::revision::Revision;
use proxy::quota;

use crate::book::placed;
use crate::located::{located, with_lines};
use crate::output::{complain, told};
use crate::running::{load_with, made};
use crate::services::Moment;
use crate::source::Source;
use crate::words::counted;
use crate::world::World;
use crate::{cli, needs, width};

/// What was found, a line each.
#[derive(Debug, Default)]
struct Found {
    faults: Vec<String>,
    warnings: Vec<String>,
    /// What a good configuration comes to.
    holds: String,
}

/// Checks and reports; 1 when there are faults.
pub(crate) fn check(options: &cli::Check) -> ExitCode {
    let source = Source::of(options.config.as_deref());
    if options.config.is_none() && io::stderr().is_terminal() {
        complain(&wrapped(&source.to_string(), width::of(io::stderr()), 2));
    }
    let found = match options.tools.servers() {
        Ok(servers) => found(&source, servers.as_ref(), &World),
        Err(fault) => Found {
            faults: vec![fault],
            ..Found::default()
        },
    };
    for line in found.lines(width::of(io::stderr())) {
        complain(&line);
    }
    if !found.faults.is_empty() {
        return ExitCode::FAILURE;
    }
    let good = format!("{}: good ({})", source.name().display(), found.holds);
    told(&wrapped(&good, width::of(io::stdout()), 2))
}

fn found(source: &Source, servers: Option<&EditorServers>, sources: &dyn Sources) -> Found {
    match load_with(source.file(), servers, sources) {
        Ok(loaded) => of_loaded(loaded, source, sources),
        Err(Faults {
            faults, warnings, ..
        }) => Found {
            faults: shown(&faults, source.name()),
            warnings: shown(&warnings, source.name()),
            holds: String::new(),
        },
    }
}

/// Of a document without faults: what it needs of the machine.
fn of_loaded(loaded: Loaded, source: &Source, sources: &dyn Sources) -> Found {
    let name = source.name();
    let mut unmet = needs::faults(&loaded.host, None);
    with_lines(source.file(), &mut unmet, sources);
    let mut found = Found {
        faults: shown(&unmet, name),
        warnings: shown(&loaded.warnings, name),
        holds: format!(
            "{}, {}, {}",
            counted(loaded.snapshot.workloads.len(), "workload"),
            counted(loaded.snapshot.routes.len(), "route"),
            counted(loaded.snapshot.backends.len(), "backend"),
        ),
    };
    if let Some(says) = too_many_workers(loaded.host.workers, quota::find().workers) {
        found.warnings.push(of_file(source, says, sources));
    }
    for command in &loaded.host.tool_commands {
        if !is_found(&command.program.command, sources) {
            let says = format!(
                "mcp.servers.{}.command: no program {:?} is here; clients find the server silent",
                command.server, command.program.command
            );
            found.warnings.push(of_file(source, says, sources));
        }
    }
    let cache = TokenizerCache::default();
    if let Err(fault) = made(loaded, &cache, Revision::first, sources, Moment::Check) {
        found.faults.push(of_file(source, fault, sources));
    }
    found
}

/// Whether a program is there, by its path or on `PATH`.
fn is_found(command: &str, sources: &dyn Sources) -> bool {
    if command.contains('/') {
        return sources.mode(Path::new(command)).is_ok();
    }
    let path = sources.var("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| sources.mode(&directory.join(command)).is_ok())
}

/// With the file, and its line where its place has one.
fn of_file(source: &Source, says: String, sources: &dyn Sources) -> String {
    let name = source.name().display();
    located(source, says, sources).unwrap_or_else(|says| format!("{name}: {says}"))
}

/// What is to be said of more workers than can run at once here: they only stand in each other's way.
fn too_many_workers(workers: Option<usize>, fit: usize) -> Option<String> {
    let workers = workers.filter(|workers| *workers > fit)?;
    Some(format!(
        "workers: {workers} are more than the {fit} that the CPU quota lets run at once, and are stopped again and again; \
         leave it out, and as many as fit are started"
    ))
}

fn shown(faults: &[Fault], file: &Path) -> Vec<String> {
    let faults = faults.iter();
    faults
        .map(|fault| placed(&Located { file, fault }.to_string()).into_owned())
        .collect()
}

impl Found {
    /// The report, broken to a width: faults, warnings, and how many where there are faults.
    fn lines(&self, width: usize) -> Vec<String> {
        let faults = self.faults.iter().cloned();
        let warnings = self.warnings.iter().map(|says| format!("warning: {says}"));
        let mut lines: Vec<String> = faults
            .chain(warnings)
            .map(|line| wrapped(&line, width, 2))
            .collect();
        if !self.faults.is_empty() {
            let counts = [("fault", &self.faults), ("warning", &self.warnings)];
            let counts = counts.into_iter().filter(|(_, of)| !of.is_empty());
            let counts: Vec<String> = counts.map(|(word, of)| counted(of.len(), word)).collect();
            lines.push(counts.join(", "));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
