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
        (r#"{"image_token":"hello"}"#, 2),
        (r#"{"image_token":{"content":"hello"}}"#, 4),
        (
            r#"{"image_token":{"__type":"AddedToken","content":"hello"}}"#,
            2,
        ),
        (
            r#"{"additional_special_tokens":["hello"],"extra_special_tokens":{}}"#,
            2,
        ),
        (
            r#"{"additional_special_tokens":["hello"],"extra_special_tokens":[]}"#,
            2,
        ),
        (
            r#"{"additional_special_tokens":["hello"],"extra_special_tokens":{"a_token":"<a>"}}"#,
            2,
        ),
        (
            r#"{"additional_special_tokens":["hello"],"extra_special_tokens":["<a>"]}"#,
            4,
        ),
        (
            r#"{"additional_special_tokens":{"g_token":"hello"},"extra_special_tokens":{"h_token":"<h>"}}"#,
            2,
        ),
        (r#"{"model_specific_special_tokens":{"greet":"hello"}}"#, 2),
        (
            r#"{"model_specific_special_tokens":{"greet":"hello"},"extra_special_tokens":{}}"#,
            2,
        ),
        (
            r#"{"model_specific_special_tokens":{"greet":"hello"},"extra_special_tokens":{"i":"<i>"}}"#,
            4,
        ),
        (
            r#"{"model_specific_special_tokens":{"greet":"hello"},"image_token":"<i>"}"#,
            4,
        ),
        (
            r#"{"extra_special_tokens":{"image_token":"<b>"},"image_token":"hello"}"#,
            4,
        ),
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
fn what_is_added_to_plain_text_is_what_the_file_says_whatever_the_settings_say() {
    let settings = [
        r#"{"add_bos_token":false}"#,
        r#"{"add_eos_token":null}"#,
        r#"{"add_bos_token":true,"bos_token":"<s>"}"#,
        r#"{"add_bos_token":true,"add_eos_token":true,"bos_token":"<s>","eos_token":{"__type":"AddedToken","content":"</s>"}}"#,
    ];
    for settings in settings {
        assert_eq!(
            count(settings, "hello"),
            (4, Certainty::Exact),
            "{settings}"
        );
    }
    let mut file: serde_json::Value =
        serde_json::from_str(&vectors("tiny_tokenizer.json")).expect("JSON");
    file["post_processor"] = serde_json::Value::Null;
    for settings in settings {
        let bare = counter(&file.to_string(), settings);
        let count = bare.prompt(Operation::Completions, br#"{"prompt":"hello"}"#, CLOCK_S);
        assert_eq!(count.expect("countable").count.tokens, 3, "{settings}");
    }
}

#[test]
fn a_template_knows_special_tokens_by_the_names_that_the_settings_give_them() {
    let shown = |settings: &str| {
        let settings = TemplateSettings {
            tokenizer_config: settings.to_owned(),
            ..TemplateSettings::default()
        };
        let template = "{{ bos_token }}|{{ greet }}|{{ image_token }}|{{ i }}";
        let tokenizer = vectors("tiny_tokenizer.json");
        let counter = Counter::from_template(tokenizer.as_bytes(), template, settings);
        let body = br#"{"messages":[{"role":"user","content":"hi"}]}"#;
        let text = counter
            .expect("usable")
            .rendered(Operation::Chat, body, CLOCK_S);
        text.expect("rendered")
    };
    for (settings, text) in [
        ("{}", "|||"),
        (r#"{"bos_token":"<s>"}"#, "<s>|||"),
        (
            r#"{"model_specific_special_tokens":{"greet":"hello"}}"#,
            "|hello||",
        ),
        (
            r#"{"model_specific_special_tokens":{"greet":"hello"},"image_token":"<img>"}"#,
            "||<img>|",
        ),
        (
            r#"{"image_token":"<a>","extra_special_tokens":{"i":"<i>","image_token":"<b>"}}"#,
            "||<b>|<i>",
        ),
        (r#"{"image_token":{"content":"hello"}}"#, "|||"),
        (
            r#"{"bos_token":"<s>","extra_special_tokens":{"bos_token":"hello"}}"#,
            "hello|||",
        ),
    ] {
        assert_eq!(shown(settings), text, "{settings}");
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
        // Twice the same text: the rules of the second hold for transformers, here and there.
        (
            r#"{"eos_token":"hello","extra_special_tokens":[{"__type":"AddedToken","content":"hello","rstrip":true,"normalized":false}]}"#,
            doubted,
        ),
        (
            r#"{"eos_token":"hello","pad_token":"hello"}"#,
            Certainty::Exact,
        ),
        (
            r#"{"added_tokens_decoder":{"0":{"content":"<s>","lstrip":true,"normalized":false,"special":true}}}"#,
            doubted,
        ),
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
