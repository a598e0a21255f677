//! Documents damaged at random: never a panic, and always either a snapshot or a fault.

use std::path::Path;

use testing::{Draw, seed};

use super::examples::example_world;
use crate::parse_document;

const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "\n  ",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "#",
    "&a ",
    "*a",
    "!!str ",
    "|",
    ">",
    "${",
    "${X}",
    "${X:-0}",
    "$",
    "$$",
    "~",
    "true",
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "1m",
    "é",
    "\t",
    "\u{feff}",
    "\0",
    "---\n",
    "...\n",
    "<<: *a",
    "? ",
    "@",
    "`",
    "%YAML 1.2\n",
    "limits: []",
    "model: \"*\"",
];

#[test]
fn damaged_documents_never_panic() {
    let mut draw = Draw::new(seed("damaged_documents_never_panic"));
    let examples: Vec<String> = ["white-paper", "vllm-and-gemini", "failover"]
        .iter()
        .map(|name| format!("{}/../../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR")))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..1000 {
        let mut text: Vec<char> = examples[round % examples.len()].chars().collect();
        for _ in 0..=draw.below(4) {
            let start = draw.below(text.len().max(1));
            let end = (start + draw.below(12)).min(text.len());
            let piece: Vec<char> = PIECES[draw.below(PIECES.len())].chars().collect();
            text.splice(start..end, piece);
        }
        let text: String = text.into_iter().collect();
        let world = example_world(&text);
        match parse_document(
            Path::new("/etc/tollgate/tollgate.yaml"),
            text.as_bytes(),
            &world,
        ) {
            Ok(loaded) => {
                taken += 1;
                assert!(!format!("{loaded:?}").contains("canary"), "{text}");
            }
            Err(faults) => {
                refused += 1;
                assert!(!faults.faults.is_empty(), "refused without a fault: {text}");
                assert!(!faults.to_string().contains("canary"), "{text}");
            }
        }
    }
    assert!(
        taken > 10 && refused > 250,
        "{taken} taken, {refused} refused"
    );
}
