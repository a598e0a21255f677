//! Replays the committed fuzz corpora of whole-gate inputs against a gate in this process.
//!
//! Not here: the invariants (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../../fuzz/checks/gate.rs"]
mod gate;
#[path = "../../../../fuzz/checks/gate_http1.rs"]
mod gate_http1;
#[path = "../../../../fuzz/checks/gate_http2.rs"]
mod gate_http2;
#[path = "../../../../fuzz/checks/gate_upstream.rs"]
mod gate_upstream;
#[path = "../../../../fuzz/checks/request_open.rs"]
mod request_open;

use testing::replay;

#[test]
fn the_corpus_of_gate_http1_breaks_no_invariant() {
    replay("gate_http1", 100, gate_http1::fuzz_one);
}

#[test]
fn the_corpus_of_gate_http2_breaks_no_invariant() {
    replay("gate_http2", 20, gate_http2::fuzz_one);
}

#[test]
fn the_corpus_of_gate_upstream_breaks_no_invariant() {
    replay("gate_upstream", 20, gate_upstream::fuzz_one);
}

#[test]
fn the_corpus_of_request_open_breaks_no_invariant() {
    replay("request_open", 100, request_open::fuzz_one);
}
