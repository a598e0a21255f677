//! Replays the committed fuzz corpora of the parsers of `wire`, except those that other tests here replay.
//!
//! Not here: the invariants (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../../fuzz/checks/eventstream.rs"]
mod eventstream;
#[path = "../../../../fuzz/checks/http1_chunks.rs"]
mod http1_chunks;
#[path = "../../../../fuzz/checks/http1_response.rs"]
mod http1_response;
#[path = "../../../../fuzz/checks/realtime.rs"]
mod realtime;
#[path = "../../../../fuzz/checks/usage_stream.rs"]
mod usage_stream;
#[path = "../../../../fuzz/checks/usage_unary.rs"]
mod usage_unary;
#[path = "../../../../fuzz/checks/websocket.rs"]
mod websocket;

use testing::{Draw, corpus, replay, seed};

#[test]
fn the_corpus_of_eventstream_breaks_no_invariant() {
    replay("eventstream", 13, eventstream::fuzz_one);
}

#[test]
fn random_damage_to_a_stream_of_binary_events_breaks_no_invariant() {
    let mut random = Draw::new(seed("wire::random_binary_events"));
    let seeds = corpus("eventstream");
    for _ in 0..5_000 {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..random.below(4) {
            let at = random.below(input.len());
            match random.below(4) {
                0 => input[at] = random.next().to_le_bytes()[0],
                1 => input.truncate(at.max(1)),
                2 => drop(input.remove(at)),
                // What stands there once more.
                _ => input.extend_from_within(at..),
            }
            if input.is_empty() {
                break;
            }
        }
        eventstream::fuzz_one(&input);
    }
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
fn the_corpus_of_realtime_breaks_no_invariant() {
    replay("realtime", 8, realtime::fuzz_one);
}

#[test]
fn the_corpus_of_usage_stream_breaks_no_invariant() {
    replay("usage_stream", 100, usage_stream::fuzz_one);
}

#[test]
fn the_corpus_of_usage_unary_breaks_no_invariant() {
    replay("usage_unary", 19, usage_unary::fuzz_one);
}

#[test]
fn the_corpus_of_websocket_breaks_no_invariant() {
    replay("websocket", 10, websocket::fuzz_one);
}
