//! The lanes and their order: what `check`, `test` and `e2e` run.
//!
//! Invariant: every cargo call of these three selects the whole workspace (or the release binary), so that
//! features are unified once and nothing is compiled twice in a profile. `portable` and `kubernetes` are lanes apart: they select
//! the packages that they test.
//! The end-to-end tests run in the dev profile against the release binary that users run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::binaries::{Binary, cores, linting};
use crate::cargo::{build_release, cargo, release_binary};
use crate::instructions;
use crate::lane::Lane;
use crate::setup::{self, Installed};
use crate::tidy;

/// The one test binary that needs the installed parts and the release binary.
const END_TO_END: &str = "e2e";
/// Its tests at once, for each core: they wait for processes and for time.
const AT_ONCE: usize = 3;
/// The test binary that measures real time, of the simulated engine: it runs with nothing beside it.
const REAL_TIME: &str = "http";

pub(crate) fn check() -> ExitCode {
    let mut lane = Lane::new();
    drop(check_stages(&mut lane));
    lane.finish()
}

pub(crate) fn test() -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", setup::run);
    let tests = check_stages(&mut lane);
    let binary = release_build(&mut lane);
    count_instructions(&mut lane, binary.as_deref(), false);
    end_to_end_stage(&mut lane, installed, binary, tests, None);
    lane.finish()
}

pub(crate) fn e2e(filter: Option<&str>) -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", setup::run);
    let binary = release_build(&mut lane);
    let tests = lane.build(
        "tests",
        cargo(&["test", "--workspace", "--test", END_TO_END]),
    );
    end_to_end_stage(&mut lane, installed, binary, tests, filter);
    lane.finish()
}

pub(crate) fn instructions(write: bool) -> ExitCode {
    let mut lane = Lane::new();
    lane.step("setup", setup::valgrind);
    let binary = release_build(&mut lane);
    count_instructions(&mut lane, binary.as_deref(), write);
    lane.finish()
}

/// The gate with the feature that builds Linux as any other Unix, which is not to be unified with what the other lanes build.
pub(crate) fn portable() -> ExitCode {
    let mut lane = Lane::new();
    let feature = ["--features", "portable"];
    let mut clippy = cargo(&["clippy", "-p", "tollgate", "--all-targets"]);
    clippy.args(feature).args(["--", "-D", "warnings"]);
    lane.command("clippy", clippy);
    let mut tests = cargo(&["test", "-p", "proxy", "--no-fail-fast"]);
    tests.args(feature);
    lane.tests("the data plane's tests", 1, tests);
    lane.finish()
}

/// Counts a binary that is there already, such as one of another profile or of an older commit.
pub(crate) fn instructions_of(binary: &Path) -> ExitCode {
    let mut lane = Lane::new();
    lane.step("setup", setup::valgrind);
    count_instructions(&mut lane, Some(binary), false);
    lane.finish()
}

/// The quick stages. Gives the end-to-end tests, which they build and do not run.
fn check_stages(lane: &mut Lane) -> Vec<Binary> {
    lane.command("formatting", cargo(&["fmt", "--all", "--check"]));
    lane.step("tidy", tidy::run_and_print);
    let everything = cargo(&["test", "--workspace", "--all-targets"]);
    let built = lane.build("lints and builds", everything);
    let (end_to_end, others): (Vec<Binary>, Vec<Binary>) = built
        .into_iter()
        .partition(|binary| binary.name == END_TO_END);
    let (real_time, unit) = others
        .into_iter()
        .partition(|binary| binary.name == REAL_TIME);
    lane.binaries("unit tests and vectors", 1, unit, cores(), |_| {});
    lane.binaries("tests of real time", 1, real_time, 1, |_| {});
    lane.tests(
        "examples in the documentation",
        0,
        linting(cargo(&["test", "--workspace", "--doc"])),
    );
    end_to_end
}

/// The release binary, once it is built.
pub(crate) fn release_build(lane: &mut Lane) -> Option<PathBuf> {
    let built = lane.command("release build", build_release(&["tollgate"]));
    built.then(release_binary)?.ok()
}

fn count_instructions(lane: &mut Lane, binary: Option<&Path>, write: bool) {
    let name = "instruction counts";
    match binary {
        Some(binary) => drop(lane.step(name, || instructions::run(binary, write))),
        None => lane.cannot_run(name, "the release build failed"),
    }
}

fn end_to_end_stage(
    lane: &mut Lane,
    installed: Option<Installed>,
    binary: Option<PathBuf>,
    tests: Vec<Binary>,
    filter: Option<&str>,
) {
    match (installed, binary) {
        (Some(installed), Some(binary)) => {
            // Those of `prove` measure gates, and bear none of the others beside them.
            lane.binaries("end to end", 1, tests, 1, |test| {
                end_to_end(test, &installed, &binary, filter);
            });
        }
        (Some(_), None) => lane.cannot_run("end to end", "the release build failed"),
        (None, _) => lane.cannot_run("end to end", "setup failed"),
    }
}

fn end_to_end(test: &mut Command, installed: &Installed, binary: &Path, filter: Option<&str>) {
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        test.env("RUST_TEST_THREADS", (AT_ONCE * cores()).to_string());
    }
    test.args(filter)
        .env("TOLLGATE_BIN", binary)
        .env("TOLLGATE_E2E_PYTHON", &installed.python)
        .env("TOLLGATE_E2E_NODE", &installed.node)
        .env("TOLLGATE_E2E_NODE_MODULES", &installed.node_modules)
        .env("TOLLGATE_E2E_CHROMIUM", &installed.chromium);
}
