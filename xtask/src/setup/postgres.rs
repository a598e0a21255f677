//! Postgres, the fleet's ledger, which the ledger's tests start for themselves.

use std::path::PathBuf;

use super::debian::install_package;

pub(super) fn install() -> Result<(), String> {
    if find().is_some() {
        return Ok(());
    }
    install_package("postgresql")?;
    find()
        .map(drop)
        .ok_or_else(|| "postgresql was installed but is not in /usr/lib/postgresql".into())
}

/// Debian keeps one folder for each version.
fn find() -> Option<PathBuf> {
    std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .map(|version| version.path().join("bin/initdb"))
        .find(|file| file.is_file())
}
