//! Every fenced block of a page says what is done with it, in words that are known: commands are run or say why not,
//! TOML names its reader, JSON is JSON.
//!
//! Not here: running them (`book::blocks`), reading them (tests of `config` and `prove`).

use super::Fault;
use super::tree::Tree;
use crate::markdown::words::Words;
use crate::markdown::{Block, Page};

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for block in Page::of(&file.text).blocks() {
            if let Err(says) = look(&block) {
                faults.push(Fault::new(format!("{}:{}", file.path, block.line), says));
            }
        }
    }
    faults
}

fn look(block: &Block<'_>) -> Result<(), String> {
    Words::of(block)?;
    let mut words = block.info.split_whitespace();
    match words.next() {
        Some("toml") if !words.any(|word| word.starts_with("of=")) => Err(
            "`toml` has to name its reader: of=suite, of=gates, … (proving/prove/src/pages.rs)"
                .to_owned(),
        ),
        Some("json") => {
            let parsed = serde_json::from_str::<serde_json::Value>(&block.text);
            parsed
                .map(drop)
                .map_err(|cause| format!("is no JSON: {cause}"))
        }
        _ => Ok(()),
    }
}
