//! Replays the committed fuzz corpus of configurations.
//!
//! Not here: the invariants (`fuzz/checks/config_parse.rs`).

use std::path::Path;

#[path = "../../../fuzz/checks/config_parse.rs"]
mod check;

#[test]
fn the_corpus_replays() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config_parse");
    let mut seen = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus") {
        check::fuzz_one(&std::fs::read(entry.expect("an entry").path()).expect("a readable file"));
        seen += 1;
    }
    assert!(seen >= 10, "{seen} inputs in {}", corpus.display());
}
