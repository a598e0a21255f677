//! A fuzz target that cannot be built is found without building it: `fuzz/` is outside the workspace, and its checks are
//! compiled by the tests that replay its corpora, so that what may go missing is a line of its manifest.
//!
//! Invariant: each target is a binary of the manifest, has its check, a corpus and a row of the README, and every crate
//! that is used there is one of the manifest's dependencies.
//! Not here: whether the checks compile (the tests that replay the corpora), what they find (`cargo xtask fuzz`).

use std::collections::BTreeSet;

use super::Fault;
use super::tree::{File, Tree};
use crate::markdown::resolved;

const TARGETS: &str = "fuzz/fuzz_targets/";
/// Paths that begin so are of no dependency.
const OWN: [&str; 6] = ["alloc", "core", "crate", "self", "std", "super"];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let targets = tree
        .files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix(TARGETS)?.strip_suffix(".rs")?)));
    let text = |path: &str| tree.get(path).map_or("", |file| file.text.as_str());
    let (manifest, readme) = (text("fuzz/Cargo.toml"), text("fuzz/README.md"));
    let known = dependencies(manifest);
    let mut faults = Vec::new();
    if targets.clone().next().is_none() {
        faults.push(Fault::new(TARGETS, "holds no target"));
    }
    for (file, name) in targets {
        let mut fault = |says: String| faults.push(Fault::new(&file.path, says));
        if !manifest.contains(&format!("\nname = \"{name}\"\n")) {
            fault("is no [[bin]] of fuzz/Cargo.toml".to_owned());
        }
        if !readme.contains(&format!("| `{name}` |")) {
            fault("has no row in fuzz/README.md".to_owned());
        }
        let corpus = format!("fuzz/corpus/{name}/");
        if !tree.files.iter().any(|file| file.path.starts_with(&corpus)) {
            fault(format!("has no seeds in {corpus}"));
        }
        for used in used(tree, file) {
            if !known.contains(used.as_str()) {
                fault(format!("uses {used}, which fuzz/Cargo.toml does not name"));
            }
        }
    }
    faults
}

/// Names under `[dependencies]`, as Rust has them.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let section = manifest
        .split("\n[")
        .find_map(|s| s.strip_prefix("dependencies]"));
    let lines = section.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.split_once('='));
    names
        .map(|(name, _)| name.trim().replace('-', "_"))
        .collect()
}

/// Crates that a target and the files which it takes by their path use.
fn used(tree: &Tree, target: &File) -> BTreeSet<String> {
    let mut found = BTreeSet::from(["libfuzzer_sys".to_owned()]);
    let (mut seen, mut next) = (BTreeSet::new(), vec![target.path.clone()]);
    while let Some(path) = next.pop() {
        let Some(file) = tree.get(&path).filter(|_| seen.insert(path.clone())) else {
            continue;
        };
        for line in file.text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("use ") {
                let end = rest.find([':', ';', ' ']).unwrap_or(rest.len());
                found.extend(rest.get(..end).map(str::to_owned));
            }
            let taken = line
                .strip_prefix("#[path = \"")
                .and_then(|rest| rest.strip_suffix("\"]"));
            next.extend(taken.map(|to| resolved(&path, to)));
        }
    }
    found.retain(|name| !OWN.contains(&name.as_str()));
    found
}
