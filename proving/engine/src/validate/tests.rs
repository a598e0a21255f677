//! Which messages pass, for Harmony models and for others.

use serde_json::json;

use super::*;

fn check(model: &str, value: Value) -> Result<u64, String> {
    let parsed: Vec<Message> = serde_json::from_value(value).map_err(|e| e.to_string())?;
    let mut prompt = Tally::new(0);
    messages(&parsed, model, &mut prompt)
        .map(|()| prompt.tokens)
        .map_err(|e| format!("{e:?}"))
}

#[test]
fn good_messages_pass() {
    for good in [
        json!([{"role": "user", "content": "hi"}]),
        json!([{"role": "developer", "content": "d"}, {"role": "system", "content": [{"type": "text", "text": "s"}]}]),
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]),
        json!([{"role": "assistant", "content": null,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
               {"role": "tool", "tool_call_id": "c", "content": "42"}]),
    ] {
        assert!(check("gpt-oss-120b", good.clone()).is_ok(), "{good}");
    }
}

#[test]
fn bad_messages_are_refused() {
    for bad in [
        json!([]),
        json!([{"role": "user"}]),
        json!([{"role": "user", "content": null}]),
        json!([{"role": "user", "content": 5}]),
        json!([{"role": 1, "content": "x"}]),
        json!([{"content": "x"}]),
        json!([{"role": "robot", "content": "x"}]),
        json!([{"role": "assistant", "content": null}]),
        json!([{"role": "tool", "content": "42"}]),
        json!([{"role": "user", "content": [{"type": "smell"}]}]),
        json!([{"role": "user", "content": [{"type": "text", "text": 5}]}]),
        json!([{"role": "user", "content": [{"text": "untyped"}]}]),
        json!([{"role": "assistant", "tool_calls": [{"id": "c"}]}]),
    ] {
        assert!(check("gpt-oss-120b", bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_function_message_is_refused_by_harmony_only() {
    let function = json!([{"role": "function", "name": "f", "content": "42"}]);
    assert!(check("openai/gpt-oss-20b", function.clone()).is_err());
    assert!(check("qwen3", function).is_ok());
}

#[test]
fn a_prompt_counts_text_and_template() {
    let hi = check("m", json!([{"role": "user", "content": "hi"}])).unwrap();
    assert_eq!(hi, 4 + 1 + 1 + 3);
    let longer = check("m", json!([{"role": "user", "content": "hi gateway"}])).unwrap();
    assert_eq!(longer, hi + 2);
}
