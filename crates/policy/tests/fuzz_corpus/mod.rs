//! Replays the committed fuzz corpora of what `policy` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../../fuzz/checks/query.rs"]
mod query;
#[path = "../../../../fuzz/checks/traceparent.rs"]
mod traceparent;

use testing::replay;

#[test]
fn the_corpus_of_query_breaks_no_invariant() {
    replay("query", 17, query::fuzz_one);
}

#[test]
fn the_corpus_of_traceparent_breaks_no_invariant() {
    replay("traceparent", 15, traceparent::fuzz_one);
}
