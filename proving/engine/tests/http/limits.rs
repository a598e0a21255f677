//! Refusals: which requests, and the format of the errors.

use engine::EngineConfig;
use serde_json::{Value, json};
use testing::Began;

use crate::client::{assert_refused, chat, fast, post, start};

fn refused(config: EngineConfig, headers: &[(&str, &str)], path: &str, body: &str) -> (u16, Value) {
    let engine = start(config);
    let reply = post(engine.addr(), path, headers, body);
    (reply.status, reply.json()["error"].clone())
}

#[test]
fn requests_without_the_key_are_refused() {
    let keyed = || EngineConfig {
        api_key: Some("sk-secret".to_owned()),
        ..fast()
    };
    let body = chat(json!({})).to_string();
    for headers in [
        &[][..],
        &[("authorization", "Bearer wrong")],
        &[("authorization", "sk-secret")],
    ] {
        let (status, error) = refused(keyed(), headers, "/v1/chat/completions", &body);
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (401, &json!(401), &Value::Null)
        );
        assert!(error["message"].is_string() && error["type"].is_string());
    }
    let engine = start(keyed());
    let good = [("authorization", "bearer sk-secret")];
    assert_eq!(
        post(engine.addr(), "/v1/chat/completions", &good, &body).status,
        200
    );
    assert_eq!(crate::client::get(engine.addr(), "/health").status, 200);
}

#[test]
fn an_unknown_model_is_not_found() {
    let body = chat(json!({"model": "nope"})).to_string();
    let (status, error) = refused(fast(), &[], "/v1/chat/completions", &body);
    assert_eq!((status, &error["type"]), (404, &json!("NotFoundError")));
    assert_eq!(error["message"], "The model `nope` does not exist.");
}

#[test]
fn bad_requests_are_refused_with_400() {
    let engine = start(fast());
    let chat = |extra| chat(extra).to_string();
    for (path, body) in [
        ("/v1/chat/completions", "{\"model\":".to_owned()),
        ("/v1/chat/completions", "[]".to_owned()),
        ("/v1/chat/completions", String::new()),
        ("/v1/chat/completions", chat(json!({"messages": "hi"}))),
        (
            "/v1/chat/completions",
            chat(json!({"messages": [{"role": "function", "name": "f", "content": "x"}]})),
        ),
        ("/v1/chat/completions", chat(json!({"max_tokens": "many"}))),
        ("/v1/chat/completions", chat(json!({"max_tokens": 0}))),
        ("/v1/chat/completions", chat(json!({"max_tokens": 200_000}))),
        ("/v1/chat/completions", chat(json!({"stream": "yes"}))),
        (
            "/v1/chat/completions",
            chat(json!({"stream_options": {"include_usage": true}})),
        ),
        ("/v1/chat/completions", chat(json!({"n": 0}))),
        ("/v1/chat/completions", chat(json!({"n": 129}))),
        ("/v1/chat/completions", chat(json!({"temperature": 2.5}))),
        ("/v1/chat/completions", chat(json!({"stop": 5}))),
        ("/v1/chat/completions", chat(json!({"top_logprobs": 3}))),
        (
            "/v1/chat/completions",
            chat(json!({"reasoning_effort": "none"})),
        ),
        ("/v1/chat/completions", "[".repeat(100_000)),
        (
            "/v1/chat/completions",
            chat(json!({"tool_choice": "required"})),
        ),
        (
            "/v1/completions",
            json!({"model": "gpt-oss-120b", "prompt": {}}).to_string(),
        ),
        (
            "/v1/responses",
            json!({"model": "gpt-oss-120b", "input": [{"role": "robot", "content": "x"}]})
                .to_string(),
        ),
        (
            "/v1/embeddings",
            json!({"model": "gpt-oss-120b", "input": []}).to_string(),
        ),
    ] {
        let reply = post(engine.addr(), path, &[], &body);
        let (status, error) = (reply.status, reply.json()["error"].clone());
        assert_eq!(
            (status, &error["type"], &error["code"]),
            (400, &json!("BadRequestError"), &json!(400)),
            "{path} {body}"
        );
    }
}

