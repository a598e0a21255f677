//! The Model Context Protocol's own conformance suite and unmodified clients of four official SDKs' kinds, straight at a server and through
//! the gate: a lane of its own, since what it needs comes from three registries.
//!
//! Invariant: suite, server and clients are what `xtask/mcp` pins, and run unchanged; a check that comes out otherwise through the gate
//! than straight fails the lane.
//! Not here: what checks came to (`checks`), the suite as a server (`scenarios`), what is installed (`parts`), what runs meanwhile (`running`).

mod checks;
mod clients;
mod parts;
mod running;
pub(crate) mod scenarios;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use self::checks::{Checks, Difference};
use self::parts::Parts;
use self::running::{Gate, Server};
use crate::command::succeed;
use crate::lane::Lane;
use crate::stages::release_build;

/// What repeats it.
const AGAIN: &str = "cargo xtask conformance mcp";

/// A frozen set of scenarios, and whether the server that it is meant for has sessions.
const SETS: [(&str, bool); 2] = [("2025-11-25", true), ("2026-07-28", false)];

/// What cannot be bridged between a client without sessions and a server with them (docs/mcp.md), by how the ids of checks begin: a server with
/// sessions asks its client on the stream of the call, and answers no `input_required`.
const NOT_BRIDGED: [&str; 2] = ["sep-2322-", "sep-2575-missing-capability-http-400"];

/// What is to be run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    binary: Option<PathBuf>,
}

impl Plan {
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        match words {
            [] => Some(Self::default()),
            [binary] if !binary.starts_with('-') => Some(Self {
                binary: Some(binary.into()),
            }),
            _ => None,
        }
    }
}

/// Installs what is needed, and compares.
pub(crate) fn lane(plan: &Plan) -> ExitCode {
    let mut lane = Lane::new();
    let parts = lane.step("suite, server and clients", AGAIN, Parts::get);
    let binary = match &plan.binary {
        Some(binary) => Some(binary.clone()),
        None => release_build(&mut lane),
    };
    if let (Some(parts), Some(binary)) = (parts, binary) {
        for (set, has_sessions) in SETS {
            let name = format!("requirements {set}, straight and through the gate");
            let straight = lane.step(&name, AGAIN, || same(&parts, &binary, set, has_sessions));
            let Some(straight) = straight else { continue };
            let of = if has_sessions { "without" } else { "with" };
            let name = format!("requirements {set} through the gate, of a server {of} sessions");
            let bridged = || bridged(&parts, &binary, set, !has_sessions, &straight);
            let _told = lane.step(&name, AGAIN, bridged);
        }
        for (set, _) in SETS {
            let name = format!("client scenarios of {set}, straight and through the gate");
            let _told = lane.step(&name, AGAIN, || scenarios::same(&parts, &binary, set));
        }
        let name = "the same of clients with sessions";
        let _told = lane.step(name, AGAIN, || {
            scenarios::same_with_sessions(&parts, &binary)
        });
        let name = "clients of the SDKs of Go, Rust, Python and TypeScript, and the Inspector";
        let _told = lane.step(name, AGAIN, || clients::same(&parts, &binary));
    }
    lane.finish()
}

/// Compares check by check; gives what the server came to by itself.
fn same(parts: &Parts, binary: &Path, set: &str, has_sessions: bool) -> Result<Checks, String> {
    let server = Server::start(parts, has_sessions)?;
    let straight = at_server(parts, set, "straight", &server.url())?;
    let gate = Gate::start(binary, &parts.work, &server.url())?;
    let through = at_server(parts, set, "gate", &gate.url())?;
    println!("straight: {straight}; through the gate: {through}");
    let differences = straight.differences(&through);
    if differences.is_empty() {
        return Ok(straight);
    }
    Err(table(&differences))
}

