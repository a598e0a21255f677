//! The page about faults names only tests that exist, and every test of a catalogued fault.
//!
//! Not here: the tests themselves.

use std::collections::BTreeSet;
use std::path::Path;

/// Prefixes of the tests for the rows of the catalogue, and how many rows each has.
const ROWS: [(char, u32); 3] = [('b', 13), ('h', 15), ('c', 4)];

#[test]
fn the_faults_page_names_every_test_and_only_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/faults.md")).expect("the page");
    let mut tests = BTreeSet::new();
    collect(&root.join(".."), &mut tests);
    let named: BTreeSet<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| is_test_name(word))
        .collect();
    let unknown: Vec<_> = named
        .iter()
        .filter(|name| !tests.contains(**name))
        .collect();
    assert!(
        unknown.is_empty(),
        "docs/faults.md names tests that are not there: {unknown:?}"
    );
    for (letter, rows) in ROWS {
        for row in 1..=rows {
            let start = format!("{letter}{row}_");
            assert!(
                named.iter().any(|name| name.starts_with(&start)),
                "{start} has no test on the page"
            );
            let missing: Vec<_> = tests
                .iter()
                .filter(|t| t.starts_with(&start) && !named.contains(t.as_str()))
                .collect();
            assert!(missing.is_empty(), "not on the page: {missing:?}");
        }
    }
}

fn is_test_name(word: &str) -> bool {
    word.matches('_').count() >= 3
        && word
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The names of all tests below this directory.
fn collect(directory: &Path, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, tests);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a file");
            let names = text
                .split("#[test]\n")
                .skip(1)
                .filter_map(|t| t.trim_start().strip_prefix("fn ")?.split('(').next());
            tests.extend(names.map(str::to_owned));
        }
    }
}
