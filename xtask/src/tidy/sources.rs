//! Rules for the text itself: module docs, names that say something, nothing unfinished, no silenced
//! lint, no path of one machine.
//!
//! The patterns are spelled in two halves, so that this file keeps its own rules.

use super::Fault;
use super::tree::{File, Tree};

/// In Rust sources.
const NOT_IN_RUST: &[(&str, &str)] = &[
    (concat!("todo", "!("), "is unfinished"),
    (concat!("unimplemented", "!("), "is unfinished"),
    (
        concat!("#[al", "low("),
        "silences a lint: use #[expect(…, reason = \"…\")]",
    ),
    (
        concat!("#![al", "low("),
        "silences a lint: use #![expect(…, reason = \"…\")]",
    ),
    (
        concat!("ln!(\"sk", "ipped"),
        "counts as passed: a test that cannot run calls `testing::skip`",
    ),
    (
        concat!("ln!(\"SK", "IPPED"),
        "counts as passed: a test that cannot run calls `testing::skip`",
    ),
];

/// In any text.
const NOWHERE: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "is unfinished"),
    (concat!("<<<<", "<<< "), "is an unresolved merge"),
];

/// Names of modules that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "common", "core", "helper", "helpers", "manager", "misc", "types", "util", "utils",
];

/// Directories that exist on one machine and not on the next.
const MACHINE_DIRS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/t", "mp/"),
];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    tree.files.iter().flat_map(file_faults).collect()
}

fn file_faults(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_rust = file.path.ends_with(".rs");
    if is_rust && !file.text.starts_with("//!") {
        faults.push(Fault::new(&file.path, "does not open with //!"));
    }
    let names = file
        .path
        .strip_suffix(".rs")
        .into_iter()
        .flat_map(|path| path.split('/'));
    for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
        faults.push(Fault::new(
            &file.path,
            format!("{name} says nothing about what is inside"),
        ));
    }
    for (index, line) in file.text.lines().enumerate() {
        let mut fault = |says: String| {
            faults.push(Fault::new(format!("{}:{}", file.path, index + 1), says));
        };
        let rust_rules = NOT_IN_RUST.iter().filter(|_| is_rust);
        for (pattern, says) in rust_rules.chain(NOWHERE) {
            if line.contains(pattern) {
                fault(format!("{pattern} {says}"));
            }
        }
        if let Some(dir) = MACHINE_DIRS.iter().find(|dir| names_dir(line, dir)) {
            fault(format!("{dir} is a directory of one machine"));
        }
    }
    faults
}

/// Whether `line` holds `dir` as an absolute path, not as the tail of a longer one or of an address.
fn names_dir(line: &str, dir: &str) -> bool {
    line.match_indices(dir).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "._-})>*/~".contains(c))
    })
}
