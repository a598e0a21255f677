//! How many lines each crate has, and a bound for all together.
//!
//! Invariant: the tree may shrink as it likes. It grows beyond the last total that was written down by [`RISE`] at most: for more,
//! `xtask/lines.txt` gets a line with the new total and the reason, in the same commit.
//! Not here: how long a file or a function is (`sizes`).

use std::collections::BTreeMap;
use std::fmt;

use super::Fault;
use super::tree::{File, Tree};

/// The totals that were agreed on, the newest last, each with its reason.
const TOTALS: &str = "xtask/lines.txt";
/// How many percent more there may be.
const RISE: usize = 2;

/// Lines, with comments and blank ones.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    code: usize,
    /// Tests, benchmarks, fuzz targets and simulations of tests.
    tests: usize,
}

/// By crate.
#[derive(Default)]
pub(super) struct Table(BTreeMap<String, Lines>);

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let total = Table::of(tree).total();
    let fault = match agreed(tree) {
        Ok(agreed) if total.code * 100 <= agreed * (100 + RISE) => None,
        Ok(agreed) => Some(format!(
            "{} lines of code, {RISE} % more than {agreed} at least: add a line `{} why`, or cut",
            total.code, total.code
        )),
        Err(why) => Some(why),
    };
    fault
        .map(|says| Fault::new(TOTALS, says))
        .into_iter()
        .collect()
}

/// The last total that was agreed on.
fn agreed(tree: &Tree) -> Result<usize, String> {
    let file = tree.get(TOTALS).ok_or("is not there")?;
    let mut lines = file.text.lines().filter(|line| !line.starts_with('#'));
    let last = lines.next_back().unwrap_or_default();
    let read = last.split_once(' ').and_then(|(total, reason)| {
        let has_reason = !reason.trim().is_empty();
        total.parse().ok().filter(|_| has_reason)
    });
    read.ok_or_else(|| format!("`{last}` is not a total and a reason"))
}

impl Table {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut all = Self::default();
        for file in tree
            .rust()
            .filter(|file| !file.path.starts_with("vendored/"))
        {
            let lines = all.0.entry(crate_of(&file.path)).or_default();
            let count = file.text.lines().count();
            if is_test(file) {
                lines.tests += count;
            } else {
                lines.code += count;
            }
        }
        all
    }

    fn total(&self) -> Lines {
        self.0.values().fold(Lines::default(), |all, one| Lines {
            code: all.code + one.code,
            tests: all.tests + one.tests,
        })
    }
}

fn crate_of(path: &str) -> String {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    match (first, parts.next()) {
        ("crates" | "proving", Some(name)) => format!("{first}/{name}"),
        _ => first.to_owned(),
    }
}

fn is_test(file: &File) -> bool {
    let mut parts: Vec<&str> = file.path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let is_apart = |dir: &&str| matches!(*dir, "tests" | "sim" | "benches" | "fuzz" | "testing");
    matches!(name, "tests.rs" | "sim.rs") || parts.iter().any(is_apart)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<22}{:>8}{:>8}", "lines", "code", "tests")?;
        for (name, lines) in &self.0 {
            writeln!(f, "{name:<22}{:>8}{:>8}", lines.code, lines.tests)?;
        }
        let total = self.total();
        write!(f, "{:<22}{:>8}{:>8}", "all", total.code, total.tests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(totals: &str, lines: usize) -> Tree {
        let file = |path: &str, text: String| File {
            path: path.to_owned(),
            text,
        };
        Tree {
            files: vec![
                file(TOTALS, totals.to_owned()),
                file("crates/a/src/lib.rs", "//\n".repeat(lines)),
                file("crates/a/src/b/tests.rs", "//\n".repeat(500)),
                file("vendored/c/src/lib.rs", "//\n".repeat(500)),
            ],
        }
    }

    #[test]
    fn canary_a_tree_that_grows_without_a_reason_is_found() {
        let count = |totals: &str, lines| faults(&tree(totals, lines)).len();
        let totals = "# what it is\n500 the first\n1000 a second room\n";
        assert_eq!(count(totals, 1020), 0);
        assert_eq!(count(totals, 1021), 1);
        assert_eq!(count(totals, 10), 0, "it may shrink");
        assert_eq!(count(&format!("{totals}1021 a third\n"), 1021), 0);
        assert_eq!(count(&format!("{totals}2000\n"), 1021), 1, "no reason");
        assert_eq!(count("# nothing\n", 10), 1);
    }

    #[test]
    fn tests_are_counted_apart_and_what_is_anothers_is_not_counted() {
        let table = Table::of(&tree("", 7));
        assert_eq!(
            table.total(),
            Lines {
                code: 7,
                tests: 500
            }
        );
        assert_eq!(crate_of("proving/load/src/lib.rs"), "proving/load");
        assert_eq!(crate_of("xtask/src/main.rs"), "xtask");
    }
}
