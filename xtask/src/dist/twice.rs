//! Whether two builds give the same bytes: the source is copied into another directory and packaged there once more, with a
//! compiler's cache of its own, and every file of both is compared.
//!
//! Invariant: the first difference is named: the file, and the place in it.
//! Not here: another machine. Both builds have this one's compilers, zig and Debian packages.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, build, files, image, make_dir};
use crate::cargo::root;
use crate::command::run_shown;
use crate::git;

/// What is compared, in this order: the sooner a difference shows, the nearer it is to its cause.
const COMPARED: &[&str] = &["packages-stage", "packages"];

/// Packages again in `target/again`, and compares. `target` is where the first build is.
pub(super) fn compare(release: &Release, target: &Path) -> Result<(), String> {
    let again = target.join("again");
    drop(std::fs::remove_dir_all(&again));
    println!("packaging once more, in {}", again.display());
    copy_sources(&again)?;
    let mut dist = Command::new("cargo");
    dist.args(["xtask", "dist", "--untried"])
        .current_dir(&again)
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .env(image::REVISION, image::revision()?)
        .env(build::TOOLS, build::tools_dir(target))
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_TARGET_DIR");
    run_shown(&mut dist)?;
    let mut same = 0;
    for dir in COMPARED {
        same += same_files(&target.join(dir), &again.join("target").join(dir))?;
    }
    println!("twice the same: {same} files, bytes and all");
    std::fs::remove_dir_all(&again).map_err(|cause| format!("{}: {cause}", again.display()))
}

/// All that git tracks, or would.
fn copy_sources(to: &Path) -> Result<(), String> {
    make_dir(to)?;
    for path in git::files(&root())? {
        let from = root().join(&path);
        if from.is_file() {
            super::copy(&from, &to.join(&path))?;
        }
    }
    Ok(())
}

/// How many files two directories have in common, or the first in which they differ.
fn same_files(left: &Path, right: &Path) -> Result<usize, String> {
    let (names, others) = (tree(left)?, tree(right)?);
    if let Some(only) = names.iter().find(|name| !others.contains(name)) {
        return Err(format!("twice: {} is in the first alone", only.display()));
    }
    if let Some(only) = others.iter().find(|name| !names.contains(name)) {
        return Err(format!("twice: {} is in the second alone", only.display()));
    }
    for name in &names {
        if let Some(at) = difference(&left.join(name), &right.join(name))? {
            return Err(format!(
                "twice: {} differs at byte {at}: cmp -l {} {}",
                name.display(),
                left.join(name).display(),
                right.join(name).display()
            ));
        }
    }
    Ok(names.len())
}

/// Files below a directory, by their paths in it, sorted. Symbolic links are left out; the archives that hold them are compared.
fn tree(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for name in files(&dir.join(&below))? {
            let path = below.join(name);
            let whole = dir.join(&path);
            if whole.is_symlink() {
                continue;
            }
            if whole.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The first byte in which two files differ, counted from 1 as `cmp` does.
fn difference(left: &Path, right: &Path) -> Result<Option<u64>, String> {
    let bytes = |path: &Path| {
        let file = File::open(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
        Ok::<_, String>(BufReader::new(file).bytes())
    };
    let (mut one, mut other) = (bytes(left)?, bytes(right)?);
    for at in 1.. {
        match (one.next(), other.next()) {
            (None, None) => break,
            (Some(Ok(a)), Some(Ok(b))) if a == b => {}
            _ => return Ok(Some(at)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
