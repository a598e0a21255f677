//! Inputs that a fuzzer found, run once more.
//!
//! Not here: the invariants (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

use std::path::{Path, PathBuf};

/// The committed inputs of a target, in the order of their names.
///
/// # Panics
///
/// Where they cannot be read.
#[must_use]
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let read = |path| std::fs::read(path).expect("a readable file");
    paths(target).into_iter().map(read).collect()
}

/// Runs `check` on every committed input of the target, of which there are at least so many.
///
/// # Panics
///
/// Where they cannot be read or have become fewer, and where `check` does.
#[track_caller]
pub fn replay(target: &str, at_least: usize, check: fn(&[u8])) {
    let paths = paths(target);
    assert!(
        paths.len() >= at_least,
        "{target} has lost entries: {}",
        paths.len()
    );
    for path in paths {
        println!("{}", path.display());
        check(&std::fs::read(path).expect("a readable file"));
    }
}

fn paths(target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let entries =
        std::fs::read_dir(&dir).unwrap_or_else(|cause| panic!("{}: {cause}", dir.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}
