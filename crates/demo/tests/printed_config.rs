//! The configuration that the demo prints, by its program.

use std::io;
use std::path::Path;
use std::process::Command;

use config::Sources;

/// Nothing that a document could refer to.
struct Nothing;

impl Sources for Nothing {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

fn printed(words: &[&str]) -> String {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tollgate-demo"));
    let demo = demo.args(["demo", "--print-config"]).args(words).output();
    let demo = demo.expect("the demo runs");
    assert!(demo.status.success(), "{demo:?}");
    String::from_utf8(demo.stdout).expect("a document is text")
}

fn taken(text: &str) -> config::Loaded {
    config::parse_document(Path::new("demo.yaml"), text.as_bytes(), &Nothing)
        .unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

#[test]
fn what_is_printed_is_good_as_it_stands() {
    let log = ["--access-log", "requests"];
    let odd = [
        "--access-log",
        "/var/log/$a \"b\"/c.jsonl",
        "--listen",
        "[::1]:1975",
    ];
    for words in [&[][..], &log, &odd] {
        let loaded = taken(&printed(words));
        assert_eq!(loaded.warnings, [], "{words:?}");
        assert_eq!(loaded.snapshot.workloads.len(), 3);
    }
}

#[test]
fn what_is_printed_is_good_as_well_once_its_comments_are_taken_up() {
    let text = printed(&[]);
    let taken_up = text.replace("# credential: ", "credential: ");
    assert_eq!(taken_up.matches("    credential: ").count(), 2, "{text}");
    taken(&taken_up.replace("file: secrets/", "inline: "));
}
