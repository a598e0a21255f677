//! A virtual environment with the OpenAI SDK for Python and a Node of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::stamp::Stamp;
use super::venv;
use crate::command::run_quietly;
use crate::parts::PYTHON_PACKAGES;

/// Gives the Python of the environment.
pub(super) fn install(dir: &Path) -> Result<PathBuf, String> {
    let dir = dir.join("venv");
    let python = dir.join("bin").join("python");
    let stamp = Stamp::new(&dir, PYTHON_PACKAGES);
    if stamp.is_there() && imports_openai(&python).is_ok() {
        return Ok(python);
    }
    println!("installing {}", PYTHON_PACKAGES.join(" "));
    venv::make(&dir)?;
    run_quietly(venv::pip_install(&python).args(PYTHON_PACKAGES)).map_err(|says| {
        format!(
            "{says}\nThe end-to-end tests need these Python packages; is a package index reachable?"
        )
    })?;
    run_quietly(Command::new(&python).args(["-m", "pip", "check"]))?;
    imports_openai(&python)?;
    stamp.put()?;
    Ok(python)
}

fn imports_openai(python: &Path) -> Result<String, String> {
    run_quietly(Command::new(python).args(["-c", "import openai"]))
}
