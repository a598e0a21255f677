//! The committed inputs of the fuzz target of this crate.

use testing::replay;

#[path = "../../../fuzz/checks/translate.rs"]
mod translate;

#[test]
fn the_corpus_of_translate_breaks_no_invariant() {
    replay("translate", 80, translate::fuzz_one);
}
