//! Replays the committed fuzz corpus of damaged ledgers.
//!
//! Not here: what must hold (`fuzz/checks/ledger_file.rs`).

use testing::replay;

use super::ledger_file;

#[test]
fn the_corpus_of_ledger_file_breaks_no_invariant() {
    replay("ledger_file", 15, ledger_file::fuzz_one);
}