/// The same scenarios at a server of the other kind, of which nothing may fail through the gate that does not fail straight at either kind,
/// but what cannot be bridged.
fn bridged(
    parts: &Parts,
    binary: &Path,
    set: &str,
    has_sessions: bool,
    meant: &Checks,
) -> Result<(), String> {
    let server = Server::start(parts, has_sessions)?;
    let straight = at_server(parts, set, "other", &server.url())?;
    let gate = Gate::start(binary, &parts.work, &server.url())?;
    let through = at_server(parts, set, "bridged", &gate.url())?;
    println!("straight: {straight}; through the gate: {through}");
    let mut worse = meant.worse_in(&through);
    worse.retain(|difference| {
        let is_unbridged = NOT_BRIDGED.iter().any(|id| difference.id.starts_with(id));
        // A server without sessions cannot ask a client with one: it says so by itself, too.
        !is_unbridged && !straight.fails_like(difference)
    });
    if worse.is_empty() {
        return Ok(());
    }
    Err(table(&worse))
}

/// Runs the scenarios of a set at a server.
fn at_server(parts: &Parts, set: &str, name: &str, url: &str) -> Result<Checks, String> {
    let mut suite = parts.suite();
    suite.args(["server", "--url", url, "--requirements", set]);
    ran(suite, &parts.work.join(format!("{set}-{name}")))
}

/// Runs the suite; what its checks came to.
fn ran(mut suite: Command, results: &Path) -> Result<Checks, String> {
    let cannot = |cause: std::io::Error| format!("{}: {cause}", results.display());
    if results.exists() {
        std::fs::remove_dir_all(results).map_err(cannot)?;
    }
    std::fs::create_dir_all(results).map_err(cannot)?;
    suite.arg("--output-dir").arg(results);
    // It ends with 1 where a scenario fails, whatever was expected of it.
    let said = succeed(&mut suite);
    let checks = Checks::read(results)?;
    if checks.is_empty() {
        let says = said.err().unwrap_or_default();
        let results = results.display();
        return Err(format!("the suite left no results in {results}: {says}"));
    }
    Ok(checks)
}

fn table(differences: &[Difference]) -> String {
    let mut out = "checks that come out otherwise through the gate:\n".to_owned();
    let width = |of: fn(&Difference) -> usize| differences.iter().map(of).max().unwrap_or(0);
    let scenarios = width(|of| of.scenario.len());
    let ids = width(|of| of.id.len());
    let straights = width(|of| of.straight.len());
    for of in differences {
        let _fits = writeln!(
            out,
            "{:scenarios$}  {:ids$}  {:straights$}  {}  {}",
            of.scenario, of.id, of.straight, of.through, of.says
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_named_or_built() {
        assert_eq!(Plan::of(&[]), Some(Plan::default()));
        let plan = Plan::of(&["target/release/tollgate"]).expect("a plan");
        assert_eq!(plan.binary, Some("target/release/tollgate".into()));
        for words in [&["--test"][..], &["a", "b"]] {
            assert_eq!(Plan::of(words), None, "{words:?}");
        }
    }

    #[test]
    fn suite_and_sdks_are_of_the_versions_that_the_page_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file");
        let page = read("../docs/mcp.md");
        for (file, pin, version) in [
            ("mcp/package.json", "conformance\": \"", "0.2.0-alpha.12"),
            ("mcp/go.mod", "go-sdk v", "1.8.0"),
            ("mcp/rust/Cargo.toml", "version = \"=", "3.11.0"),
        ] {
            let pinned = format!("{pin}{version}");
            assert!(read(file).contains(&pinned), "{file}: {pinned}");
            assert!(page.contains(version), "docs/mcp.md: {version}");
        }
        assert!(page.contains(parts::INSPECTOR_VERSION));
        for (file, pin, version) in [
            (
                "mcp/package-lock.json",
                "/sdk\": {\n      \"version\": \"",
                "1.32.2",
            ),
            ("src/parts.rs", "\"mcp==", "2.3.0"),
        ] {
            assert!(
                read(file).contains(&format!("{pin}{version}")),
                "{file}: {version}"
            );
            assert!(page.contains(version), "docs/mcp.md: {version}");
        }
    }
}
