//! The committed inputs of the fuzz target of this crate.

use testing::replay;

#[path = "../../../fuzz/checks/mcp.rs"]
mod mcp_messages;

#[test]
fn the_corpus_of_mcp_breaks_no_invariant() {
    replay("mcp", 30, mcp_messages::fuzz_one);
}
