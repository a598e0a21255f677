//! Replays the committed fuzz corpus of what `identity` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../fuzz/checks/key_file.rs"]
mod key_file;

use testing::replay;

#[test]
fn the_corpus_of_key_file_breaks_no_invariant() {
    replay("key_file", 20, key_file::fuzz_one);
}
