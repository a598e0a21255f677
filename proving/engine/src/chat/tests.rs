//! Chats of a Harmony model as vLLM 0.32.0 reads them, where a plain reading would be another.

use crate::chat::ChatRequest;
use crate::config::EngineConfig;
use crate::json::Json;
use crate::model::Model;
use crate::responses::ResponsesRequest;
use crate::tokenizer::TokenId;

fn model() -> Model {
    Model::all(&EngineConfig::default(), "2025-06-28")
        .unwrap()
        .pop()
        .unwrap()
}

fn chat(body: &str) -> Vec<TokenId> {
    let body: Json = serde_json::from_str(body).unwrap();
    let mut request: ChatRequest = body.into_typed().unwrap();
    request.prompt(&EngineConfig::default(), &model()).unwrap()
}

fn response(body: &str) -> Vec<TokenId> {
    let body: Json = serde_json::from_str(body).unwrap();
    let request: ResponsesRequest = body.into_typed().unwrap();
    request.asked(&model()).unwrap().prompt
}

/// What stands behind the system message.
fn shown(prompt: &[TokenId]) -> String {
    let text = model().tokenizer().decode(prompt).unwrap();
    let (_, behind) = text.split_once("<|end|>").unwrap();
    behind
        .strip_suffix("<|start|>assistant")
        .unwrap()
        .to_owned()
}

#[test]
fn parts_are_encoded_each_by_itself() {
    let one = chat(r#"{"messages": [{"role": "user", "content": "hello world"}]}"#);
    let two = chat(
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "hel"},
            {"type": "text", "text": "lo world"}]}]}"#,
    );
    assert_eq!(shown(&one), shown(&two));
    assert_eq!(two.len(), one.len() + 1);
}

#[test]
fn instructions_stand_where_the_system_speaks_and_empty_ones_only_before_tools() {
    let late = chat(
        r#"{"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": [{"type": "text", "text": "b"},
            {"type": "text", "text": "c"}]}, {"role": "developer", "content": ""}, {"role": "system", "content": null}]}"#,
    );
    let developer = "<|start|>developer<|message|># Instructions\n\n";
    assert_eq!(
        shown(&late),
        format!("<|start|>user<|message|>a<|end|>{developer}bc<|end|>{developer}<|end|>")
    );
    let empty = |more: &str| {
        let messages =
            r#""messages": [{"role": "system", "content": ""}, {"role": "user", "content": "a"}]"#;
        shown(&chat(&format!("{{{messages}{more}}}")))
    };
    assert_eq!(empty(""), "<|start|>user<|message|>a<|end|>");
    let tools = r#", "tools": [{"type": "function", "function": {"name": "look"}}]"#;
    let head = format!("{developer}\n\n# Tools\n\n## functions\n\n");
    assert!(empty(tools).starts_with(&head), "{}", empty(tools));
}

#[test]
fn what_is_no_text_says_nothing_and_nothing_is_an_empty_text() {
    let text = shown(&chat(
        r#"{"messages": [{"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "yes"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "go"}]},
            {"role": "user", "content": []}, {"role": "user", "content": null}]}"#,
    ));
    let user = |text: &str| format!("<|start|>user<|message|>{text}<|end|>");
    assert_eq!(text, ["hi", "go", "", ""].map(user).concat());
}

#[test]
fn an_answer_is_of_the_last_call_in_chat_and_of_the_latest_before_it_in_responses() {
    let call = |name: &str| {
        format!(
            r#"{{"role": "assistant", "tool_calls": [{{"id": "c", "type": "function", "function": {{"name": "{name}", "arguments": "{{}}"}}}}]}}"#
        )
    };
    let answer = r#"{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}"#;
    let messages = [
        call("one"),
        answer.to_owned(),
        call("two"),
        answer.to_owned(),
    ];
    let text = shown(&chat(&format!(
        r#"{{"messages": [{}]}}"#,
        messages.join(",")
    )));
    let said = |name: &str| {
        let text = format!(
            "<|start|>functions.{name}<|channel|>commentary to=assistant<|message|>xy<|end|>"
        );
        text
    };
    assert_eq!(text.matches(&said("two")).count(), 2, "{text}");
    let call = |name: &str| {
        format!(
            r#"{{"type": "function_call", "call_id": "c", "name": "{name}", "arguments": "{{}}"}}"#
        )
    };
    let answer = r#"{"type": "function_call_output", "call_id": "c", "output": "xy"}"#.to_owned();
    let items = [call("one"), answer.clone(), call("two"), answer];
    let text = shown(&response(&format!(r#"{{"input": [{}]}}"#, items.join(","))));
    assert!(
        text.contains(&said("one")) && text.contains(&said("two")),
        "{text}"
    );
}

#[test]
fn an_empty_system_item_of_a_response_leaves_no_message() {
    let text = shown(&response(
        r#"{"input": [{"role": "user", "content": "a"}, {"role": "system", "content": ""},
            {"role": "assistant", "content": ""}]}"#,
    ));
    let wanted = concat!(
        "<|start|>user<|message|>a<|end|>",
        "<|start|>assistant<|channel|>final<|message|><|end|>",
    );
    assert_eq!(text, wanted);
}
