//! `docs/faults.md` names only tests that there are, and every test of a row of its catalogue.
//!
//! Tests of a row are called by it: those of row B1 begin with `b1_`.
//! Not here: the tests themselves; rows that other tests show, whose names say no row.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::{File, Tree};

const PAGE: &str = "docs/faults.md";
/// Whose tests it names.
const CRATES: &str = "crates/";

/// Letters of the rows that call their tests by their own name, and how many rows each has.
const ROWS: [(char, u32); 3] = [('b', 13), ('h', 15), ('c', 4)];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let Some(page) = tree.get(PAGE) else {
        return vec![Fault::new(PAGE, "is not there")];
    };
    let files = tree.rust().filter(|file| file.path.starts_with(CRATES));
    let tests: BTreeSet<&str> = files.flat_map(tests).collect();
    let named = page.text.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = named.filter(|word| is_test_name(word)).collect();
    let unknown = named.difference(&tests);
    let mut faults: Vec<String> = unknown
        .map(|name| format!("names the test {name}, which is not there"))
        .collect();
    for (letter, rows) in ROWS {
        for row in 1..=rows {
            let begin = format!("{letter}{row}_");
            if !named.iter().any(|name| name.starts_with(&begin)) {
                faults.push(format!("names no test {begin}…"));
            }
            let of_row = tests.iter().filter(|test| test.starts_with(&begin));
            let missing = of_row.filter(|test| !named.contains(*test));
            faults.extend(missing.map(|test| format!("does not name the test {test}")));
        }
    }
    let faults = faults.into_iter();
    faults.map(|says| Fault::new(PAGE, says)).collect()
}

pub(super) fn is_test_name(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    word.matches('_').count() >= 3 && word.bytes().all(is_part)
}

/// The names of a file's tests: functions below their attribute, whatever others they have.
pub(super) fn tests(file: &File) -> impl Iterator<Item = &str> {
    let lines = file.text.lines().map(str::trim_start);
    let mut is_test = false;
    lines.filter_map(move |line| {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ").filter(|_| is_test)?;
        is_test = false;
        name.split('(').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(page: &str, tests: &str) -> Tree {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        Tree {
            files: vec![
                file(PAGE, page),
                file("crates/a/tests/b.rs", tests),
                file("proving/a/tests.rs", "#[test]\nfn of_another_tree() {}\n"),
            ],
        }
    }

    /// A test for each row, on a page and in a file.
    fn rows() -> (String, String) {
        let rows = |(letter, rows)| (1..=rows).map(move |row| format!("{letter}{row}_a_row_of_it"));
        let names: Vec<String> = ROWS.into_iter().flat_map(rows).collect();
        let page = names.iter().map(|name| format!("`{name}` "));
        let tests = names
            .iter()
            .map(|name| format!("#[test]\nfn {name}() {{}}\n"));
        (page.collect(), tests.collect())
    }

    #[test]
    fn canary_a_page_and_tests_that_differ_are_found() {
        let (page, tests) = rows();
        let found = |page: &str, tests: &str| {
            let faults = faults(&tree(page, tests));
            let says: Vec<String> = faults.into_iter().map(|fault| fault.says).collect();
            says.join(", ")
        };
        assert_eq!(found(&page, &tests), "");
        let renamed = tests.replace("b3_a_row_of_it", "a_row_of_it_is_b3");
        assert_eq!(
            found(&page, &renamed),
            "names the test b3_a_row_of_it, which is not there"
        );
        let gone = page.replace("`c4_a_row_of_it`", "");
        assert_eq!(
            found(&gone, &tests),
            "names no test c4_…, does not name the test c4_a_row_of_it"
        );
        let other = format!("{page} `of_another_tree` `no_test`");
        assert_eq!(found(&other, &tests), "");
        let other = format!("{page} `of_another_tree_here`");
        assert!(found(&other, &tests).contains("of_another_tree_here"));
        let more = format!(
            "{tests}#[test]\n#[ignore]\n/// A.\nfn timing_how_long_it_takes() {{}}\n\
             #[tokio::test(a = true)]\nasync fn h1_another_test_of_it() {{}}\nfn h2_which_is_no_test() {{}}\n"
        );
        let page = format!("{page} `timing_how_long_it_takes`");
        assert_eq!(
            found(&page, &more),
            "does not name the test h1_another_test_of_it"
        );
        let none = Tree { files: Vec::new() };
        assert_eq!(super::faults(&none), [Fault::new(PAGE, "is not there")]);
    }
}
