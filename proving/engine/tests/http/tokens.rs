//! What is asked without a call: tokens of text and of conversations, counts of messages, prompts of calls.

use std::path::Path;

use engine::{EngineConfig, EngineHandle, ModelFiles};
use serde_json::{Value, json};

use crate::client::{Reply, chat, fast, get, post, start};

fn ask(engine: &EngineHandle, path: &str, body: &Value) -> Reply {
    post(engine.addr(), path, &[], &body.to_string())
}

fn vectors(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tokens");
    std::fs::read_to_string(dir.join(name)).expect("a file of vectors")
}

/// A model with a template and a vocabulary that puts `<s>` before plain prompts.
fn templated(template: &str) -> EngineConfig {
    EngineConfig {
        models: vec!["tiny".to_owned()],
        files: Some(ModelFiles {
            tokenizer: vectors("tiny_tokenizer.json"),
            config: Some(r#"{"bos_token":"<s>","eos_token":"</s>"}"#.to_owned()),
            chat_template: Some(template.to_owned()),
        }),
        enable_scale_out: true,
        max_model_len: 4096,
        ..fast()
    }
}

const PLAIN: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}{% if word %}{{ word }}{% endif %}";

#[test]
fn plain_text_has_special_tokens_unless_it_is_told_to_have_none() {
    let engine = start(templated(PLAIN));
    let count = |body: Value| ask(&engine, "/tokenize", &body).json()["tokens"].clone();
    let bare = count(json!({"prompt": "hello world", "add_special_tokens": false}));
    let whole = count(json!({"prompt": "hello world"}));
    let (bare, whole) = (bare.as_array().unwrap(), whole.as_array().unwrap());
    assert_eq!((whole[0].clone(), &whole[1..]), (json!(0), bare.as_slice()));
    // A mark is a mark in plain text, as it is in a call of plain completions.
    assert_eq!(count(json!({"prompt": "<|im_end|>"})), json!([0, 3]));
    let body = json!({"prompt": "hello world<|im_end|>", "max_tokens": 1});
    let usage = ask(&engine, "/v1/completions", &body).json()["usage"]["prompt_tokens"].clone();
    assert_eq!(usage, json!(whole.len() + 1));
}

#[test]
fn a_conversation_is_what_the_call_would_be_read_as() {
    let engine = start(templated(PLAIN));
    let body = json!({"messages": [{"role": "user", "content": "hello world"}], "max_tokens": 1});
    let asked = ask(&engine, "/tokenize", &body).json();
    assert_eq!(
        (&asked["count"], &asked["max_model_len"]),
        (&json!(17), &json!(4096))
    );
    let reported = ask(&engine, "/v1/chat/completions", &body).json();
    assert_eq!(reported["usage"]["prompt_tokens"], 17);
    let text = ask(&engine, "/detokenize", &json!({"tokens": asked["tokens"]})).json();
    assert_eq!(
        text["prompt"],
        "<|im_start|>user\nhello world<|im_end|>\n<|im_start|>assistant\n"
    );
    for (extra, count) in [
        (json!({"add_generation_prompt": false}), 14),
        (json!({"chat_template_kwargs": {"word": "<s>"}}), 18),
        // What the body says itself wins, though it says nothing but the default.
        (
            json!({"chat_template_kwargs": {"add_generation_prompt": false, "word": "auto"}}),
            17,
        ),
        (json!({"add_special_tokens": true}), 18),
    ] {
        let mut body = body.clone();
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        assert_eq!(
            ask(&engine, "/tokenize", &body).json()["count"],
            count,
            "{extra}"
        );
    }
    let refused = |extra: Value| {
        let mut body = body.clone();
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        ask(&engine, "/tokenize", &body)
    };
    let own = refused(json!({"chat_template": "{{ 1 }}"}));
    assert_eq!(own.status, 400);
    assert!(
        own.body
            .contains("--trust-request-chat-template is not set"),
        "{}",
        own.body
    );
    let both = refused(json!({"add_generation_prompt": true, "continue_final_message": true}));
    assert_eq!(both.status, 400);
    assert_eq!(ask(&engine, "/tokenize", &json!({})).status, 400);
}

