//! Replays the committed fuzzing corpora through the checks of their targets.

use testing::replay;

use super::{json_head, sse_scan};

#[test]
fn the_corpus_of_json_head_breaks_no_invariant() {
    replay("json_head", 20, json_head::fuzz_one);
}

#[test]
fn the_corpus_of_sse_scan_breaks_no_invariant() {
    replay("sse_scan", 20, sse_scan::fuzz_one);
}
