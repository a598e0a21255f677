//! Options of the API: choices, stop strings, log probabilities, tokenization, stream intervals, old metric names.

use engine::{EngineConfig, OutputLength};
use serde_json::{Value, json};

use crate::client::{chat, fast, get, post, post_chat, start};

#[test]
fn several_choices_are_counted_together() {
    let engine = start(fast());
    let headers = [("x-engine-tokens", "20")];
    let answer = post(
        engine.addr(),
        "/v1/chat/completions",
        &headers,
        &chat(json!({"n": 3})).to_string(),
    )
    .json();
    assert_eq!(answer["choices"].as_array().unwrap().len(), 3);
    assert_eq!(answer["usage"]["completion_tokens"], 60);
    let body =
        json!({"model": "gpt-oss-120b", "prompt": ["a b", [1, 2, 3]], "n": 2, "max_tokens": 4});
    let answer = post(engine.addr(), "/v1/completions", &[], &body.to_string()).json();
    assert_eq!(
        (
            answer["choices"].as_array().unwrap().len(),
            &answer["usage"]["prompt_tokens"]
        ),
        (4, &json!(5))
    );
}

#[test]
fn a_stop_string_ends_a_stream_and_is_not_sent() {
    let engine = start(fast());
    let call = |extra: Value| {
        let mut body = chat(extra);
        body["stream"] = json!(true);
        let headers = [("x-engine-tokens", "60")];
        let events = post(
            engine.addr(),
            "/v1/chat/completions",
            &headers,
            &body.to_string(),
        )
        .events();
        let parsed: Vec<Value> = events
            .iter()
            .filter_map(|e| serde_json::from_str(e).ok())
            .collect();
        let text = parsed
            .iter()
            .filter_map(|c| c["choices"][0]["delta"]["content"].as_str())
            .collect::<String>();
        (text, parsed.last().unwrap()["choices"][0].clone())
    };
    let (whole, _) = call(json!({}));
    let stop = whole.split(' ').nth(5).unwrap();
    let (text, last) = call(json!({"stop": [stop]}));
    assert_eq!(text, whole[..whole.find(stop).unwrap()]);
    assert_eq!(
        (&last["finish_reason"], &last["stop_reason"]),
        (&json!("stop"), &json!(stop))
    );
}

#[test]
fn log_probabilities_list_every_visible_token() {
    let engine = start(fast());
    let body = chat(json!({"logprobs": true, "top_logprobs": 2}));
    let headers = [("x-engine-tokens", "9")];
    let choice = post(
        engine.addr(),
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .json()["choices"][0]
        .clone();
    let tokens = choice["logprobs"]["content"].as_array().unwrap().clone();
    let joined: String = tokens
        .iter()
        .map(|t| t["token"].as_str().unwrap())
        .collect();
    assert_eq!(choice["message"]["content"], joined);
    assert!(
        tokens
            .iter()
            .all(|t| t["top_logprobs"].as_array().unwrap().len() == 2
                && t["logprob"].as_f64().unwrap() <= 0.0)
    );
}

#[test]
fn tokenize_and_detokenize_agree() {
    let engine = start(fast());
    let body = json!({"model": "gpt-oss-120b", "prompt": "hello world", "return_token_strs": true});
    let answer = post(engine.addr(), "/tokenize", &[], &body.to_string()).json();
    assert_eq!(
        (&answer["count"], &answer["tokens"]),
        (&json!(2), &json!([24912, 2375]))
    );
    assert_eq!(answer["token_strs"], json!(["hello", " world"]));
    let back = post(
        engine.addr(),
        "/detokenize",
        &[],
        &json!({"tokens": [24912, 2375]}).to_string(),
    )
    .json();
    assert_eq!(back["prompt"], "hello world");
    assert_eq!(
        post(
            engine.addr(),
            "/detokenize",
            &[],
            &json!({"tokens": [99_999_999]}).to_string()
        )
        .status,
        400
    );
}

#[test]
fn a_stream_interval_groups_tokens_into_events() {
    let engine = start(EngineConfig {
        stream_interval: 20,
        ..fast()
    });
    let body = json!({"model": "gpt-oss-120b", "prompt": "a", "max_tokens": 100, "ignore_eos": true, "stream": true});
    let events = post(engine.addr(), "/v1/completions", &[], &body.to_string()).events();
    // The first token by itself, then 20 at a time, the remaining ones, and the end.
    assert_eq!(events.len(), 1 + 4 + 1 + 1);
}

#[test]
fn old_metric_names_replace_the_new_ones() {
    let new = get(start(fast()).addr(), "/metrics").body;
    let old = get(
        start(EngineConfig {
            old_metric_names: true,
            ..fast()
        })
        .addr(),
        "/metrics",
    )
    .body;
    for (name, before) in [
        ("vllm:kv_cache_usage_perc{", "vllm:gpu_cache_usage_perc{"),
        (
            "vllm:prefix_cache_hits_total{",
            "vllm:gpu_prefix_cache_hits_total{",
        ),
        (
            "vllm:inter_token_latency_seconds_sum{",
            "vllm:time_per_output_token_seconds_sum{",
        ),
    ] {
        assert!(new.contains(name) && !new.contains(before));
        assert!(old.contains(before) && !old.contains(name));
    }
}

#[test]
fn answers_have_the_length_that_was_configured_when_a_call_says_nothing() {
    let lengths = |variation: f64, prompts: usize| -> Vec<f64> {
        let engine = start(EngineConfig {
            output_tokens: OutputLength::LogNormal {
                mean: 120.0,
                variation,
            },
            ..fast()
        });
        let ask = |i: usize, extra: Value| {
            let mut body = chat(extra);
            body["messages"][0]["content"] = json!(format!("question {i}"));
            let reply = post_chat(engine.addr(), &body);
            reply.json()["usage"]["completion_tokens"].as_f64().unwrap()
        };
        assert!(ask(0, json!({"max_tokens": 5})) <= 5.0, "a cap still cuts");
        assert_eq!(
            ask(0, json!({"max_tokens": 300, "ignore_eos": true})),
            300.0
        );
        (0..prompts).map(|i| ask(i, json!({}))).collect()
    };
    assert_eq!(lengths(0.0, 3), [120.0; 3]);
    let drawn = lengths(0.5, 200);
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    // The standard error of the mean is 120 * 0.5 / sqrt(200) = 4.2.
    assert!((mean - 120.0).abs() < 17.0, "{mean}");
    assert!(drawn.iter().any(|d| *d < 90.0) && drawn.iter().any(|d| *d > 150.0));
}
