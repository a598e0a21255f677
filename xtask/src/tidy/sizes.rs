//! How long files and functions are, and a ratchet against growth from the bottom.
//!
//! Invariant: only the distribution can fail. One file that is long with cause never does.

use std::fmt;

use super::Fault;
use super::tree::{File, Tree};

/// Nine in ten files are no longer than this. The median is printed and never fails: a limit on it led to files split only to be
/// short.
const FILE_LINES_P90_MAX: usize = 500;
/// Half of the functions, and nine in ten, are no longer than this.
const FUNCTION_LINES_MEDIAN_MAX: usize = 12;
const FUNCTION_LINES_P90_MAX: usize = 40;

pub(super) struct Sizes {
    files: Distribution,
    functions: Distribution,
}

#[derive(Default)]
struct Distribution {
    count: usize,
    median: usize,
    p90: usize,
    longest: usize,
    longest_place: String,
}

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let sizes = Sizes::of(tree);
    let (files, functions) = (&sizes.files, &sizes.functions);
    let checks = [
        ("files", files, "p90", files.p90, FILE_LINES_P90_MAX),
        (
            "functions",
            functions,
            "the median",
            functions.median,
            FUNCTION_LINES_MEDIAN_MAX,
        ),
        (
            "functions",
            functions,
            "p90",
            functions.p90,
            FUNCTION_LINES_P90_MAX,
        ),
    ];
    let is_over = |(_, _, _, found, most): &(_, _, _, usize, usize)| found > most;
    let over = checks.into_iter().filter(is_over);
    over.map(|(what, sizes, at, _, most)| {
        Fault::new(what, format!("{sizes}; at most {most} at {at}"))
    })
    .collect()
}

impl Sizes {
    /// Of the sources; tests may be as long as what they test.
    pub(super) fn of(tree: &Tree) -> Self {
        let sources: Vec<&File> = tree
            .rust()
            .filter(|file| !file.path.contains("tests"))
            .collect();
        let file_lines = sources
            .iter()
            .map(|file| (file.text.lines().count(), file.path.clone()));
        let functions = sources.iter().flat_map(|file| functions(file));
        Self {
            files: Distribution::of(file_lines),
            functions: Distribution::of(functions),
        }
    }
}

impl Distribution {
    fn of(sizes: impl Iterator<Item = (usize, String)>) -> Self {
        let mut sizes: Vec<(usize, String)> = sizes.collect();
        sizes.sort();
        let at = |share: usize| {
            sizes
                .get(sizes.len() * share / 100)
                .map_or(0, |(lines, _)| *lines)
        };
        let (longest, longest_place) = sizes.last().cloned().unwrap_or_default();
        Self {
            count: sizes.len(),
            median: at(50),
            p90: at(90),
            longest,
            longest_place,
        }
    }
}

/// Lines and place of each function, found by indentation: the sources are formatted.
fn functions(file: &File) -> Vec<(usize, String)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let rest = lines.get(start..).unwrap_or_default();
        let is_end = |line: &&str| **line == closing || line.ends_with(';') && is_at(line, indent);
        if line.ends_with('}') {
            found.push((1, format!("{name} in {}", file.path)));
        } else if let Some(length) = rest.iter().position(is_end)
            && rest.get(length).is_some_and(|line| **line == closing)
        {
            found.push((length + 1, format!("{name} in {}", file.path)));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_signature = before.split_whitespace().all(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
    });
    let name = after
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    (is_signature && !name.is_empty()).then_some(name)
}

fn is_at(line: &str, indent: &str) -> bool {
    line.strip_prefix(indent)
        .is_some_and(|rest| !rest.starts_with(' '))
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "files:     {}", self.files)?;
        write!(f, "functions: {}", self.functions)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            median,
            p90,
            longest,
            longest_place,
        } = self;
        write!(
            f,
            "{count}, lines: {median} median, {p90} p90, {longest} longest ({longest_place})"
        )
    }
}
