//! Counts are those of the reference tokenizers.

mod differential;

use super::Vocabulary;
use crate::tests::random::Random;

#[test]
fn built_in_vocabularies_count_as_their_reference() {
    let vocabularies = [
        (Vocabulary::o200k(), bpe_openai::o200k_base()),
        (Vocabulary::cl100k(), bpe_openai::cl100k_base()),
    ];
    let mut random = Random::of("built_in_vocabularies_count_as_their_reference");
    for round in 0..1_500 {
        let text = match round % 2 {
            0 => random.text(1 + round % 90),
            _ => random.ascii(1 + round % 300),
        };
        for (vocabulary, reference) in &vocabularies {
            let count = vocabulary.count(&text).expect("countable");
            assert_eq!(count, reference.count(&text) as u64, "{text:?}");
        }
    }
}
