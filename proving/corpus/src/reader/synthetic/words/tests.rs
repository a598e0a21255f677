//! Words are one token each, by a tokenizer of two vocabularies.

use super::*;

#[test]
fn each_word_is_one_token_at_the_start_and_after_a_space() {
    let more = |word: &&&str| {
        [bpe_openai::o200k_base(), bpe_openai::cl100k_base()]
            .iter()
            .any(|t| t.count(word) != 1 || t.count(&format!("the {word}")) != 2)
    };
    let more: Vec<_> = WORDS.iter().filter(more).collect();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn a_text_of_n_words_is_n_tokens_in_o200k_and_in_cl100k() {
    for words in [1, 2, 500] {
        let text = text(words, &mut Rng::new(9));
        for tokenizer in [bpe_openai::o200k_base(), bpe_openai::cl100k_base()] {
            assert_eq!(tokenizer.count(&text), words, "{text}");
        }
    }
}
