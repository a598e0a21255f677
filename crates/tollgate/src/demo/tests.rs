//! The configuration that the demo prints and the one that it runs.

use std::io;
use std::path::Path;

use clap::Parser;
use config::Sources;

use super::document::printed;
use super::screen::{End, open_calls};
use crate::cli::{Cli, Demo, Verb};

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

fn options(words: &[&str]) -> Demo {
    let words = ["tollgate", "demo"].iter().chain(words);
    let Verb::Demo(demo) = Cli::try_parse_from(words).expect("is understood").verb else {
        panic!("is another verb");
    };
    demo
}

fn taken(text: &str, sources: &dyn Sources) -> config::Loaded {
    config::parse_document(Path::new("demo.yaml"), text.as_bytes(), sources)
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
        let loaded = taken(&printed(&options(words)), &Nothing);
        assert_eq!(loaded.warnings, [], "{words:?}");
        assert_eq!(loaded.snapshot.workloads.len(), 3);
    }
}

#[test]
fn what_is_printed_is_good_as_well_once_its_comments_are_taken_up() {
    let text = printed(&options(&[]));
    let taken_up = text.replace("# credential: ", "credential: ");
    assert_eq!(taken_up.matches("    credential: ").count(), 2, "{text}");
    let taken_up = taken_up.replace("file: secrets/", "inline: ");
    taken(&taken_up, &Nothing);
}

#[test]
fn a_drain_says_ctrl_c_again_only_where_a_signal_ended_the_demo() {
    let said = |open, end| open_calls(open, end).unwrap_or_default();
    assert_eq!(
        said(2, End::Signal),
        "Draining: 2 calls open. Ctrl-C again cuts them off."
    );
    assert_eq!(
        said(1, End::Itself),
        "Draining: 1 call open. Ctrl-C cuts it off."
    );
    assert_eq!(said(0, End::Signal), "");
}
