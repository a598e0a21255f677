//! Parameters that vLLM refuses, in its words; and those that it admits.

use engine::EngineConfig;
use serde_json::{Value, json};

use crate::client::{assert_refused, chat, fast, post, post_chat, start};

/// A member of a chat request, and what the refusal says and is about.
const REFUSED: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "top_k",
        "-5",
        "top_k must be 0 (disable), or at least 1, got -5.",
        None,
    ),
    (
        "presence_penalty",
        "2.5",
        "presence_penalty must be in [-2, 2], got 2.5.",
        None,
    ),
    (
        "frequency_penalty",
        "-3",
        "frequency_penalty must be in [-2, 2], got -3.0.",
        None,
    ),
    (
        "repetition_penalty",
        "0",
        "repetition_penalty must be greater than zero, got 0.0.",
        None,
    ),
    (
        "temperature",
        "-1",
        "temperature must be non-negative, got -1.0.",
        Some("temperature"),
    ),
    (
        "temperature",
        "2.5",
        "temperature must be in [0, 2], got 2.5.",
        Some("temperature"),
    ),
    (
        "top_p",
        "0",
        "top_p must be in (0, 1], got 0.0.",
        Some("top_p"),
    ),
    (
        "top_p",
        "1.5",
        "top_p must be in (0, 1], got 1.5.",
        Some("top_p"),
    ),
    ("min_p", "1.5", "min_p must be in [0, 1], got 1.5.", None),
    ("n", "0", "n must be at least 1, got 0.", Some("n")),
    ("n", "129", "n must be at most 128, got 129.", Some("n")),
    (
        "best_of",
        "3",
        "vLLM V1 does not yet support best_of.",
        None,
    ),
    ("best_of", "0", "best_of must be at least 1, got 0", None),
    (
        "use_beam_search",
        "true",
        "use_beam_search is not simulated",
        Some("use_beam_search"),
    ),
    (
        "min_tokens",
        "-1",
        "min_tokens must be greater than or equal to 0, got -1.",
        None,
    ),
    (
        "max_tokens",
        "0",
        "max_tokens must be at least 1, got 0.",
        Some("max_tokens"),
    ),
    (
        "stop",
        "5",
        "stop must be a string or a list of strings",
        Some("stop"),
    ),
    (
        "stop",
        r#"["x", 5]"#,
        "stop must be a string or a list of strings",
        Some("stop"),
    ),
    (
        "stop",
        r#"["x", ""]"#,
        "stop cannot contain an empty string.",
        None,
    ),
    (
        "bad_words",
        r#"[""]"#,
        "bad_words cannot contain an empty string.",
        None,
    ),
    (
        "top_logprobs",
        "3",
        "when using `top_logprobs`, `logprobs` must be set to true.",
        Some("top_logprobs"),
    ),
    (
        "top_logprobs",
        "-2",
        "`top_logprobs` must be a positive value or -1.",
        Some("top_logprobs"),
    ),
    (
        "prompt_logprobs",
        "-2",
        "`prompt_logprobs` must be a positive value or -1.",
        Some("prompt_logprobs"),
    ),
    (
        "prompt_logprobs",
        "21",
        "Requested prompt logprobs of 21, which is greater than max allowed: 20",
        Some("prompt_logprobs"),
    ),
    (
        "prompt_logprobs",
        "-1",
        "Requested prompt logprobs of 201088, which is greater",
        Some("prompt_logprobs"),
    ),
    (
        "truncate_prompt_tokens",
        "-2",
        "Input should be greater than or equal to -1",
        Some("truncate_prompt_tokens"),
    ),
    (
        "truncate_prompt_tokens",
        "200000",
        "truncate_prompt_tokens value (200000) is greater than max_model_len (131072)",
        Some("truncate_prompt_tokens"),
    ),
    (
        "logit_bias",
        r#"{"201088": 1}"#,
        "token_id(s) [201088] in logit_bias contain out-of-vocab token ids. Vocabulary size: 201088",
        Some("logit_bias"),
    ),
    (
        "logit_bias",
        r#"{"x": 1}"#,
        "cannot be converted to integer token IDs: [\"x\"]",
        Some("logit_bias"),
    ),
    (
        "stop_token_ids",
        "[-1]",
        "token_id(s) [-1] in stop_token_ids contain out-of-vocab",
        Some("stop_token_ids"),
    ),
    (
        "allowed_token_ids",
        "[]",
        "allowed_token_ids is not None and empty!",
        Some("allowed_token_ids"),
    ),
    (
        "allowed_token_ids",
        "[999999]",
        "allowed_token_ids contains out-of-vocab token id!",
        Some("allowed_token_ids"),
    ),
    ("seed", "1e30", "validation error", None),
    ("top_k", "1.5", "validation error", None),
];

