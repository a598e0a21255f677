//! Settings beside the tiny tokenizer, by the rules of `transformers` 5.19 (`tokenization_utils_tokenizers.py`).

use wire::dialect::Operation;

use crate::tests::vectors;
use crate::{Certainty, Counter, Doubt, TemplateSettings};

const CLOCK_S: i64 = 0;

fn counter(tokenizer: &str, settings: &str) -> Counter {
    let settings = TemplateSettings {
        tokenizer_config: settings.to_owned(),
        ..TemplateSettings::default()
    };
    Counter::from_template(tokenizer.as_bytes(), "{{ messages }}", settings).expect("usable")
}

fn count(settings: &str, prompt: &str) -> (u64, Certainty) {
    let body = serde_json::json!({ "prompt": prompt }).to_string();
    let counter = counter(&vectors("tiny_tokenizer.json"), settings);
    let count = counter.prompt(Operation::Completions, body.as_bytes(), CLOCK_S);
    let count = count.expect("countable").count;
    (count.tokens, count.certainty)
}

#[test]
fn tokens_that_only_the_settings_name_are_tokens() {
    for (settings, tokens) in [
        ("", 4),
        ("{}", 4),
        (r#"{"additional_special_tokens":["hello"]}"#, 2),
        (r#"{"extra_special_tokens":["hello"]}"#, 2),
        (r#"{"extra_special_tokens":{"greeting_token":"hello"}}"#, 2),
        (r#"{"pad_token":"hello"}"#, 2),
        (r#"{"image_token":{"content":"hello"}}"#, 2),
        (
            r#"{"added_tokens_decoder":{"900":{"content":"hello","special":false,"normalized":false}}}"#,
            2,
        ),
        (r#"{"pad_token":"</s>","additional_special_tokens":[]}"#, 4),
    ] {
        assert_eq!(
            count(settings, "hello"),
            (tokens, Certainty::Exact),
            "{settings}"
        );
    }
}

#[test]
fn what_is_added_to_plain_text_is_what_the_settings_say() {
    for (settings, tokens) in [
        (r#"{"add_bos_token":false}"#, 3),
        (r#"{"add_bos_token":true,"bos_token":"<s>"}"#, 4),
        (
            r#"{"add_bos_token":true,"add_eos_token":true,"bos_token":"<s>","eos_token":{"content":"</s>"}}"#,
            5,
        ),
        (r#"{"add_eos_token":true,"eos_token":"</s>"}"#, 4),
        (r#"{"add_bos_token":true}"#, 3),
    ] {
        assert_eq!(
            count(settings, "hello"),
            (tokens, Certainty::Exact),
            "{settings}"
        );
    }
}

#[test]
fn a_class_that_builds_the_tokenizer_anew_is_doubted() {
    let doubted = Certainty::Approximate(Doubt::TokenizerSettings);
    for (settings, certainty) in [
        (
            r#"{"tokenizer_class":"PreTrainedTokenizerFast"}"#,
            Certainty::Exact,
        ),
        (
            r#"{"tokenizer_class":"TokenizersBackend"}"#,
            Certainty::Exact,
        ),
        (r#"{"tokenizer_class":"LlamaTokenizerFast"}"#, doubted),
        (r#"{"tokenizer_class":"Qwen2Tokenizer"}"#, doubted),
        (r#"{"split_special_tokens":true}"#, doubted),
    ] {
        assert_eq!(count(settings, "hello").1, certainty, "{settings}");
    }
    let mut file: serde_json::Value =
        serde_json::from_str(&vectors("tiny_tokenizer.json")).expect("JSON");
    file["normalizer"] = serde_json::json!({"type": "NFC"});
    file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = super::QWEN2_PATTERN.into();
    let qwen = counter(
        &file.to_string(),
        r#"{"tokenizer_class":"Qwen2TokenizerFast"}"#,
    );
    let count = qwen.prompt(Operation::Completions, br#"{"prompt":"a"}"#, CLOCK_S);
    assert_eq!(count.expect("countable").count.certainty, Certainty::Exact);
}
