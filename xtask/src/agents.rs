//! The real Claude Code and Codex in front of the gate: a lane of its own, since the two are 650 MB of programs that are not ours.
//!
//! Invariant: they are of the versions and hashes that `xtask/agents/package-lock.json` pins; no script of theirs runs at the
//! installation, and they have a home of their own and no key.
//! Not here: what they are asked, and what is held against it (`agents_at_work` of the end-to-end tests).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{cargo, metadata, target_dir};
use crate::command::run_quietly;
use crate::lane::Lane;
use crate::stages::release_build;

const PACKAGES: &str = include_str!("../agents/package.json");
const LOCK: &str = include_str!("../agents/package-lock.json");
/// The tests of the lane, and how many they are.
const TESTS: &str = "agents_at_work";
const TESTS_LEAST: u64 = 4;

/// Installs the two and runs the tests against a release build, or against this binary.
pub(crate) fn lane(binary: Option<&Path>) -> ExitCode {
    let mut lane = Lane::new();
    let agents = lane.step("Claude Code and Codex", "cargo xtask agents", install);
    let binary = match binary {
        Some(binary) => Some(binary.to_owned()),
        None => release_build(&mut lane),
    };
    let name = "in front of the gate";
    match (agents, binary) {
        (Some(agents), Some(binary)) => lane.tests(name, TESTS_LEAST, tests(&agents, &binary)),
        (None, _) => lane.cannot_run(name, "the agents could not be installed"),
        (_, None) => lane.cannot_run(name, "the release build failed"),
    }
    lane.finish()
}

/// Installs them where they are not there; gives where they are.
fn install() -> Result<PathBuf, String> {
    let dir = target_dir(&metadata()?)?.join("agents");
    let told = |cause| format!("{}: {cause}", dir.display());
    let modules = dir.join("node_modules");
    let is_there = fs::read_to_string(dir.join("package-lock.json")).is_ok_and(|it| it == LOCK);
    if is_there && modules.is_dir() {
        return Ok(modules);
    }
    fs::create_dir_all(&dir).map_err(told)?;
    fs::write(dir.join("package.json"), PACKAGES).map_err(told)?;
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.arg("--prefix").arg(&dir);
    let lock = dir.join("package-lock.json");
    fs::write(&lock, LOCK).map_err(told)?;
    let installed = run_quietly(&mut npm);
    if installed.is_err() {
        // What is there is not whole.
        let _gone = fs::remove_file(&lock);
    }
    installed.map(|_| modules).map_err(|says| {
        format!("{says}\nThe lane needs npm, and a registry that has the two packages of xtask/agents/package.json")
    })
}

fn tests(agents: &Path, binary: &Path) -> Command {
    let mut command = cargo(&["test", "-p", "tollgate", "--test", "e2e", "--", TESTS]);
    command.env("TOLLGATE_BIN", binary);
    command.env("TOLLGATE_E2E_AGENTS", agents);
    command
}
