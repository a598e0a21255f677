//! Cut as the patterns cut, which the reference tokenizers run as regular expressions.

use super::{BATCH, Grammar, Pieces};
use crate::tests::random::Random;

fn pieces(grammar: Grammar, text: &str) -> Vec<&str> {
    let (mut pieces, mut ends) = (Pieces::new(grammar, text), [0; BATCH]);
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let count = pieces.next(&mut ends);
        if count == 0 {
            assert_eq!(from, text.len(), "{text:?}");
            return found;
        }
        for &to in &ends[..count] {
            found.push(&text[from..to]);
            from = to;
        }
    }
}

fn one_by_one(grammar: Grammar, text: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    while from < text.len() {
        let to = grammar.end_of_piece(text, from);
        found.push(&text[from..to]);
        from = to;
    }
    found
}

#[test]
fn openais_patterns_cut_as_their_regular_expressions() {
    let mut random = Random::announced();
    for round in 0..20_000 {
        let text = match round % 2 {
            0 => random.text(1 + round % 60),
            _ => random.ascii(1 + round % 200),
        };
        let o200k: Vec<&str> = bpe_openai::o200k_base().split(&text).collect();
        assert_eq!(pieces(Grammar::O200k, &text), o200k, "{text:?}");
        let cl100k: Vec<&str> = bpe_openai::cl100k_base().split(&text).collect();
        assert_eq!(pieces(Grammar::Cl100k, &text), cl100k, "{text:?}");
        assert_eq!(
            pieces(Grammar::Qwen2, &text),
            one_by_one(Grammar::Qwen2, &text),
            "{text:?}"
        );
    }
}

#[test]
fn every_short_text_of_hard_characters_is_cut_as_by_the_regular_expression() {
    let hard = [
        'a', 'B', '\'', 's', ' ', '\n', '\t', '1', '/', '(', '中', '\u{301}', 'é',
    ];
    for length in 1..=4 {
        for number in 0..hard.len().pow(length) {
            let letters =
                (0..length).map(|place| hard[number / hard.len().pow(place) % hard.len()]);
            // The window goes on behind it.
            for behind in ["", "word and more"] {
                let text: String = letters.clone().chain(behind.chars()).collect();
                let o200k: Vec<&str> = bpe_openai::o200k_base().split(&text).collect();
                assert_eq!(pieces(Grammar::O200k, &text), o200k, "{text:?}");
                let cl100k: Vec<&str> = bpe_openai::cl100k_base().split(&text).collect();
                assert_eq!(pieces(Grammar::Cl100k, &text), cl100k, "{text:?}");
            }
        }
    }
}
