//! Made text and counting agree, whatever the seed, the length and the vocabulary.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

static O200K: LazyLock<Composer> = LazyLock::new(|| Composer::new(&Tokenizer::o200k()).unwrap());

fn both() -> [Composer; 2] {
    [Tokenizer::o200k(), Tokenizer::cl100k()].map(|tokenizer| Composer::new(&tokenizer).unwrap())
}

#[test]
fn made_text_reads_back_as_the_tokens_it_was_made_of() {
    for composer in both() {
        for seed in 0..8 {
            for tokens in (0..70).chain([501, 4_001]) {
                let output = composer.compose(seed, tokens);
                assert_eq!(output.tokens(), tokens, "seed {seed}");
                assert_eq!(
                    composer.tokenizer().count(output.text()),
                    tokens as u64,
                    "seed {seed}: {}",
                    output.text()
                );
                assert_eq!(
                    Output::of(composer.tokenizer(), output.text().to_owned()),
                    output,
                    "seed {seed}"
                );
            }
        }
    }
}

fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("text")),
        ..ProptestConfig::with_cases(64)
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn any_seed_gives_the_asked_number(seed: u64, tokens in 0usize..600) {
        let composer = &*O200K;
        let output = composer.compose(seed, tokens);
        prop_assert_eq!(composer.tokenizer().count(output.text()), tokens as u64);
        prop_assert_eq!(output.ends().last().copied().unwrap_or(0), output.text().len());
    }

    #[test]
    fn any_text_is_cut_at_characters(text in "\\PC{0,80}") {
        let output = Output::of(O200K.tokenizer(), text.clone());
        prop_assert!(output.ends().iter().all(|end| text.is_char_boundary(*end)));
        prop_assert!(output.ends().is_sorted());
    }
}

#[test]
fn the_same_seed_gives_the_same_text_and_another_gives_another() {
    let [composer, _] = both();
    assert_eq!(composer.compose(7, 40), composer.compose(7, 40));
    assert_ne!(composer.compose(7, 40), composer.compose(8, 40));
}

#[test]
fn text_has_sentences_and_more_than_ascii() {
    let [composer, _] = both();
    let output = composer.compose(3, 4_000);
    assert!(output.text().contains(". ") && output.text().contains(".\n\n"));
    assert!(!output.text().is_ascii());
}
