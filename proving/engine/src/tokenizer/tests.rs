//! Known counts, marks that stay text, and files.

use super::*;

#[test]
fn known_texts_have_their_known_tokens() {
    // Ids as OpenAI's tiktoken 0.14 gives them.
    assert_eq!(Tokenizer::o200k().encode("hello world"), [24_912, 2_375]);
    assert_eq!(Tokenizer::cl100k().encode("hello world"), [15_339, 1_917]);
    assert_eq!(Tokenizer::o200k().mark("<|start|>"), Some(200_006));
    assert_eq!(Tokenizer::o200k().mark("<|return|>"), Some(200_002));
    assert_eq!(Tokenizer::cl100k().mark("<|im_start|>"), Some(100_264));
}

#[test]
fn a_mark_in_text_is_text_and_in_a_template_a_mark() {
    for (tokenizer, mark) in [
        (Tokenizer::o200k(), "<|start|>"),
        (Tokenizer::cl100k(), "<|im_end|>"),
    ] {
        let text = format!("a{mark}b");
        assert!(tokenizer.count(&text) > 3);
        assert!(
            !tokenizer
                .encode(&text)
                .contains(&tokenizer.mark(mark).unwrap())
        );
        let marked = tokenizer.encode_marked(&text);
        assert_eq!(
            (marked.len(), marked[1]),
            (3, tokenizer.mark(mark).unwrap())
        );
        assert_eq!(tokenizer.decode(&marked).unwrap(), text);
        assert_eq!(tokenizer.decode(&tokenizer.encode(&text)).unwrap(), text);
    }
}

#[test]
fn an_id_that_there_is_not_is_named() {
    assert_eq!(Tokenizer::o200k().decode(&[1, 9_999_999]), Err(9_999_999));
}

/// How many tokens a run of so many of each of these characters has.
fn long_runs(length: usize) -> [u64; 4] {
    ["a", " ", "\n", "🙂"].map(|character| Tokenizer::o200k().count(&character.repeat(length)))
}

#[test]
fn long_runs_of_one_character_have_tokens_by_their_length() {
    let (short, long) = (long_runs(1_600), long_runs(16_000));
    for (few, many) in short.into_iter().zip(long) {
        assert!(few > 0 && many.abs_diff(10 * few) <= 10, "{few} {many}");
    }
}

#[test]
#[ignore = "timing"]
fn timing_long_runs_of_one_character_take_no_long_time() {
    let began = std::time::Instant::now();
    let counts = long_runs(100_000);
    println!("{counts:?} in {:?}", began.elapsed());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn a_file_that_is_no_tokenizer_is_refused_with_a_reason() {
    let error = Tokenizer::from_json("{\"model\":5}").unwrap_err();
    assert!(error.to_string().starts_with("tokenizer: "), "{error}");
}
