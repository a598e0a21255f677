//! Files of known kinds are known, and count as the `tokenizers` crate does; all others are left to it.

use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::{DEEPSEEK, HuggingFace, PATTERNS, byte_letters};
use crate::tests::random::Random;

/// A small vocabulary with merges of common letters, behind a pattern.
fn file(pre_tokenizer: &Value, normalizer: &Value) -> Value {
    let letters = byte_letters();
    let mut vocab: Vec<String> = letters.iter().map(char::to_string).collect();
    let mut merges = Vec::new();
    let mut random = Random::seeded(7);
    while merges.len() < 2_000 {
        let (left, right) = (random.below(vocab.len()), random.below(vocab.len()));
        let letter = |random: &mut Random| {
            let common = b"etaoinshr \n.,ETAO\xc3\xa4\xe4\xb8\xad0123";
            letters[usize::from(common[random.below(common.len())])].to_string()
        };
        let left = if left % 2 == 0 {
            letter(&mut random)
        } else {
            vocab[left].clone()
        };
        let right = if right % 2 == 0 {
            letter(&mut random)
        } else {
            vocab[right].clone()
        };
        let both = format!("{left}{right}");
        if both.chars().count() < 9 && !vocab.contains(&both) {
            merges.push(json!([left, right]));
            vocab.push(both);
        }
    }
    // A word that no merges lead to.
    vocab.push("unreachable".into());
    let vocab: serde_json::Map<String, Value> = vocab
        .into_iter()
        .enumerate()
        .map(|(id, token)| (token, id.into()))
        .collect();
    let special = |id: u64, content: &str, normalized: bool| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": normalized, "special": true})
    };
    json!({
        "version": "1.0",
        "added_tokens": [
            special(5000, "<|start|>", false),
            special(5001, "<|end|>", false),
            special(5002, "<|", true),
        ],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|start|>": {"id": "<|start|>", "ids": [5000], "tokens": ["<|start|>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
            "vocab": vocab, "merges": merges},
    })
}

fn split(patterns: &[&str]) -> Value {
    let split = |pattern| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let mut all: Vec<Value> = patterns.iter().map(split).collect();
    all.push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}));
    json!({"type": "Sequence", "pretokenizers": all})
}

fn read(file: &Value) -> (Option<HuggingFace>, Tokenizer) {
    let text = file.to_string();
    let tokenizer = Tokenizer::from_bytes(&text).unwrap_or_else(|error| panic!("{error}"));
    (HuggingFace::read(text.as_bytes(), &tokenizer), tokenizer)
}

#[test]
fn files_of_known_kinds_count_as_their_reference() {
    let gpt2 = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let splits = PATTERNS.iter().map(|(pattern, _)| split(&[pattern]));
    let mut random = Random::of("files_of_known_kinds_count_as_their_reference");
    for pre_tokenizer in splits.chain([split(&DEEPSEEK), gpt2]) {
        for normalizer in [Value::Null, json!({"type": "NFC"})] {
            let (known, tokenizer) = read(&file(&pre_tokenizer, &normalizer));
            let known = known.unwrap_or_else(|| panic!("not known: {pre_tokenizer}"));
            for round in 0..180 {
                let text = match round % 3 {
                    0 => random.ascii(1 + round % 200),
                    1 => format!("{}unreachable {}", random.text(3), random.text(4)),
                    _ => random.text(1 + round % 60),
                };
                for adds_special in [false, true] {
                    let reference = tokenizer.encode_fast(text.as_str(), adds_special);
                    let reference = reference.expect("a count").len() as u64;
                    assert_eq!(
                        known.count(&text, adds_special).expect("a count"),
                        reference,
                        "{text:?} {pre_tokenizer}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_understood_is_left_to_the_reference() {
    let known = file(&split(&[PATTERNS[0].0]), &Value::Null);
    assert!(read(&known).0.is_some());
    let changes: [(&str, Value); 7] = [
        ("/normalizer", json!({"type": "NFKC"})),
        ("/added_tokens/0/lstrip", json!(true)),
        ("/added_tokens/0/single_word", json!(true)),
        ("/model/byte_fallback", json!(true)),
        ("/model/dropout", json!(0.1)),
        ("/pre_tokenizer/pretokenizers/0/behavior", json!("Removed")),
        (
            "/pre_tokenizer/pretokenizers/0/pattern/Regex",
            json!("\\\\p{L}+|."),
        ),
    ];
    for (place, value) in changes {
        let mut file = known.clone();
        *file.pointer_mut(place).expect("a place") = value;
        assert!(read(&file).0.is_none(), "{place}");
    }
}

#[test]
fn every_short_text_of_hard_characters_is_cut_as_by_deepseeks_three_patterns() {
    let mut random = Random::of("every_short_text_of_hard_characters");
    let hard = [
        'a', '\'', ' ', '\n', '\t', '1', '(', '中', '\u{30FB}', '\u{3040}', '\u{301}', 'é',
        '\u{1}', '²', '—',
    ];
    let (known, tokenizer) = read(&file(&split(&DEEPSEEK), &Value::Null));
    let known = known.expect("known");
    for length in 1..=4 {
        let all = hard.len().pow(length);
        // Of four characters one in sixteen, which has no factor of their number: each stands at each place.
        let step = if length < 4 { 1 } else { 16 };
        for number in (random.below(step)..all).step_by(step) {
            let letters =
                (0..length).map(|place| hard[number / hard.len().pow(place) % hard.len()]);
            // The window goes on behind it.
            for behind in ["", "etat and more"] {
                let text: String = letters.clone().chain(behind.chars()).collect();
                let reference = tokenizer.encode_fast(text.as_str(), false);
                let reference = reference.expect("a count").len() as u64;
                assert_eq!(known.count(&text, false), Ok(reference), "{text:?}");
            }
        }
    }
}

#[test]
fn a_pair_that_merges_twice_is_left_to_the_reference() {
    let mut file = file(&split(&[PATTERNS[0].0]), &Value::Null);
    let merges = file.pointer_mut("/model/merges").expect("merges");
    let merges = merges.as_array_mut().expect("a list");
    merges.push(merges[0].clone());
    assert!(read(&file).0.is_none());
}

#[test]
fn added_tokens_beyond_ascii_are_known_where_nothing_is_normalised() {
    let mut file = file(
        &split(&DEEPSEEK),
        &json!({"type": "Sequence", "normalizers": []}),
    );
    *file
        .pointer_mut("/added_tokens/2/content")
        .expect("a place") = json!("<｜User｜>");
    let (known, tokenizer) = read(&file);
    let known = known.expect("known");
    let text = "<|start|>a 1<｜User｜>中<｜User";
    let reference = tokenizer.encode_fast(text, false).expect("a count").len() as u64;
    assert_eq!(known.count(text, false), Ok(reference));
    *file.pointer_mut("/normalizer").expect("a place") = json!({"type": "NFC"});
    assert!(read(&file).0.is_none());
}
