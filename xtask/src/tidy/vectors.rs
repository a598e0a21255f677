//! Every directory of golden cases is read by some test, and every generated page has a test that keeps it fresh.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::{File, Tree};

/// Pages that a test writes under `UPDATE=1` and compares otherwise.
const GENERATED: &[&str] = &["docs/config.schema.json"];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for dir in vector_dirs(tree) {
        if !is_named(tree, &dir) {
            faults.push(Fault::new(dir, "no test names this directory of vectors"));
        }
    }
    for page in GENERATED {
        if tree.get(page).is_none() {
            faults.push(Fault::new(*page, "is not there"));
        } else if !is_named(tree, page) {
            faults.push(Fault::new(*page, "no test keeps this page fresh"));
        }
    }
    faults
}

/// `vectors/<feature>` of every case.
fn vector_dirs(tree: &Tree) -> BTreeSet<String> {
    let cases = tree
        .files
        .iter()
        .filter_map(|file| file.path.strip_prefix("vectors/"));
    let features = cases
        .filter_map(|case| case.split_once('/'))
        .map(|(feature, _)| feature);
    features
        .map(|feature| format!("vectors/{feature}"))
        .collect()
}

fn is_named(tree: &Tree, place: &str) -> bool {
    let is_ours = |file: &&File| file.path.starts_with("xtask/");
    tree.rust()
        .filter(|file| !is_ours(file))
        .any(|file| file.text.contains(place))
}
