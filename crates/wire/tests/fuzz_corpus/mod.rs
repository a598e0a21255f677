//! Replays the committed fuzz corpora of the parsers of `wire`, except those that other tests here replay.
//!
//! Not here: the invariants (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../../fuzz/checks/eventstream.rs"]
mod eventstream;
#[path = "../../../../fuzz/checks/http1_chunks.rs"]
mod http1_chunks;
#[path = "../../../../fuzz/checks/http1_response.rs"]
mod http1_response;
#[path = "../../../../fuzz/checks/usage_stream.rs"]
mod usage_stream;
#[path = "../../../../fuzz/checks/usage_unary.rs"]
mod usage_unary;

use testing::replay;

#[test]
fn the_corpus_of_eventstream_breaks_no_invariant() {
    replay("eventstream", 13, eventstream::fuzz_one);
}

#[test]
fn the_corpus_of_http1_chunks_breaks_no_invariant() {
    replay("http1_chunks", 40, http1_chunks::fuzz_one);
}

#[test]
fn the_corpus_of_http1_response_breaks_no_invariant() {
    replay("http1_response", 30, http1_response::fuzz_one);
}

#[test]
fn the_corpus_of_usage_stream_breaks_no_invariant() {
    replay("usage_stream", 100, usage_stream::fuzz_one);
}

#[test]
fn the_corpus_of_usage_unary_breaks_no_invariant() {
    replay("usage_unary", 19, usage_unary::fuzz_one);
}
