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
    ("crates/policy/src/refusal.rs", "fn class("),
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

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let Some(page) = tree.get(PAGE) else {
        return Vec::new();
    };
    let anchors: BTreeSet<String> = Page::of(&page.text).anchors().into_iter().collect();
    let wanted = codes(tree).into_iter().chain(lines(tree));
    let mut faults: Vec<Fault> = wanted
        .filter(|(_, anchor)| !anchors.contains(anchor))
        .map(|(place, anchor)| Fault::new(place, format!("{PAGE} has no entry #{anchor}")))
        .collect();
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

/// Each code, with the file that has it.
fn codes(tree: &Tree) -> BTreeSet<(String, String)> {
    let mut codes = BTreeSet::new();
    for (path, begins) in CODES {
        let text = tree.get(path).map_or("", |file| file.text.as_str());
        let body = text.split_once(begins).map_or("", |(_, body)| body);
        let body = body.split("\n    }\n").next().unwrap_or(body);
        for literal in body.split('"').skip(1).step_by(2) {
            if is_code(literal) && !TYPES.contains(&literal) {
                codes.insert((path.to_owned(), literal.to_owned()));
            }
        }
    }
    let operations = tree.get(OPERATIONS).map_or("", |file| file.text.as_str());
    let rows = operations.lines().filter(|line| {
        line.strip_prefix("| ")
            .is_some_and(|cells| cells.starts_with(['4', '5']))
    });
    for row in rows {
        // Status and code stand in one cell or in two; codes of the last cell are of others.
        let cells: Vec<&str> = row.split('|').collect();
        let cells = cells
            .get(1..cells.len().saturating_sub(2))
            .unwrap_or_default();
        for word in cells
            .iter()
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        {
            if is_code(word) {
                codes.insert((OPERATIONS.to_owned(), word.to_owned()));
            }
        }
    }
    codes
}

fn is_code(word: &str) -> bool {
    word.len() > 5 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The anchor of each line of the log, with the file that has the line.
fn lines(tree: &Tree) -> BTreeSet<(String, String)> {
    let conditions = tree.get(CONDITIONS).map_or("", |file| file.text.as_str());
    let begins = conditions.split("warning(").skip(1);
    let begins = begins.filter_map(|rest| rest.trim_start().strip_prefix('"'));
    let begins = begins.filter_map(|rest| rest.split('"').next());
    let operations = tree.get(OPERATIONS).map_or("", |file| file.text.as_str());
    let table = operations
        .split_once("| line | level |")
        .map_or("", |(_, table)| table);
    let rows = table
        .trim_start()
        .lines()
        .take_while(|line| !line.is_empty());
    let told = rows.filter_map(|row| row.split('|').nth(1));
    let told = told.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let told = told.filter(|line| line.contains(' '));
    let from = |path: &'static str| move |line: &str| (path.to_owned(), anchor(line));
    begins
        .map(from(CONDITIONS))
        .chain(told.map(from(OPERATIONS)))
        .collect()
}

/// The anchor of a line: what it says before it goes into detail.
fn anchor(line: &str) -> String {
    slug(line.split(':').next().unwrap_or(line))
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
