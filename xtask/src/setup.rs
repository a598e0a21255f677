//! Installs what the end-to-end tests need: Python and Node with the OpenAI SDKs, and programs of the
//! distribution: nginx, promtool, valgrind, Postgres.
//!
//! Invariant: all but programs of the distribution goes under `target/e2e`, pinned by `parts`; a second run
//! only looks.
//! Nothing is skipped in silence: what cannot be installed is an error that says what to do.

mod debian;
mod node;
mod postgres;
mod python;
mod stamp;

use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{metadata, target_dir};

/// Where the installed parts are.
pub(crate) struct Installed {
    pub(crate) python: PathBuf,
    pub(crate) node: PathBuf,
    pub(crate) node_modules: PathBuf,
}

pub(crate) fn run() -> Result<Installed, String> {
    let dir = target_dir(&metadata()?)?.join("e2e");
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let python = python::install(&dir)?;
    let (node, node_modules) = node::install(&dir, &python)?;
    debian::install("nginx", "nginx")?;
    debian::install("promtool", "prometheus")?;
    valgrind()?;
    postgres::install()?;
    Ok(Installed {
        python,
        node,
        node_modules,
    })
}

/// What counts instructions.
pub(crate) fn valgrind() -> Result<(), String> {
    debian::install("valgrind", "valgrind")
}

/// Runs a command to its end; its output is shown only when it fails.
fn run_quietly(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|cause| format!("{command:?} did not start: {cause}"))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{command:?} failed ({})\n{said}\n{}",
        output.status,
        complained.trim()
    ))
}

/// Installs a Debian package where that is permitted.
fn apt_install(package: &str) -> Result<(), String> {
    println!("installing {package}");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install =
        || run_quietly(apt().args(["install", "-y", "-qq", "--no-install-recommends", package]));
    // The lists of a fresh machine are empty or old: fetch them only when they do not do.
    install()
        .or_else(|_| run_quietly(apt().args(["update", "-qq"])).and_then(|_| install()))
        .map(drop)
        .map_err(|says| format!("{says}\nInstall it yourself: sudo apt-get install {package}"))
}