#[test]
fn a_harmony_model_is_asked_for_its_template_and_counts_messages_as_it_reads_them() {
    let engine = start(fast());
    let call = chat(
        json!({"max_tokens": 1, "tools": [{"type": "function", "function": {"name": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]}),
    );
    let usage =
        ask(&engine, "/v1/chat/completions", &call).json()["usage"]["prompt_tokens"].clone();
    let asked = ask(&engine, "/tokenize", &call).json();
    assert_ne!(asked["count"], usage);
    let text = ask(&engine, "/detokenize", &json!({"tokens": asked["tokens"]})).json();
    let text = text["prompt"].as_str().unwrap();
    assert!(
        text.starts_with("<|start|>system<|message|>You are ChatGPT"),
        "{text}"
    );
    let messages = json!({"model": "gpt-oss-120b", "messages": call["messages"], "system": "Be brief.",
        "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]});
    let counted = ask(&engine, "/v1/messages/count_tokens", &messages).json();
    let mut call = messages.clone();
    call["max_tokens"] = json!(1);
    let reported = ask(&engine, "/v1/messages", &call).json();
    assert_eq!(counted["input_tokens"], reported["usage"]["input_tokens"]);
    assert_eq!(
        counted["context_management"]["original_input_tokens"],
        counted["input_tokens"]
    );
}

#[test]
fn prompts_of_calls_are_rendered_where_a_flag_allows_it() {
    let bodies = [
        (
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": "hello world"}], "max_tokens": 1}),
        ),
        (
            "/v1/messages",
            json!({"messages": [{"role": "user", "content": "hello world"}], "max_tokens": 1}),
        ),
        (
            "/v1/responses",
            json!({"input": "hello world", "max_output_tokens": 1}),
        ),
        (
            "/v1/completions",
            json!({"prompt": ["hello world", "b"], "max_tokens": 1}),
        ),
    ];
    let closed = start(fast());
    let open = start(EngineConfig {
        enable_scale_out: true,
        ..fast()
    });
    for engine in [open, start(templated(PLAIN))] {
        for (path, body) in &bodies {
            let answer = ask(&engine, path, body).json();
            let usage = &answer["usage"];
            let reported = usage
                .get("prompt_tokens")
                .or(usage.get("input_tokens"))
                .unwrap();
            let refused = ask(&closed, &format!("{path}/render"), body);
            assert_eq!(refused.status, 403, "{path}");
            assert_eq!(refused.json()["error"]["type"], "PermissionDeniedError");
            let rendered = ask(&engine, &format!("{path}/render"), body).json();
            let several = rendered
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![rendered]);
            let ids = several
                .iter()
                .map(|one| one["token_ids"].as_array().unwrap().len());
            assert_eq!(json!(ids.sum::<usize>()), *reported, "{path}");
        }
    }
}

#[test]
fn questions_of_tokens_are_no_work_of_the_model() {
    let engine = start(EngineConfig {
        api_key: Some("k".to_owned()),
        ..templated(PLAIN)
    });
    let body = json!({"messages": [{"role": "user", "content": "hello world"}]}).to_string();
    for path in ["/v1/messages/count_tokens", "/v1/chat/completions/render"] {
        assert_eq!(post(engine.addr(), path, &[], &body).status, 401, "{path}");
        let key = [("authorization", "Bearer k")];
        assert_eq!(post(engine.addr(), path, &key, &body).status, 200, "{path}");
    }
    let page = get(engine.addr(), "/metrics").body;
    let prompts = page
        .lines()
        .find(|line| line.starts_with("vllm:prompt_tokens_total{"));
    assert!(
        prompts.is_none_or(|line| line.ends_with(" 0") || line.ends_with(" 0.0")),
        "{prompts:?}"
    );
}
