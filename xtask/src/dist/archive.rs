//! Archives: the binary with what belongs to it, and its symbols.

use std::path::Path;
use std::process::Command;

use super::{Release, copy, succeed};
use crate::cargo::root;

/// What lies in the archive beside the binary, as it lies in the repository.
const BESIDE: &[&str] = &[
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "deploy/grafana",
    "deploy/prometheus",
    "deploy/debian/tollgate.service",
    "examples",
];

/// `tollgate-VERSION-x86_64-linux.tar.xz`.
pub(super) fn archive(release: &Release) -> Result<(), String> {
    let name = release.name();
    let dir = release.stage.join(&name);
    copy(&release.binary, &dir.join("tollgate"))?;
    copy(&release.pages.join("man1"), &dir.join("man/man1"))?;
    copy(&release.pages.join("completions"), &dir.join("completions"))?;
    copy(&release.notices, &dir)?;
    for path in BESIDE {
        let to = path.replace("deploy/debian", "deploy/systemd");
        copy(&root().join(path), &dir.join(to))?;
    }
    tar(release, &name, &name)
}

/// `tollgate-VERSION-x86_64-linux-debug.tar.xz`, for a debugger: `gdb -s tollgate.debug tollgate`.
pub(super) fn symbols(release: &Release) -> Result<(), String> {
    let name = format!("{}-debug", release.name());
    let dir = release.stage.join(&name);
    copy(&release.symbols, &dir.join("tollgate.debug"))?;
    tar(release, &name, &name)
}

/// Packs a directory of the stage, the same bytes each time.
fn tar(release: &Release, dir: &str, name: &str) -> Result<(), String> {
    let file = release.out.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--format=ustar",
        "--owner=0",
        "--group=0",
    ])
    .args(["--numeric-owner", "--mode=u+rwX,go+rX,go-w"])
    .arg(format!("--mtime=@{}", release.epoch))
    .args(["--use-compress-program", "xz -6 -T1", "--file"])
    .arg(&file)
    .arg("--directory")
    .arg(Path::new(&release.stage))
    .arg(dir);
    succeed(&mut tar).map(drop)
}
