//! Replays the committed fuzz corpus of configurations, and adds random inputs of the same kind.
//!
//! Not here: the invariants (`fuzz/checks/config_parse.rs`).

#[path = "../../../fuzz/checks/config_parse.rs"]
mod check;
#[path = "../../../fuzz/checks/config_environment.rs"]
mod environment;

use testing::{Draw, corpus, replay, seed};

#[test]
fn the_corpus_of_config_parse_breaks_no_invariant() {
    replay("config_parse", 10, check::fuzz_one);
}

#[test]
fn the_corpus_of_config_environment_breaks_no_invariant() {
    replay("config_environment", 16, environment::fuzz_one);
}

#[test]
fn random_inputs_break_no_invariant() {
    let mut draw = Draw::new(seed("config_inputs"));
    let mut roll = move |below: usize| draw.below(below.max(1));
    let corpus = corpus("config_parse");
    for _ in 0..1500 {
        let mut input = corpus[roll(corpus.len())].clone();
        for _ in 0..=roll(3) {
            let (start, long) = (roll(input.len() + 1), roll(20));
            let end = (start + long).min(input.len());
            let other = &corpus[roll(corpus.len())];
            let from = roll(other.len() + 1);
            let to = (from + roll(20)).min(other.len());
            input.splice(start..end, other[from..to].iter().copied());
        }
        check::fuzz_one(&input);
    }
}
