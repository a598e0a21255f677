//! nginx, the plain reverse proxy that the gate is measured beside.

use std::env;
use std::path::{Path, PathBuf};

use super::apt_install;

pub(super) fn install() -> Result<(), String> {
    if find().is_some() {
        return Ok(());
    }
    apt_install("nginx")?;
    find()
        .map(drop)
        .ok_or_else(|| "nginx was installed but is not on the path".into())
}

/// Looks in the path, and where Debian keeps it, which users' paths often leave out.
fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    dirs.push(Path::new("/usr/sbin").to_owned());
    dirs.into_iter()
        .map(|dir| dir.join("nginx"))
        .find(|file| file.is_file())
}
