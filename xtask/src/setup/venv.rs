//! Virtual environments of Python, for tools that its registry has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian::install_package;
use crate::command::run_quietly;

/// Makes one in the place of what is there, and gives its Python.
pub(crate) fn make(dir: &Path) -> Result<PathBuf, String> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    }
    let make = || run_quietly(Command::new("python3").args(["-m", "venv"]).arg(dir));
    make().or_else(|_| install_package("python3-venv").and_then(|()| make()))?;
    Ok(dir.join("bin").join("python"))
}

/// Makes one, and installs wheels into it that a text names as pip reads requirements, each with its hash: pip refuses what has
/// another, and what has none. Gives its Python.
pub(crate) fn of_wheels(dir: &Path, wheels: &str) -> Result<PathBuf, String> {
    let python = make(dir)?;
    let wanted = dir.join("wanted.txt");
    fs::write(&wanted, wheels).map_err(|cause| format!("{}: {cause}", wanted.display()))?;
    let mut pip = pip_install(&python);
    pip.args(["--only-binary=:all:", "--require-hashes", "-r"]);
    run_quietly(pip.arg(&wanted))?;
    Ok(python)
}

/// What installs into it what is named, and nothing else.
pub(crate) fn pip_install(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        // What is imported is compiled then; most of it never is.
        "--no-compile",
    ]);
    pip
}
