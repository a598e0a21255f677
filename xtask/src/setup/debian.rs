//! Programs from the distribution: nginx, beside which the gate is measured, promtool, which checks metrics, and Chromium,
//! in which people log in.
//!
//! Not here: what is pinned. These are whatever the distribution has.

use std::env;
use std::path::{Path, PathBuf};

use crate::command::apt_install;

/// Installs `package` unless its `program` is there. Gives the program.
pub(super) fn install(program: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(found) = find(program) {
        return Ok(found);
    }
    apt_install(package)?;
    find(program).ok_or_else(|| format!("{package} was installed but {program} is not on the path"))
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
