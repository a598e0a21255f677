//! Replays the committed fuzz corpus of rules.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../../fuzz/checks/cel_rules.rs"]
mod cel_rules;

use std::path::Path;

#[test]
fn the_corpus_of_cel_rules_breaks_no_invariant() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cel_rules");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        cel_rules::fuzz_one(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 25, "the corpus has lost entries: {replayed}");
}
