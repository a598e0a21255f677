//! Replays the committed fuzz corpus of damaged ledgers.
//!
//! Not here: what must hold (`fuzz/checks/ledger_file.rs`).

use std::path::Path;

use crate::ledger_file;

#[test]
fn the_corpus_of_ledger_file_breaks_no_invariant() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ledger_file");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        ledger_file::fuzz_one(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 15, "the corpus has lost entries: {replayed}");
}
