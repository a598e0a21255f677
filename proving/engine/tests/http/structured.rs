//! Structured outputs and tools over the API: answers are what was asked for, whole and in streams.

use engine::EngineConfig;
use serde_json::{Value, json};

use crate::client::{assert_refused, chat, fast, post, post_chat, start};

fn schema() -> Value {
    json!({"type": "object", "$defs": {"item": {"type": "object", "required": ["name", "day"],
        "properties": {"name": {"type": "string", "pattern": "^[a-z]{3,9}$"}, "day": {"type": "string", "format": "date"}},
        "additionalProperties": false}},
        "properties": {"items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
            "kind": {"anyOf": [{"const": "a"}, {"type": "integer", "minimum": 3}]}},
        "required": ["items", "kind"], "additionalProperties": false})
}

fn check(text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    if let Err(why) = jsonschema::validate(&schema(), &value) {
        panic!("{text}: {why}");
    }
}

#[test]
fn a_schema_holds_in_every_dialect_and_in_streams() {
    let engine = start(fast());
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema()}});
    let ask = |path: &str, body: Value| {
        let reply = post(engine.addr(), path, &[], &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    };
    let answer = ask(
        "/v1/chat/completions",
        chat(json!({"response_format": format, "n": 3})),
    )
    .json();
    let texts: Vec<&str> = (0..3)
        .map(|i| answer["choices"][i]["message"]["content"].as_str().unwrap())
        .collect();
    texts.iter().for_each(|text| check(text));
    assert!(
        texts[0] != texts[1] || texts[1] != texts[2],
        "choices differ: {texts:?}"
    );
    let stream = chat(json!({"response_format": format, "stream": true}));
    let events = ask("/v1/chat/completions", stream).events();
    let said: String = events
        .iter()
        .filter_map(|e| serde_json::from_str::<Value>(e).ok())
        .filter_map(|e| Some(e["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect();
    check(&said);
    let plain = json!({"prompt": "x", "max_tokens": 900, "structured_outputs": {"json": schema()}});
    check(
        ask("/v1/completions", plain).json()["choices"][0]["text"]
            .as_str()
            .unwrap(),
    );
    let text = json!({"format": {"type": "json_schema", "name": "n", "schema": schema()}});
    let response = ask("/v1/responses", json!({"input": "x", "text": text})).json();
    check(
        response["output"][1]["content"][0]["text"]
            .as_str()
            .unwrap(),
    );
    assert_eq!(response["text"], text);
}

#[test]
fn a_cap_cuts_structured_text_and_says_so() {
    let engine = start(fast());
    let format = json!({"type": "json_schema", "json_schema": {"schema": {"type": "string", "minLength": 400}}});
    let body =
        chat(json!({"response_format": format, "max_tokens": 20, "reasoning_effort": "low"}));
    let answer = post_chat(engine.addr(), &body).json();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 20);
}

#[test]
fn what_a_schema_asks_for_in_vain_is_named() {
    let engine = start(fast());
    for (extra, says) in [
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema":
            {"type": "array", "uniqueItems": true}}}}),
            "uniqueItems at #",
        ),
        (
            json!({"structured_outputs": {"regex": "(?=a)"}}),
            "Failed to transform regex",
        ),
        (json!({"guided_grammar": "root ::= x"}), "no rule named x"),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": false}}}),
            "no value was found",
        ),
    ] {
        let body = chat(extra);
        assert_refused(engine.addr(), "/v1/chat/completions", &body, says);
    }
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "plan", "parameters": schema()}}])
}

#[test]
fn tools_are_called_as_often_as_configured_and_their_arguments_satisfy_their_schema() {
    let engine = start(EngineConfig {
        tool_calls: 0.5,
        ..fast()
    });
    let mut calls = 0;
    for i in 0..60 {
        let mut body = chat(json!({"tools": tools()}));
        body["messages"][0]["content"] = json!(format!("question {i}"));
        let answer = post_chat(engine.addr(), &body).json();
        let choice = &answer["choices"][0];
        match choice["message"]["tool_calls"]
            .as_array()
            .unwrap()
            .as_slice()
        {
            [] => assert_eq!(choice["finish_reason"], "stop"),
            [call] => {
                assert_eq!(choice["finish_reason"], "tool_calls");
                check(call["function"]["arguments"].as_str().unwrap());
                calls += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((15..=45).contains(&calls), "{calls} of 60");
    let body = chat(json!({"tool_choice": "auto"}));
    let reply = post_chat(engine.addr(), &body);
    assert_eq!(
        reply.json()["error"]["message"],
        "When using `tool_choice`, `tools` must be set."
    );
}

#[test]
fn a_server_without_a_parser_refuses_to_let_the_model_choose_but_for_harmony() {
    let engine = start(EngineConfig {
        models: vec!["gpt-oss-120b".to_owned(), "llama".to_owned()],
        enable_auto_tool_choice: false,
        ..fast()
    });
    let ask = |model: &str, choice: Value| {
        let body = chat(json!({"model": model, "tools": tools(), "tool_choice": choice}));
        post_chat(engine.addr(), &body)
    };
    for choice in [json!("auto"), Value::Null] {
        let reply = ask("llama", choice.clone());
        assert_eq!(reply.status, 400, "{}", reply.body);
        let says = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
        assert_eq!(reply.json()["error"]["message"], says);
        assert_eq!(ask("gpt-oss-120b", choice).status, 200);
    }
    assert_eq!(ask("llama", json!("none")).status, 200);
    assert_eq!(ask("llama", json!("required")).status, 200);
}
