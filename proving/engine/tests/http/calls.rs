//! Unary answers: every endpoint, correct usage, tools.

use engine::tokenizer::Tokenizer;
use serde_json::{Value, json};

use crate::client::{chat, fast, get, post, post_chat, start};

fn count(text: &str) -> u64 {
    Tokenizer::o200k().count(text)
}

#[test]
fn the_usage_of_a_chat_answer_matches_its_text() {
    let engine = start(fast());
    let reply = post(
        engine.addr(),
        "/v1/chat/completions",
        &[],
        &chat(json!({})).to_string(),
    );
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let usage = &answer["usage"];
    let message = &answer["choices"][0]["message"];
    let reasoning = message["reasoning_content"].as_str().unwrap();
    // Three special tokens before the reasoning, three after it; three before the answer and one after it.
    assert_eq!(
        usage["completion_tokens"],
        10 + count(reasoning) + count(content)
    );
    assert_eq!(usage["prompt_tokens"], 71);
    assert_eq!(
        usage["total_tokens"],
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let again = post(
        engine.addr(),
        "/v1/chat/completions",
        &[],
        &chat(json!({})).to_string(),
    )
    .json();
    assert_eq!(
        again["choices"], answer["choices"],
        "the same prompt gives the same text"
    );
    assert_ne!(again["id"], answer["id"]);
}

#[test]
fn headers_set_the_exact_length() {
    let engine = start(fast());
    for tokens in ["1", "4", "11", "123"] {
        let headers = [("x-engine-tokens", tokens)];
        let answer = post(
            engine.addr(),
            "/v1/chat/completions",
            &headers,
            &chat(json!({})).to_string(),
        )
        .json();
        assert_eq!(answer["usage"]["completion_tokens"].to_string(), tokens);
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    }
}

#[test]
fn a_completion_defaults_to_sixteen_tokens() {
    let engine = start(fast());
    let body = json!({"model": "gpt-oss-120b", "prompt": "Once upon a time", "ignore_eos": true});
    let answer = post(engine.addr(), "/v1/completions", &[], &body.to_string()).json();
    assert_eq!(answer["usage"]["completion_tokens"], 16);
    assert_eq!(count(answer["choices"][0]["text"].as_str().unwrap()), 16);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[test]
fn a_response_is_completed_or_incomplete_with_a_reason() {
    let engine = start(fast());
    let call = |cap: Value| {
        let body = json!({"model": "gpt-oss-120b", "input": "hi", "max_output_tokens": cap});
        post(engine.addr(), "/v1/responses", &[], &body.to_string()).json()
    };
    let whole = call(Value::Null);
    let text = |i: usize| whole["output"][i]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        (&whole["output"][0]["type"], &whole["output"][1]["type"]),
        (&json!("reasoning"), &json!("message"))
    );
    assert_eq!(
        whole["usage"]["output_tokens"],
        10 + count(text(0)) + count(text(1))
    );
    assert_eq!(
        whole["usage"]["output_tokens_details"]["reasoning_tokens"],
        count(text(0))
    );
    assert_eq!(whole["status"], "completed");
    let cut = call(json!(5));
    assert_eq!(
        (&cut["status"], &cut["usage"]["output_tokens"]),
        (&json!("incomplete"), &json!(5))
    );
    assert_eq!(cut["incomplete_details"]["reason"], "max_output_tokens");
}

#[test]
fn embeddings_count_their_inputs() {
    let engine = start(fast());
    let body = json!({"model": "gpt-oss-120b", "input": ["two words", "three more words"], "dimensions": 8});
    let answer = post(engine.addr(), "/v1/embeddings", &[], &body.to_string()).json();
    assert_eq!(answer["usage"]["prompt_tokens"], 5);
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 8);
}

