//! Programs that the distribution packages under their own name: nginx, the plain reverse proxy that the
//! gate is measured beside, and valgrind, which counts instructions.

use std::env;
use std::path::{Path, PathBuf};

use super::apt_install;

/// Installs the program unless it is there.
pub(super) fn install(name: &str) -> Result<(), String> {
    if find(name).is_some() {
        return Ok(());
    }
    apt_install(name)?;
    find(name)
        .map(drop)
        .ok_or_else(|| format!("{name} was installed but is not on the path"))
}

/// Looks in the path, and where Debian keeps it, which users' paths often leave out.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    dirs.push(Path::new("/usr/sbin").to_owned());
    dirs.into_iter()
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}
