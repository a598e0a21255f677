//! Cut as the patterns cut, which the reference tokenizers run as regular expressions.

use super::super::processor::{Level, Processor, Work};
use super::{Grammar, Pieces, sixteen};
use crate::tests::random::Random;

/// By the processor at hand, and as by any.
fn pieces(grammar: Grammar, text: &str) -> Vec<&str> {
    let [one, other] = [Processor::at_hand(), Processor::any()]
        .map(|processor| processor.run(Cutting(grammar, text)));
    assert_eq!(one, other, "{text:?}");
    one
}

struct Cutting<'t>(Grammar, &'t str);

impl<'t> Work for Cutting<'t> {
    type Output = Vec<&'t str>;

    #[inline(always)]
    fn run<L: Level>(self, level: L) -> Vec<&'t str> {
        let Self(grammar, text) = self;
        let (mut pieces, mut found, mut end) = (Pieces::new(grammar, text), Vec::new(), 0);
        while pieces.next(level, |from, to, bytes| {
            assert_eq!(*bytes, sixteen(text.as_bytes(), from), "{text:?}");
            assert_eq!(from, end, "{text:?}");
            found.push(&text[from..to]);
            end = to;
        }) {
            assert_eq!(pieces.at(), end, "{text:?}");
        }
        assert_eq!(end, text.len(), "{text:?}");
        found
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
    let mut random = Random::of("openais_patterns_cut_as_their_regular_expressions");
    for round in 0..4_000 {
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
    let mut random = Random::of("every_short_text_of_hard_characters");
    let hard = [
        'a', 'B', '\'', 's', ' ', '\n', '\t', '1', '/', '(', '中', '\u{301}', 'é',
    ];
    for length in 1..=4 {
        // Of four characters one in five, which has no factor of their number: each stands at each place.
        let step = if length < 4 { 1 } else { 5 };
        for number in (random.below(step)..hard.len().pow(length)).step_by(step) {
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
