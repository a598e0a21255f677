//! Counting and composing agree, whatever the seed and length.

use super::*;

#[test]
fn runs_of_four_and_single_marks_are_tokens() {
    for (text, tokens) in [
        ("", 0),
        ("   \n", 0),
        ("cat", 1),
        ("gate", 1),
        ("gateway", 2),
        ("a, b", 3),
        ("{\"k\":\"v\"}", 9),
        ("naïve", 2),
        ("数据", 1),
        ("don't", 3),
    ] {
        assert_eq!(count(text), tokens, "{text:?}");
    }
}

#[test]
fn composed_text_has_the_asked_number_of_tokens_and_its_pieces_join_to_it() {
    for seed in 0..50 {
        for tokens in (0..70).chain([500, 4_001]) {
            let output = Output::compose(seed, tokens);
            assert_eq!(output.tokens(), tokens, "seed {seed}");
            assert_eq!(count(output.text()), tokens as u64, "seed {seed}");
            let joined: String = (0..tokens).map(|i| output.token(i)).collect();
            assert_eq!(joined, output.text(), "seed {seed}");
            assert!(
                (0..tokens).all(|i| count(output.token(i)) == 1),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_text_and_another_gives_another() {
    assert_eq!(Output::compose(7, 40), Output::compose(7, 40));
    assert_ne!(Output::compose(7, 40), Output::compose(8, 40));
}

#[test]
fn padding_adds_bytes_and_no_tokens() {
    let plain = Output::compose(1, 13);
    let padded = plain.clone().pad(4_096);
    assert_eq!(padded.text().len(), 4_096);
    assert_eq!((padded.tokens(), count(padded.text())), (13, 13));
    assert_eq!(plain.clone().pad(1), plain);
}

#[test]
fn truncating_cuts_at_a_token_and_says_so() {
    let mut output = Output::of("{\"city\": \"string\"}".to_owned());
    assert!(!output.truncate(100));
    assert!(output.truncate(4));
    assert_eq!((output.text(), output.tokens()), ("{\"city\"", 4));
}
