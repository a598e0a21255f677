//! Replays the committed fuzz corpus of what `jose` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../fuzz/checks/jose_token.rs"]
mod jose_token;

use testing::replay;

#[test]
fn the_corpus_of_jose_token_breaks_no_invariant() {
    replay("jose_token", 28, jose_token::fuzz_one);
}
