//! Replays the committed fuzz corpus of what `jose` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../fuzz/checks/jose_token.rs"]
mod jose_token;

use std::path::Path;

#[test]
fn the_corpus_of_jose_token_breaks_no_invariant() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/jose_token");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        jose_token::fuzz_one(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 28, "the corpus has lost entries: {replayed}");
}
