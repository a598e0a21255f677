//! Replays the committed fuzz corpora of what `policy` reads.
//!
//! Not here: what must hold (`fuzz/checks`), finding new inputs (`cargo xtask fuzz`).

#[path = "../../../fuzz/checks/query.rs"]
mod query;
#[path = "../../../fuzz/checks/traceparent.rs"]
mod traceparent;

use std::path::Path;

#[test]
fn the_corpus_of_query_breaks_no_invariant() {
    replay("query", 17, query::fuzz_one);
}

#[test]
fn the_corpus_of_traceparent_breaks_no_invariant() {
    replay("traceparent", 15, traceparent::fuzz_one);
}

fn replay(target: &str, at_least: usize, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        check(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(
        replayed >= at_least,
        "{target} has lost entries: {replayed}"
    );
}
