//! `docs/troubleshooting.md` has an anchor for each code that the gate answers with, and for each line of its log that tells of
//! what lasts; and whatever names an anchor of that page names one that is there.
//!
//! Codes are read where they are written: in the functions that give them, and in the tables of `docs/operations.md`.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::Tree;
use crate::markdown::{Page, slug};

pub(super) const PAGE: &str = "docs/troubleshooting.md";
const OPERATIONS: &str = "docs/operations.md";
const CONDITIONS: &str = "crates/tollgate/src/conditions.rs";

/// Where codes stand: a file, and how what holds them begins.
const CODES: [(&str, &str); 5] = [
    ("crates/policy/src/refusal/classes.rs", "fn class("),
    ("crates/policy/src/failure.rs", "fn code("),
    ("crates/wire/src/head/fault.rs", "kinds! {"),
    ("crates/wire/src/call/fault.rs", "fn code("),
    ("crates/identity/src/login/fault.rs", "fn code("),
];

/// OpenAI's types of errors, which stand beside codes.
const TYPES: [&str; 6] = [
    "authentication_error",
    "invalid_request_error",
    "permission_error",
    "rate_limit_error",
    "server_error",
    "upstream_error",
];

/// What has to have an entry, as its anchor, with the file that has it.
#[derive(Default)]
struct Wanted {
    entries: BTreeSet<(String, String)>,
    faults: Vec<Fault>,
}

impl Wanted {
    /// Takes what was found in a file. Nothing is a fault: what was looked for stands elsewhere by now.
    fn take(&mut self, path: &str, what: &str, found: BTreeSet<String>) {
        if found.is_empty() {
            let says = format!("holds no {what}: change xtask/src/tidy/troubleshooting.rs");
            self.faults.push(Fault::new(path, says));
        }
        let entries = found.into_iter().map(|anchor| (path.to_owned(), anchor));
        self.entries.extend(entries);
    }
}

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let Some(page) = tree.get(PAGE) else {
        return vec![Fault::new(PAGE, "is not there")];
    };
    let anchors: BTreeSet<String> = Page::of(&page.text).anchors().into_iter().collect();
    let mut wanted = Wanted::default();
    codes(tree, &mut wanted);
    lines(tree, &mut wanted);
    let entries = wanted.entries.into_iter();
    let missing = entries.filter(|(_, anchor)| !anchors.contains(anchor));
    let mut faults = wanted.faults;
    faults.extend(
        missing.map(|(place, anchor)| Fault::new(place, format!("{PAGE} has no entry #{anchor}"))),
    );
    let named = format!("{PAGE}#");
    for file in tree.rust().filter(|file| !file.path.starts_with("xtask/")) {
        for rest in file.text.split(named.as_str()).skip(1) {
            let anchor = leading(rest, |c| {
                c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
            });
            if !anchor.is_empty() && !anchors.contains(anchor) {
                faults.push(Fault::new(
                    &file.path,
                    format!("names {PAGE}#{anchor}, which is not there"),
                ));
            }
        }
    }
    faults
}

/// Each code.
fn codes(tree: &Tree, wanted: &mut Wanted) {
    for (path, begins) in CODES {
        let body = text(tree, path).split_once(begins);
        let body = body.map_or("", |(_, body)| body);
        let body = body.split("\n    }\n").next().unwrap_or(body);
        let literals = body.split('"').skip(1).step_by(2);
        let codes = literals.filter(|word| is_code(word) && !TYPES.contains(word));
        let codes = codes.map(str::to_owned).collect();
        wanted.take(path, &format!("code after `{begins}`"), codes);
    }
    let rows = text(tree, OPERATIONS).lines().filter(|line| {
        line.strip_prefix("| ")
            .is_some_and(|cells| cells.starts_with(['4', '5']))
    });
    let mut codes = BTreeSet::new();
    for row in rows {
        // Status and code stand in one cell or in two; codes of the last cell are of others.
        let cells: Vec<&str> = row.split('|').collect();
        let cells = cells
            .get(1..cells.len().saturating_sub(2))
            .unwrap_or_default();
        let words = cells.iter().flat_map(|cell| quoted(cell));
        codes.extend(words.filter(|word| is_code(word)).map(str::to_owned));
    }
    wanted.take(OPERATIONS, "row of a status and its code", codes);
}

/// The anchor of each line of the log.
fn lines(tree: &Tree, wanted: &mut Wanted) {
    let begins = text(tree, CONDITIONS).split("warning(").skip(1);
    let begins = begins.filter_map(|rest| rest.trim_start().strip_prefix('"'));
    let begins = begins.filter_map(|rest| rest.split('"').next());
    wanted.take(
        CONDITIONS,
        "line after `warning(`",
        begins.map(anchor).collect(),
    );
    let table = text(tree, OPERATIONS).split_once("| line | level |");
    let rows = table.map_or("", |(_, table)| table).trim_start().lines();
    let rows = rows.take_while(|line| !line.is_empty());
    let told = rows.filter_map(|row| row.split('|').nth(1));
    let told = told.flat_map(quoted).filter(|line| line.contains(' '));
    wanted.take(
        OPERATIONS,
        "row below `| line | level |`",
        told.map(anchor).collect(),
    );
}

fn text<'t>(tree: &'t Tree, path: &str) -> &'t str {
    tree.get(path).map_or("", |file| file.text.as_str())
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn is_code(word: &str) -> bool {
    word.len() > 5 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The anchor of a line: what it says before it goes into detail.
fn anchor(line: &str) -> String {
    slug(line.split(':').next().unwrap_or(line))
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