#[test]
fn a_forced_tool_is_called_with_its_required_arguments() {
    let engine = start(fast());
    let tools = json!([{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]);
    let body = chat(json!({"tools": tools, "tool_choice": "required"}));
    let answer = post_chat(engine.addr(), &body).json();
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(call["name"], "weather");
    assert!(arguments["city"].is_string(), "{arguments}");
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    let said = count(call["arguments"].as_str().unwrap()) + count(call_reasoning(&answer));
    assert!(
        answer["usage"]["completion_tokens"].as_u64().unwrap() > said,
        "{answer}"
    );
}

fn call_reasoning(answer: &Value) -> &str {
    answer["choices"][0]["message"]["reasoning_content"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn models_health_and_version_answer() {
    let engine = start(fast());
    let models = get(engine.addr(), "/v1/models").json();
    assert_eq!(models["data"][0]["id"], "gpt-oss-120b");
    assert_eq!(
        get(engine.addr(), "/v1/models/gpt-oss-120b").json()["max_model_len"],
        131_072
    );
    assert_eq!(get(engine.addr(), "/v1/models/nope").status, 404);
    assert_eq!(get(engine.addr(), "/health").status, 200);
    assert!(get(engine.addr(), "/version").json()["version"].is_string());
    assert_eq!(get(engine.addr(), "/nowhere").status, 404);
}

#[test]
fn metrics_are_valid_exposition_and_add_up() {
    let engine = start(fast());
    for _ in 0..3 {
        post(
            engine.addr(),
            "/v1/chat/completions",
            &[("x-engine-tokens", "10")],
            &chat(json!({})).to_string(),
        );
    }
    let text = get(engine.addr(), "/metrics").body;
    let sample = |line: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(line))
            .unwrap_or_else(|| panic!("{line}\n{text}"))
            .trim()
            .to_owned()
    };
    let labels = "engine=\"0\",model_name=\"gpt-oss-120b\"";
    assert_eq!(
        sample(&format!("vllm:generation_tokens_total{{{labels}}}")),
        "30.0"
    );
    assert_eq!(
        sample(&format!("vllm:prompt_tokens_total{{{labels}}}")),
        "213.0"
    );
    assert_eq!(
        sample(&format!("vllm:num_requests_running{{{labels}}}")),
        "0.0"
    );
    assert_eq!(
        sample(&format!(
            "vllm:request_success_total{{{labels},finished_reason=\"stop\"}}"
        )),
        "3.0"
    );
    assert_eq!(
        sample(&format!(
            "vllm:time_to_first_token_seconds_bucket{{{labels},le=\"2560.0\"}}"
        )),
        "3"
    );
    assert_eq!(
        sample(&format!(
            "vllm:e2e_request_latency_seconds_count{{{labels}}}"
        )),
        "3"
    );
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("a sample has a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn inspection_shows_received_requests_and_can_be_cleared() {
    let engine = start(fast());
    let body = chat(json!({})).to_string();
    post(
        engine.addr(),
        "/v1/chat/completions",
        &[("authorization", "Bearer sk-1"), ("x-trace", "t")],
        &body,
    );
    let seen = get(engine.addr(), "/_engine/requests").json();
    let one = &seen["requests"][0];
    assert_eq!(
        (&one["path"], &one["body"], &one["status"]),
        (&json!("/v1/chat/completions"), &json!(body), &json!(200))
    );
    assert!(
        one["headers"]
            .as_array()
            .unwrap()
            .contains(&json!(["authorization", "Bearer sk-1"]))
    );
    assert!(one["request_id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(one["finished"], "stop");
    assert_eq!(get(engine.addr(), "/_engine/stats").json()["received"], 1);
    assert_eq!(
        crate::client::send(engine.addr(), "DELETE", "/_engine/requests", &[], "").status,
        200
    );
    assert_eq!(
        get(engine.addr(), "/_engine/requests").json(),
        json!({"requests": []})
    );
    let closed = start(engine::EngineConfig {
        inspect: false,
        ..fast()
    });
    assert_eq!(get(closed.addr(), "/_engine/requests").status, 404);
}

fn message(extra: Value) -> Value {
    let mut body = json!({
        "model": "gpt-oss-120b", "max_tokens": 200, "system": "Answer briefly.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Where is the gate?"}]}],
    });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn the_usage_of_a_message_equals_that_of_the_same_chat() {
    let engine = start(fast());
    let body = message(json!({}));
    let reply = post(engine.addr(), "/v1/messages", &[], &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    let [thinking, text] = answer["content"].as_array().unwrap().as_slice() else {
        panic!("thinking and text: {answer}");
    };
    let said = |block: &Value, member: &str| count(block[member].as_str().unwrap());
    let content_tokens = said(thinking, "thinking") + said(text, "text");
    assert_eq!(answer["usage"]["output_tokens"], 10 + content_tokens);
    assert_eq!(answer["stop_reason"], "end_turn");
    let same = json!({"model": "gpt-oss-120b", "messages": [
        {"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Where is the gate?"}]});
    let chat = post_chat(engine.addr(), &same);
    assert_eq!(
        answer["usage"]["input_tokens"],
        chat.json()["usage"]["prompt_tokens"]
    );
}

#[test]
fn a_message_with_tools_is_counted_as_the_same_chat() {
    let engine = start(fast());
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let turns = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Ulm"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]},
    ]);
    let tools = json!([{"name": "weather", "description": "Of a city.", "input_schema": schema}]);
    let body = message(json!({"messages": turns, "tools": tools, "tool_choice": {"type": "any"}}));
    let reply = post(engine.addr(), "/v1/messages", &[], &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    let used = answer["content"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(
        (&used["type"], &used["name"]),
        (&json!("tool_use"), &json!("weather"))
    );
    assert!(used["input"]["city"].is_string(), "{used}");
    assert_eq!(answer["stop_reason"], "tool_use");
    let same = json!({"model": "gpt-oss-120b", "messages": [
        {"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Weather?"},
        {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function",
            "function": {"name": "weather", "arguments": "{\"city\": \"Ulm\"}"}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "rain"}],
        "tools": [{"type": "function", "function": {"name": "weather", "description": "Of a city.", "parameters": schema}}]});
    let chat = post_chat(engine.addr(), &same);
    assert_eq!(
        answer["usage"]["input_tokens"],
        chat.json()["usage"]["prompt_tokens"]
    );
}

#[test]
fn an_invalid_message_is_refused() {
    let engine = start(fast());
    for (extra, says) in [
        (json!({"max_tokens": null}), "validation error"),
        (json!({"messages": []}), "at least one"),
        (
            json!({"messages": [{"role": "robot", "content": "x"}]}),
            "Unknown role",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "odd"}]}]}),
            "Unknown block",
        ),
        (json!({"tools": [{"input_schema": {}}]}), "name"),
        (json!({"tool_choice": {"type": "odd"}}), "tool_choice"),
    ] {
        let body = message(extra);
        let reply = post(engine.addr(), "/v1/messages", &[], &body.to_string());
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.body.contains(says), "{says}: {}", reply.body);
    }
}
