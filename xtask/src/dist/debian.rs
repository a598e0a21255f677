//! Debian packages whose files stand in the image: fetched by apt, taken apart, never installed.
//!
//! Which version is whatever the mirror has, since it keeps no older one: each is recorded, with its hash, in the image's list.
//! Not here: the package that we make (`deb`), which of the files are taken (`image`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{files, make_dir, sha256, succeed};
use crate::parts::DIST_DEBIAN;
use crate::setup::debian::with_lists;

/// A package as it was fetched.
pub(super) struct Taken {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) architecture: String,
    pub(super) sha256: String,
    pub(super) file: PathBuf,
}

/// Fetches packages into a directory.
pub(super) fn fetch(names: &[&str], dir: &Path) -> Result<Vec<Taken>, String> {
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !system.contains(&format!("VERSION_CODENAME={DIST_DEBIAN}\n")) {
        return Err(format!(
            "the image has files of Debian {DIST_DEBIAN}, which apt fetches: make packages on that system, or in a container of it"
        ));
    }
    make_dir(dir)?;
    with_lists(|| {
        let mut apt = Command::new("apt-get");
        succeed(apt.args(["-qq", "download"]).args(names).current_dir(dir))
    })?;
    files(dir)?
        .iter()
        .map(|name| taken(dir.join(name)))
        .collect()
}

fn taken(file: PathBuf) -> Result<Taken, String> {
    let field = |name: &str| {
        let mut dpkg = Command::new("dpkg-deb");
        let said = succeed(dpkg.arg("-f").arg(&file).arg(name))?;
        Ok::<_, String>(said.trim().to_owned())
    };
    Ok(Taken {
        name: field("Package")?,
        version: field("Version")?,
        architecture: field("Architecture")?,
        sha256: sha256(&file)?,
        file,
    })
}

impl Taken {
    /// Unpacks it, below a directory.
    pub(super) fn unpack(&self, to: &Path) -> Result<(), String> {
        make_dir(to)?;
        let mut dpkg = Command::new("dpkg-deb");
        succeed(dpkg.arg("-x").arg(&self.file).arg(to)).map(drop)
    }

    /// What it says of itself, by which scanners know it.
    pub(super) fn control(&self) -> Result<String, String> {
        succeed(Command::new("dpkg-deb").arg("-f").arg(&self.file))
    }
}
