//! Archives: the programs with what belongs to them, and their symbols.

use std::path::Path;
use std::process::Command;

use super::build::{PROGRAMS, PROVE, symbols as symbols_of};
use super::{Release, arch, copy, succeed};
use crate::cargo::root;

/// What lies in the archive beside the programs, as it lies in the repository.
const BESIDE: &[&str] = &[
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "deploy/grafana",
    "deploy/prometheus",
    "deploy/debian/tollgate.service",
    "docs",
    "examples",
];

/// `tollgate-VERSION-x86_64-linux.tar.gz`: what unpacks gzip is on every system, what unpacks xz is not.
pub(super) fn archive(release: &Release) -> Result<(), String> {
    let name = release.name();
    let dir = release.stage.join(&name);
    release.copy_programs(&dir)?;
    copy(&release.pages.join("man1"), &dir.join("man/man1"))?;
    copy(&release.pages.join("completions"), &dir.join("completions"))?;
    copy(&release.notices, &dir)?;
    for path in BESIDE {
        let to = path.replace("deploy/debian", "deploy/systemd");
        copy(&root().join(path), &dir.join(to))?;
    }
    pack(release, &name, "tar.gz", "gzip -9 -n")
}

/// `prove-VERSION-x86_64-linux.tar.gz`: the proving ground, with its scenarios.
pub(super) fn prove(release: &Release, notices: &Path) -> Result<(), String> {
    let name = format!("{PROVE}-{}-{}-linux", release.version, arch::MACHINE);
    let dir = release.stage.join(&name);
    copy(&release.stage.join(PROVE), &dir.join(PROVE))?;
    copy(notices, &dir)?;
    for path in ["LICENSE", "scenarios"] {
        copy(&root().join(path), &dir.join(path))?;
    }
    pack(release, &name, "tar.gz", "gzip -9 -n")
}

/// `tollgate-VERSION-x86_64-linux-debug.tar.xz`, for a debugger: `gdb -s tollgate.debug tollgate`.
pub(super) fn symbols(release: &Release) -> Result<(), String> {
    let name = format!("{}-debug", release.name());
    let dir = release.stage.join(&name);
    for name in PROGRAMS.into_iter().chain([PROVE]).map(symbols_of) {
        copy(&release.stage.join(&name), &dir.join(&name))?;
    }
    pack(release, &name, "tar.xz", "xz -6 -T1")
}

/// Packs a directory of the stage.
fn pack(release: &Release, name: &str, ending: &str, compressor: &str) -> Result<(), String> {
    let mut tar = tar(release, &release.stage, 0);
    tar.args(["--use-compress-program", compressor, "--file"])
        .arg(release.out.join(format!("{name}.{ending}")))
        .arg(name);
    succeed(&mut tar).map(drop)
}

/// A `tar` that packs from a directory the same bytes each time, as files of `owner`.
pub(super) fn tar(release: &Release, from: &Path, owner: u32) -> Command {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--format=ustar",
        "--numeric-owner",
    ])
    .args(["--mode=u+rwX,go+rX,go-w"])
    .arg(format!("--owner={owner}"))
    .arg(format!("--group={owner}"))
    .arg(format!("--mtime=@{}", release.epoch))
    .arg("--directory")
    .arg(from);
    tar
}
