//! Replays the committed fuzz corpus of configurations, and adds random inputs of the same kind.
//!
//! Not here: the invariants (`fuzz/checks/config_parse.rs`).

use std::path::Path;

#[path = "../../../fuzz/checks/config_parse.rs"]
mod check;
#[path = "../../../fuzz/checks/config_environment.rs"]
mod environment;

fn corpus() -> Vec<Vec<u8>> {
    corpus_of("config_parse")
}

fn corpus_of(target: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&corpus).expect("the corpus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read(entry.expect("an entry").path()).expect("a readable file")
    };
    entries.map(read).collect()
}

#[test]
fn the_corpus_of_config_parse_breaks_no_invariant() {
    let corpus = corpus();
    assert!(corpus.len() >= 10, "{} inputs", corpus.len());
    for input in corpus {
        check::fuzz_one(&input);
    }
}

#[test]
fn the_corpus_of_config_environment_breaks_no_invariant() {
    let corpus = corpus_of("config_environment");
    assert!(corpus.len() >= 16, "{} inputs", corpus.len());
    for input in corpus {
        environment::fuzz_one(&input);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a seed to repeat, or a new one of the time"
)]
fn random_inputs_break_no_invariant() {
    let given = std::env::var("SEED").ok().and_then(|s| s.parse().ok());
    let fresh = || {
        u64::from(
            std::time::UNIX_EPOCH
                .elapsed()
                .expect("a clock")
                .subsec_nanos(),
        )
    };
    let seed: u64 = given.unwrap_or_else(fresh);
    println!("seed {seed}");
    let mut state = seed | 1;
    let mut roll = move |below: usize| {
        // xorshift64*, its high bits.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let high = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        usize::try_from(high).expect("32 bits") % below.max(1)
    };
    let corpus = corpus();
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
