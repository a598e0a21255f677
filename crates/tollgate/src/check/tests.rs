//! What `check` says, and in which order.

use std::path::PathBuf;

use super::{Found, found};
use crate::source::Source;
use crate::world::World;

/// One that warns: others reach it, and a backend is not used.
const WARNS: &str = "\
listen: { data: 0.0.0.0:1975 }
identity: { trust: anyone }
backends: { a: { url: http://127.0.0.1:1/v1 }, b: { url: http://127.0.0.1:1/v1 } }
routes: [ { workload: w, backend: a } ]
";

fn of(config: &str) -> (Found, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let file: PathBuf = dir.path().join("gate.yaml");
    std::fs::write(&file, config).expect("a file");
    let found = found(&Source::Named(file), None, &World);
    (found, dir)
}

/// What a line says, its file left out.
fn says(lines: &[String]) -> Vec<&str> {
    let said = lines.iter().map(|line| line.split("gate.yaml:").last());
    said.map(Option::unwrap_or_default).collect()
}

#[test]
fn a_fault_hides_no_warning() {
    let (good, _dir) = of(WARNS);
    assert!(good.faults.is_empty(), "{good:?}");
    assert_eq!(good.warnings.len(), 2, "{good:?}");
    assert_eq!(good.lines(1000).len(), 2, "{good:?}");

    for fault in [
        "workers: none\n",
        "access_log: \"nowhere/access.jsonl\"\n",
        // Not what a tokenizer is made of.
        "tokenizers: { m: { file: gate.yaml, template: gate.yaml } }\n",
    ] {
        let (bad, _dir) = of(&format!("{WARNS}{fault}"));
        assert!(!bad.faults.is_empty(), "{fault}");
        assert_eq!(says(&bad.warnings), says(&good.warnings), "{fault}");
        let lines = bad.lines(1000);
        let is_warning = |line: &String| line.starts_with("warning: ");
        let first = lines.iter().position(is_warning).expect("a warning");
        assert_eq!(first, bad.faults.len(), "faults first: {lines:?}");
        let last = lines.last().map_or("", String::as_str);
        assert!(last.ends_with(", 2 warnings"), "{lines:?}");
    }
}

#[test]
fn every_line_is_broken_to_the_width_and_says_as_much() {
    let (bad, _dir) = of(&format!("{WARNS}workers: none\nbounds: {{ body: lots }}\n"));
    let (wide, narrow) = (bad.lines(1000), bad.lines(80));
    assert!(
        wide.iter().any(|line| line.chars().count() > 80),
        "{wide:?}"
    );
    for line in narrow.iter().flat_map(|line| line.lines()) {
        // A path has no place to be broken.
        let words = line.trim_start().split(' ').count();
        assert!(line.chars().count() <= 80 || words == 1, "{line:?}");
    }
    let joined = narrow.iter().map(|line| line.replace("\n  ", " "));
    assert_eq!(joined.collect::<Vec<_>>(), wide);
    assert_eq!(
        wide.last().map(String::as_str),
        Some("2 faults, 2 warnings")
    );
}

#[test]
fn what_cannot_be_written_has_the_line_that_names_it() {
    let (bad, _dir) = of(&format!(
        "{WARNS}access_log: nowhere/access.jsonl\nledger:\n  path: nowhere/usage.db\n"
    ));
    let lines = bad.faults.iter().map(|says| {
        let at = says.split_once("gate.yaml:").map(|(_, rest)| rest);
        at.unwrap_or_default()
            .split(": ")
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let lines: Vec<String> = lines.collect();
    assert_eq!(lines, ["7 ledger.path", "5 access_log"], "{bad:?}");
}
