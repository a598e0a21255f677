//! Replays the committed fuzz corpus of what `identity` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../fuzz/checks/key_file.rs"]
mod key_file;

use std::path::Path;

#[test]
fn the_corpus_of_key_file_breaks_no_invariant() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/key_file");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        key_file::fuzz_one(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 20, "the corpus has lost entries: {replayed}");
}