#[test]
fn a_parameter_out_of_range_is_refused_in_the_words_of_vllm() {
    let engine = start(fast());
    for (member, value, says, param) in REFUSED {
        let value: Value = serde_json::from_str(value).unwrap();
        let body = chat(json!({*member: value}));
        let reply = post_chat(engine.addr(), &body);
        let error = reply.json()["error"].clone();
        assert_eq!(reply.status, 400, "{member} {value}: {}", reply.body);
        assert!(
            error["message"].as_str().unwrap().contains(says),
            "{member}: {error}"
        );
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("BadRequestError"), &json!(400))
        );
        assert_eq!(error["param"], json!(param), "{member}");
    }
}

#[test]
fn parameters_that_exclude_each_other_are_refused() {
    let engine = start(fast());
    for (extra, says) in [
        (
            json!({"min_tokens": 20, "max_tokens": 10}),
            "min_tokens must be less than or equal to max_tokens=10, got 20.",
        ),
        (
            json!({"n": 3, "temperature": 0}),
            "n must be 1 when using greedy sampling, got 3.",
        ),
        (
            json!({"n": 3, "best_of": 2}),
            "best_of must be greater than or equal to n, got n=3 and best_of=2.",
        ),
        (
            json!({"stream": true, "prompt_logprobs": 1}),
            "`prompt_logprobs` are not available when `stream=True`.",
        ),
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            "Requested sample logprobs of 21, which is greater than max allowed: 20",
        ),
    ] {
        let body = chat(extra);
        assert_refused(engine.addr(), "/v1/chat/completions", &body, says);
    }
}

#[test]
fn plain_completions_responses_and_messages_are_checked_too() {
    let engine = start(fast());
    let plain = |member: &str, value: Value| {
        (
            "/v1/completions",
            json!({"model": "gpt-oss-120b", "prompt": "x", member: value}),
        )
    };
    let response = json!({"model": "gpt-oss-120b", "input": "x", "temperature": 3});
    let message = json!({"model": "gpt-oss-120b", "max_tokens": 9, "top_k": -5,
        "messages": [{"role": "user", "content": "x"}]});
    for ((path, body), says) in [
        (
            plain("logprobs", json!(21)),
            "Requested sample logprobs of 21",
        ),
        (
            plain("logprobs", json!(-2)),
            "`logprobs` must be a positive value or -1.",
        ),
        (
            plain("max_tokens", json!(0)),
            "max_tokens must be at least 1, got 0.",
        ),
        (
            plain("prompt", json!([1, 300_000])),
            "Token id 300000 is out of vocabulary",
        ),
        (
            plain("suffix", json!("x")),
            "suffix is not currently supported",
        ),
        (plain("top_k", json!(-5)), "top_k must be 0"),
        (
            ("/v1/responses", response),
            "temperature must be in [0, 2], got 3.0.",
        ),
        (("/v1/messages", message), "top_k must be 0"),
    ] {
        assert_refused(engine.addr(), path, &body, says);
    }
}

#[test]
fn parameters_at_the_edges_of_their_ranges_are_admitted() {
    let engine = start(fast());
    for extra in [
        json!({"top_k": -1}),
        json!({"top_k": 0, "top_p": 1, "min_p": 1, "temperature": 2}),
        json!({"presence_penalty": -2, "frequency_penalty": 2.0, "repetition_penalty": 0.1}),
        json!({"min_tokens": 10, "max_tokens": 10, "seed": -1, "best_of": 1}),
        json!({"logprobs": true, "top_logprobs": 20, "prompt_logprobs": 20}),
        json!({"logit_bias": {"201087": -200}, "stop_token_ids": [0], "stop": null}),
        json!({"top_k": null, "temperature": null, "n": null, "logit_bias": null}),
    ] {
        let body = chat(extra);
        let reply = post_chat(engine.addr(), &body);
        assert_eq!(reply.status, 200, "{body}: {}", reply.body);
    }
}

#[test]
fn a_prompt_is_truncated_to_its_end() {
    let engine = start(EngineConfig {
        max_model_len: 100,
        ..fast()
    });
    let ask = |prompt_tokens: i64| {
        let body = json!({"model": "gpt-oss-120b", "prompt": "word ".repeat(500), "max_tokens": 8,
            "truncate_prompt_tokens": prompt_tokens});
        post(engine.addr(), "/v1/completions", &[], &body.to_string())
    };
    assert_eq!(ask(10).json()["usage"]["prompt_tokens"], 10);
    assert_eq!(ask(-1).json()["usage"]["prompt_tokens"], 92);
    assert_eq!(ask(101).status, 400);
}

#[test]
fn only_chat_knows_the_newer_name_of_the_most_tokens() {
    let engine = start(fast());
    let limit = json!({"max_completion_tokens": 3, "ignore_eos": true});
    let answer = post_chat(engine.addr(), &chat(limit)).json();
    assert_eq!(answer["usage"]["completion_tokens"], 3);
    let body = json!({"prompt": "x", "ignore_eos": true, "max_completion_tokens": 3});
    let answer = post(engine.addr(), "/v1/completions", &[], &body.to_string()).json();
    assert_eq!(answer["usage"]["completion_tokens"], 16, "its default");
}
