//! Pieces of TOML of the documentation, for the tests of whoever reads them.
//!
//! A piece names its reader behind the language: `toml of=suite`. `cargo xtask tidy` holds that each names one.

use std::path::Path;

/// The readers there are.
const READERS: [&str; 6] = ["corpus", "gates", "metrics", "suite", "traffic", "users"];

/// Each piece that a reader has, with its page; there is one at least.
pub(crate) fn pieces(of: &str) -> Vec<(String, String)> {
    let pieces: Vec<(String, String, String)> = all();
    let mine = pieces.into_iter().filter(|(_, reader, _)| reader == of);
    let mine: Vec<(String, String)> = mine.map(|(page, _, text)| (page, text)).collect();
    assert!(!mine.is_empty(), "no page has `toml of={of}`");
    mine
}

/// Page, reader and text of each.
fn all() -> Vec<(String, String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pieces = Vec::new();
    for entry in std::fs::read_dir(docs).expect("docs") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).expect("a page");
        for rest in page.split("\n```toml").skip(1) {
            let (words, rest) = rest.split_once('\n').expect("a fence");
            let reader = words
                .split_whitespace()
                .find_map(|word| word.strip_prefix("of="));
            let text = rest.split("\n```").next().expect("a block");
            pieces.push((
                path.display().to_string(),
                reader.unwrap_or_default().to_owned(),
                format!("{text}\n"),
            ));
        }
    }
    pieces
}

#[test]
fn every_piece_has_a_reader_that_there_is() {
    for (page, reader, text) in all() {
        assert!(READERS.contains(&&*reader), "{page}: of={reader}\n{text}");
    }
}

#[test]
fn users_of_the_documentation_are_read() {
    for (page, text) in pieces("users") {
        let none = |_: &str| Err("no file".to_owned());
        let read = simulator::crowd::Traffic::parse(&text, &page, none);
        let traffic = read.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(traffic.profiles.len(), 2, "{page}");
    }
}
