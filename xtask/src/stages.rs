//! The lanes and their order: what `check`, `test` and their parts run.
//!
//! Invariant: one call of cargo builds whatever they need, for the whole workspace and with the profile `tests`, so that features
//! are unified once and nothing is compiled twice; what a lane has built, the next one finds. `portable` and `kubernetes` are
//! lanes apart.
//! The end-to-end tests run the gate that this build makes: it is optimised as `release` is.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::binaries::{Binary, Built, TIMING, cores, of_lanes};
use crate::cargo::{build_release, cargo, metadata, release_binary, target_dir};
use crate::instructions::{self, Build};
use crate::lane::Lane;
use crate::setup::{self, Installed};
use crate::strain::{Strain, Strained};
use crate::tidy;

/// Which tests are run, and how.
#[derive(Default, Clone, Copy)]
struct Run<'a> {
    /// Part of their names.
    filter: Option<&'a str>,
    strained: Option<&'a Strained>,
}

impl<'a> Run<'a> {
    fn of(filter: Option<&'a str>) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    fn prepare(self, test: &mut Command) {
        test.args(self.filter);
        if let Some(strained) = self.strained {
            strained.prepare(test);
        }
    }
}

/// The test binaries that need the installed parts and the gate.
const END_TO_END: &str = "e2e";
/// Their tests at once, for each core: they wait for processes and for time.
const AT_ONCE: usize = 3;

pub(crate) fn check() -> ExitCode {
    let mut lane = Lane::new();
    let built = sources(&mut lane);
    unit_tests(&mut lane, built.tests, Run::default());
    documentation(&mut lane);
    lane.finish()
}

pub(crate) fn test() -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", "cargo xtask setup", setup::run);
    let built = sources(&mut lane);
    let gate = built.gate();
    let (end_to_end, unit) = parted(built.tests);
    unit_tests(&mut lane, unit, Run::default());
    documentation(&mut lane);
    count_instructions(&mut lane, gate.as_deref(), Build::Tests, false, "");
    end_to_end_tests(&mut lane, installed, gate, end_to_end, Run::default());
    lane.finish()
}

/// The unit tests whose names contain this.
pub(crate) fn unit(filter: Option<&str>) -> ExitCode {
    let mut lane = Lane::new();
    let built = everything(&mut lane);
    unit_tests(&mut lane, built.tests, Run::of(filter));
    lane.finish()
}

/// Likewise the end-to-end tests.
pub(crate) fn e2e(filter: Option<&str>) -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", "cargo xtask setup", setup::run);
    let built = everything(&mut lane);
    let gate = built.gate();
    end_to_end_tests(&mut lane, installed, gate, built.tests, Run::of(filter));
    lane.finish()
}

/// The tests that measure time, one after another with nothing beside them.
pub(crate) fn timing() -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", "cargo xtask setup", setup::run);
    let built = everything(&mut lane);
    let gate = built.gate();
    if let (Some(installed), Some(gate)) = (installed, gate) {
        lane.binaries(
            "tests of time",
            "cargo xtask timing",
            1,
            built.tests,
            1,
            |test| {
                parts_of(test, &installed, &gate);
                test.args(["--ignored", TIMING, "--nocapture", "--test-threads=1"]);
            },
        );
    }
    lane.finish()
}

/// The unit tests with seeds that nobody chose.
pub(crate) fn random(filter: Option<&str>) -> ExitCode {
    let mut lane = Lane::new();
    let built = everything(&mut lane);
    let (_, unit) = parted(built.tests);
    let name = "unit tests with fresh seeds";
    lane.binaries(name, "cargo xtask unit", 1, unit, cores(), |test| {
        test.args(filter).env("TOLLGATE_SEED", "fresh");
    });
    lane.finish()
}

/// All tests, so many times, on a machine that does something else as well.
pub(crate) fn strained(strain: Strain, times: u32) -> ExitCode {
    let mut lane = Lane::new();
    let installed = lane.step("setup", "cargo xtask setup", setup::run);
    let built = everything(&mut lane);
    let gate = built.gate();
    let (end_to_end, unit) = parted(built.tests);
    let began = lane.step(strain.name(), "cargo xtask strained", || strain.begin());
    let Some(strained) = &began else {
        return lane.finish();
    };
    let run = Run {
        strained: Some(strained),
        ..Run::default()
    };
    for _ in 0..times {
        unit_tests(&mut lane, unit.clone(), run);
        let (installed, gate) = (installed.clone(), gate.clone());
        end_to_end_tests(&mut lane, installed, gate, end_to_end.clone(), run);
    }
    lane.finish()
}

