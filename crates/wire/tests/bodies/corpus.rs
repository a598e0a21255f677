//! Replays the committed fuzzing corpora through the checks of their targets.

use std::path::Path;

use crate::{json_head, sse_scan};

#[test]
fn the_corpus_of_json_head_breaks_no_invariant() {
    replay("json_head", json_head::fuzz_one);
}

#[test]
fn the_corpus_of_sse_scan_breaks_no_invariant() {
    replay("sse_scan", sse_scan::fuzz_one);
}

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(&corpus)
        .expect("a readable corpus")
        .map(|entry| entry.expect("a readable corpus").path())
        .collect();
    seeds.sort();
    assert!(
        seeds.len() >= 20,
        "the corpus in {} is missing",
        corpus.display()
    );
    for seed in seeds {
        println!("{}", seed.display());
        check(&std::fs::read(&seed).expect("a readable corpus"));
    }
}
