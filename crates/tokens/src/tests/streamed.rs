//! Output that arrives in pieces. Not here: prompts.

use super::random::Random;
use super::{tiny, vectors};
use crate::vocabulary::Vocabulary;
use crate::{BuiltIn, Certainty, Counter, Doubt, Ending, Lane};
use wire::dialect::Operation;

fn content(counter: &Counter, pieces: &[&str]) -> u64 {
    let mut output = counter.output();
    for piece in pieces {
        output.push(0, Lane::Content, piece).expect("countable");
    }
    output.finish(Ending::Cut).expect("countable").content
}

fn whole(counter: &Counter, text: &str) -> u64 {
    let body = serde_json::json!({ "prompt": text }).to_string();
    let count = counter.prompt(Operation::Completions, body.as_bytes(), 0);
    count.expect("countable").count.tokens
}

fn cut<'a>(mut text: &'a str, random: &mut Random, longest: usize) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let at = text.ceil_char_boundary((1 + random.below(longest)).min(text.len()));
        let (piece, rest) = text.split_at(at);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

#[test]
fn any_way_to_cut_a_stream_gives_the_count_of_the_whole() {
    let mut random = Random::of("any_way_to_cut_a_stream_gives_the_count_of_the_whole");
    for vocabulary in [BuiltIn::O200k, BuiltIn::Cl100k] {
        let counter = Counter::without_template(vocabulary);
        for _ in 0..20 {
            let text = random.text(8_000);
            let pieces = cut(&text, &mut random, 40);
            assert_eq!(content(&counter, &pieces), whole(&counter, &text));
        }
    }
}

#[test]
fn a_cut_at_every_place_of_a_long_run_gives_the_count_of_the_whole() {
    let counter = Counter::harmony();
    for unit in [
        "a", " ", "\n", " \n", "A", "中A", "aB", "!", "'s", "1", "🦀", "é ",
    ] {
        // The stretch that is looked at ends within the run, at each phase of its unit.
        for before in 0..unit.len() + 3 {
            let text = format!("{}{}x", "-".repeat(before), unit.repeat(9_000 / unit.len()));
            let mut pieces = text.split_inclusive(|_| true);
            let mut output = counter.output();
            pieces
                .try_for_each(|piece| output.push(0, Lane::Content, piece))
                .expect("countable");
            let count = output.finish(Ending::Cut).expect("countable");
            assert_eq!(
                count.content,
                whole(&counter, &text),
                "{unit:?} after {before}"
            );
        }
    }
}

#[test]
fn a_piece_too_long_to_hold_is_cut_and_says_so() {
    let counter = Counter::without_template(BuiltIn::O200k);
    let mut output = counter.output();
    for _ in 0..300 {
        output
            .push(0, Lane::Content, &"a".repeat(1000))
            .expect("countable");
    }
    let count = output.finish(Ending::Cut).expect("countable");
    assert!(count.had_long_piece);
    assert_eq!(
        count.total().certainty,
        Certainty::Approximate(Doubt::LongPiece)
    );
    let exact = whole(&counter, &"a".repeat(300_000));
    assert!(
        count.content.abs_diff(exact) <= 8,
        "{} {exact}",
        count.content
    );
}

#[test]
fn a_tokenizer_of_ones_own_is_exact_up_to_what_is_held() {
    let counter = tiny(&vectors("chatml.jinja"));
    let mut random = Random::of("a_tokenizer_of_ones_own_is_exact_up_to_what_is_held");
    let text = random.text(4_000);
    let pieces = cut(&text, &mut random, 30);
    // A completion prompt has the tokenizer's own start token too.
    assert_eq!(content(&counter, &pieces) + 1, whole(&counter, &text));
}

#[test]
fn many_lanes_hold_a_bounded_text_and_count_as_each_alone() {
    let mut random = Random::of("many_lanes_hold_a_bounded_text_and_count_as_each_alone");
    for counter in [
        Counter::without_template(BuiltIn::O200k),
        tiny(&vectors("chatml.jinja")),
    ] {
        let mut output = counter.output();
        let mut expected = 0;
        for call in 0..300 {
            let text = random.ascii(4_000);
            output
                .push(0, Lane::CallArguments(call), &text)
                .expect("countable");
            let held = output.held();
            assert!(held <= (1 << 20) + text.len(), "{held}");
            expected += content(&counter, &[&text]);
        }
        let is_exact = matches!(counter.vocabulary, Vocabulary::Pieced(_));
        let count = output.finish(Ending::Cut).expect("countable");
        assert_eq!(count.had_long_piece, !is_exact);
        // A cut that should not be may cost a token.
        let cuts = if is_exact { 0 } else { 300 };
        assert!(
            count.calls.abs_diff(expected) <= cuts,
            "{} {expected}",
            count.calls
        );
    }
}

#[test]
fn harmony_counts_what_the_model_samples_around_the_text() {
    // <|channel|>analysis<|message|>hello<|end|><|start|>assistant<|channel|>final<|message|>hello<|return|>
    let counter = Counter::harmony();
    let mut output = counter.output();
    output.push(0, Lane::Reasoning, "hello").expect("countable");
    output.push(0, Lane::Content, "hel").expect("countable");
    output.push(0, Lane::Content, "lo").expect("countable");
    let count = output.finish(Ending::Stop).expect("countable");
    assert_eq!(
        (count.reasoning, count.content, count.framing),
        (1, 1, 3 + 3 + 3 + 1)
    );
    assert_eq!(count.total().tokens, 12);
}

#[test]
fn silence_is_no_tokens_and_an_empty_answer_is_none_either() {
    let counter = Counter::harmony();
    let mut output = counter.output();
    output.push(0, Lane::Content, "").expect("countable");
    assert_eq!(
        output
            .finish(Ending::Cut)
            .expect("countable")
            .total()
            .tokens,
        0
    );
}

#[test]
fn choices_and_calls_are_counted_apart() {
    let counter = Counter::without_template(BuiltIn::O200k);
    let mut output = counter.output();
    for choice in [0, 1] {
        output
            .push(choice, Lane::Content, "hello")
            .expect("countable");
        output
            .push(choice, Lane::CallName(0), "search")
            .expect("countable");
        output
            .push(choice, Lane::CallArguments(0), "{}")
            .expect("countable");
    }
    let count = output.finish(Ending::Stop).expect("countable");
    assert_eq!((count.content, count.calls, count.framing), (2, 4, 0));
}
