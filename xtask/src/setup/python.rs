//! A virtual environment with the OpenAI SDK for Python and a Node of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::{apt_install, run_quietly};
use super::stamp::Stamp;
use crate::parts::PYTHON_PACKAGES;

/// Gives the Python of the environment.
pub(super) fn install(dir: &Path) -> Result<PathBuf, String> {
    let venv = dir.join("venv");
    let python = venv.join("bin").join("python");
    let stamp = Stamp::new(&venv, PYTHON_PACKAGES);
    if stamp.is_there() && imports_openai(&python).is_ok() {
        return Ok(python);
    }
    println!("installing {}", PYTHON_PACKAGES.join(" "));
    make_venv(&venv)?;
    run_quietly(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ])
            .args(PYTHON_PACKAGES),
    )
    .map_err(|says| {
        format!(
            "{says}\nThe end-to-end tests need these Python packages; is a package index reachable?"
        )
    })?;
    run_quietly(Command::new(&python).args(["-m", "pip", "check"]))?;
    imports_openai(&python)?;
    stamp.put()?;
    Ok(python)
}

fn make_venv(venv: &Path) -> Result<(), String> {
    if venv.exists() {
        fs::remove_dir_all(venv).map_err(|cause| format!("{}: {cause}", venv.display()))?;
    }
    let make = || run_quietly(Command::new("python3").args(["-m", "venv"]).arg(venv));
    make()
        .or_else(|_| apt_install("python3-venv").and_then(|()| make()))
        .map(drop)
}

fn imports_openai(python: &Path) -> Result<String, String> {
    run_quietly(Command::new(python).args(["-c", "import openai"]))
}