#[test]
fn a_prompt_beyond_the_context_is_refused() {
    let config = EngineConfig {
        max_model_len: 100,
        ..fast()
    };
    let body =
        chat(json!({"messages": [{"role": "user", "content": "word ".repeat(90)}]})).to_string();
    let (status, error) = refused(config, &[], "/v1/chat/completions", &body);
    assert_eq!(status, 400);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("maximum context length is 100"),
        "{error}"
    );
}

#[test]
fn a_body_beyond_the_limit_is_too_large() {
    let config = EngineConfig {
        max_body_bytes: 1_000,
        ..fast()
    };
    let body =
        chat(json!({"messages": [{"role": "user", "content": "x".repeat(2_000)}]})).to_string();
    let (status, error) = refused(config, &[], "/v1/chat/completions", &body);
    assert_eq!((status, &error["code"]), (413, &json!(413)));
}

#[test]
fn the_last_of_two_equal_members_counts() {
    let engine = start(fast());
    let body =
        r#"{"model":"nope","model":"gpt-oss-120b","messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(
        post(engine.addr(), "/v1/chat/completions", &[], body).status,
        200
    );
}

#[test]
fn a_call_that_would_make_all_others_wait_is_refused() {
    let engine = start(fast());
    let plain = |extra: Value| {
        let mut body = json!({"prompt": "x", "max_tokens": 1});
        for (member, value) in extra.as_object().unwrap() {
            body[member] = value.clone();
        }
        ("/v1/completions", body)
    };
    let long = vec![5; 100_000];
    let texts = vec!["word ".repeat(1000); 1000];
    for ((path, body), says) in [
        (
            plain(json!({"n": 128, "max_tokens": 100_000, "ignore_eos": true})),
            "1048576 tokens together",
        ),
        (
            plain(json!({"n": 128, "prompt": [long, long]})),
            "16777216 tokens together",
        ),
        (
            plain(json!({"n": 128, "prompt": long, "echo": true})),
            "prompts to echo have 12800000 tokens",
        ),
        (
            plain(json!({"prompt": long, "prompt_logprobs": 20})),
            "2000000 log probabilities",
        ),
        (
            plain(json!({"prompt": [long, long, long], "echo": true, "logprobs": 1})),
            "log probabilities",
        ),
        (
            plain(json!({"max_tokens": 100_000, "ignore_eos": true, "logprobs": 20})),
            "2000000 log probabilities",
        ),
        (
            (
                "/v1/chat/completions",
                chat(
                    json!({"max_tokens": 100_000, "ignore_eos": true, "logprobs": true,
            "top_logprobs": 20}),
                ),
            ),
            "log probabilities",
        ),
        (
            (
                "/v1/chat/completions",
                chat(json!({"prompt_logprobs": 20,
            "messages": [{"role": "user", "content": "word ".repeat(50_000)}]})),
            ),
            "log probabilities",
        ),
        (
            (
                "/v1/embeddings",
                json!({"input": vec!["x"; 2000], "dimensions": 8192}),
            ),
            "1048576 numbers",
        ),
        (
            ("/rerank", json!({"query": "x", "documents": texts})),
            "4194304 bytes together",
        ),
        (
            ("/score", json!({"text_1": "x", "text_2": texts})),
            "4194304 bytes together",
        ),
    ] {
        let began = Began::now();
        assert_refused(engine.addr(), path, &body, says);
        eprintln!("{} {says}", began.shown());
    }
    let stats = engine.stats();
    assert_eq!(
        (stats.prompt_tokens, stats.generation_tokens, stats.refused),
        (0, 0, stats.received),
        "no work is done for any: {stats:?}"
    );
}