/// Counts instructions of these builds, or writes the counts anew.
pub(crate) fn instructions(builds: &[Build], write: bool, filter: &str) -> ExitCode {
    let mut lane = Lane::new();
    lane.step("setup", "cargo xtask setup", setup::valgrind);
    for build in builds {
        let gate = match build {
            Build::Tests => everything(&mut lane).gate(),
            Build::Dist => dist_build(&mut lane),
        };
        count_instructions(&mut lane, gate.as_deref(), *build, write, filter);
    }
    lane.finish()
}

/// Counts a binary that is there already, such as one of an older commit, beside the counts of a build.
pub(crate) fn instructions_of(binary: &Path, build: Build, filter: &str) -> ExitCode {
    let mut lane = Lane::new();
    lane.step("setup", "cargo xtask setup", setup::valgrind);
    count_instructions(&mut lane, Some(binary), build, false, filter);
    lane.finish()
}

fn dist_build(lane: &mut Lane) -> Option<PathBuf> {
    let build = cargo(&["build", "--profile", Build::Dist.name(), "-p", "tollgate"]);
    let dir = target_dir(&metadata().ok()?).ok()?;
    let built = lane.command("`dist` build", build);
    built.then(|| dir.join(Build::Dist.name()).join("tollgate"))
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

/// The release binary, once it is built, with the demo beside it.
pub(crate) fn release_build(lane: &mut Lane) -> Option<PathBuf> {
    let built = lane.command("release build", build_release(&["tollgate", "demo"]));
    built.then(release_binary)?.ok()
}

/// What is seen without running anything, and the build.
fn sources(lane: &mut Lane) -> Built {
    lane.command("formatting", cargo(&["fmt", "--all", "--check"]));
    lane.step("tidy", "cargo xtask tidy", tidy::run_and_print);
    everything(lane)
}

fn everything(lane: &mut Lane) -> Built {
    let everything = of_lanes(&["test", "--workspace", "--all-targets"]);
    lane.build("lints and builds", everything)
}

/// Those of the end-to-end stage, and all others.
fn parted(tests: Vec<Binary>) -> (Vec<Binary>, Vec<Binary>) {
    tests
        .into_iter()
        .partition(|binary| binary.name == END_TO_END)
}

fn unit_tests(lane: &mut Lane, tests: Vec<Binary>, run: Run<'_>) {
    let (_, unit) = parted(tests);
    let each = |test: &mut Command| run.prepare(test);
    lane.binaries(
        "unit tests and vectors",
        "cargo xtask unit",
        1,
        unit,
        cores(),
        each,
    );
}

fn documentation(lane: &mut Lane) {
    let examples = of_lanes(&["test", "--workspace", "--doc"]);
    lane.tests("examples in the documentation", 0, examples);
}

fn count_instructions(
    lane: &mut Lane,
    binary: Option<&Path>,
    build: Build,
    write: bool,
    filter: &str,
) {
    let name = "instruction counts";
    let Some(binary) = binary else {
        return lane.cannot_run(name, "the gate was not built");
    };
    let again = format!("cargo xtask instructions {}", build.name());
    lane.step(name, &again, || {
        instructions::run(binary, build, write, filter)
    });
}

fn end_to_end_tests(
    lane: &mut Lane,
    installed: Option<Installed>,
    gate: Option<PathBuf>,
    tests: Vec<Binary>,
    run: Run<'_>,
) {
    let name = "end to end";
    let (tests, _) = parted(tests);
    match (installed, gate) {
        (Some(installed), Some(gate)) => {
            // Those of `prove` measure gates, and bear none of the others beside them.
            lane.binaries(name, "cargo xtask e2e", 1, tests, 1, |test| {
                if std::env::var_os("RUST_TEST_THREADS").is_none() {
                    test.env("RUST_TEST_THREADS", (AT_ONCE * cores()).to_string());
                }
                parts_of(test, &installed, &gate);
                run.prepare(test);
            });
        }
        (Some(_), None) => lane.cannot_run(name, "the gate was not built"),
        (None, _) => lane.cannot_run(name, "setup failed"),
    }
}

/// Where tests find the gate and what is installed.
fn parts_of(test: &mut Command, installed: &Installed, gate: &Path) {
    test.env("TOLLGATE_BIN", gate)
        .env("TOLLGATE_E2E_PYTHON", &installed.python)
        .env("TOLLGATE_E2E_NODE", &installed.node)
        .env("TOLLGATE_E2E_NODE_MODULES", &installed.node_modules)
        .env("TOLLGATE_E2E_CHROMIUM", &installed.chromium);
}
