//! Programs from the distribution: nginx, beside which the gate is measured, promtool, which checks metrics, and Chromium,
//! in which people log in.
//!
//! Not here: what is pinned. These are whatever the distribution has.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::run_quietly;

/// Installs `package` unless its `program` is there. Gives the program.
pub(super) fn install(program: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(found) = find(program) {
        return Ok(found);
    }
    install_package(package)?;
    find(program).ok_or_else(|| format!("{package} was installed but {program} is not on the path"))
}

/// Installs a package where that is permitted.
pub(super) fn install_package(package: &str) -> Result<(), String> {
    println!("installing {package}");
    let words = ["install", "-y", "-qq", "--no-install-recommends", package];
    let installed = with_lists(|| run_quietly(apt().args(words)));
    installed
        .map(drop)
        .map_err(|says| format!("{says}\nInstall it yourself: sudo apt-get install {package}"))
}

/// Does what reads apt's lists. Those of a fresh machine are empty or old: they are fetched only if the first try fails.
pub(crate) fn with_lists<T>(read: impl Fn() -> Result<T, String>) -> Result<T, String> {
    read().or_else(|_| {
        run_quietly(apt().args(["update", "-qq"]))?;
        read()
    })
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

/// Looks in the path, and where Debian keeps servers, which users' paths often leave out.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    dirs.push(Path::new("/usr/sbin").to_owned());
    dirs.into_iter()
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}
