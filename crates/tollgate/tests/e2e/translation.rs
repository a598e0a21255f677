//! Calls in one provider's dialect to a backend that speaks another's: with the official SDKs, and over a failover.
//!
//! Invariant: what is recorded is what the backend counted, whichever dialect it was asked in.
//! Not here: what each member becomes (`vectors/translate`).

mod agents;
mod bedrock;
mod cohere;
mod google;
mod kept;
mod long;
mod matrix;
mod socket;

use engine::{EngineConfig, EngineHandle, spawn_thread};
use serde_json::{Value, json};
use testing::eventually;

use crate::harness::answer::{events, json as answer};
use crate::harness::{Gate, Sdk, Seen, Step, Upstream, post};

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"cache_read_input_tokens":100,"cache_creation_input_tokens":0,"output_tokens":3}}"#;

fn engine() -> EngineHandle {
    let config = EngineConfig {
        models: vec!["m".into()],
        ..EngineConfig::default()
    };
    spawn_thread(config).expect("an engine")
}

/// The records of a gate whose backend, an engine of both dialects, is said to speak one, after an SDK has used it.
fn used_by(sdk: &str, dialect: &str) -> (Vec<Value>, EngineHandle, Value) {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: {dialect} }} }}\n\
         routes: [ {{ workload: open, backend: up }} ]\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[]);
    let input = json!({ "base_url": format!("http://{}", gate.data), "sdk": sdk });
    let shown = Sdk::Python.run("translated", &input);
    let ended = {
        let stats = engine.stats();
        stats.finished_stop + stats.finished_length
    };
    let generated = || -> Vec<Value> {
        let reported = |r: &Value| r["prompt_source"] == "reported";
        gate.records(1).into_iter().filter(reported).collect()
    };
    eventually("every answer has its record", || {
        generated().len() as u64 >= ended
    });
    (generated(), engine, shown)
}

fn the_counts_are_the_engines(records: &[Value], engine: &EngineHandle) {
    let stats = engine.stats();
    let sum = |name: &str| records.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    assert!(records.len() > 5, "{records:?}");
    assert!(
        records
            .iter()
            .all(|r| r["status"] == 200 && r["outcome"] == "completed")
    );
    assert_eq!(
        (sum("prompt_tokens"), sum("completion_tokens")),
        (stats.prompt_tokens, stats.generation_tokens)
    );
}

#[test]
fn the_openai_sdk_works_in_front_of_a_backend_that_speaks_anthropic() {
    let (records, engine, shown) = used_by("openai", "anthropic");
    let all = [
        "whole",
        "streamed",
        "streamed_without_usage",
        "loop_of_tools",
        "refused",
    ];
    assert_eq!(shown, json!(all));
    the_counts_are_the_engines(&records, &engine);
    assert!(
        records.iter().all(|r| r["operation"] == "chat"),
        "{records:?}"
    );
}

#[test]
fn the_anthropic_sdk_works_in_front_of_a_backend_that_speaks_openai() {
    let (records, engine, shown) = used_by("anthropic", "openai");
    assert_eq!(
        shown,
        json!(["whole", "streamed", "loop_of_tools", "refused"])
    );
    the_counts_are_the_engines(&records, &engine);
    assert!(
        records.iter().all(|r| r["operation"] == "messages"),
        "{records:?}"
    );
}

#[test]
fn responses_of_the_openai_sdk_work_in_front_of_backends_that_have_none() {
    for dialect in ["openai", "anthropic"] {
        let (records, engine, shown) = used_by("responses", dialect);
        assert_eq!(
            shown,
            json!(["whole", "streamed", "loop_of_tools", "refused"])
        );
        the_counts_are_the_engines(&records, &engine);
        assert!(
            records.iter().all(|r| r["operation"] == "responses"),
            "{records:?}"
        );
    }
}

/// A gate whose first backend speaks OpenAI's dialect and whose second speaks Anthropic's.
fn over_both(first: &Upstream, second: &Upstream) -> Gate {
    let config = format!(
        "backends:\n  own: {{ url: http://{}/v1, dialect: openai, credential: {{ inline: own-key }} }}\n  \
         hosted: {{ url: http://{}/v1, dialect: anthropic, credential: {{ inline: hosted-key }}, \
         model_names: {{ m: claude }} }}\n\
         routes: [ {{ workload: w, backend: [own, hosted] }} ]\n",
        first.address, second.address
    );
    Gate::start(&config, &[])
}

const BUSY: &str = r#"{"error":{"message":"not now","type":"x","param":null,"code":"theirs"}}"#;
const WHO: &str = "x-workload-app: w";

#[test]
fn a_failover_crosses_dialects_with_the_credential_and_path_of_each() {
    let own = Upstream::start(|_, _| vec![Step::Send(answer(503, BUSY))]);
    let hosted = Upstream::start(|_, _| vec![Step::Send(answer(200, ANSWER))]);
    let gate = over_both(&own, &hosted);
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}]}"#;
    let response = gate.call(&post("/v1/chat/completions", &[WHO], body));
    assert_eq!(response.status, 200, "{response:?}");
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(told["choices"][0]["message"]["content"], "Hello.");
    assert_eq!(told["usage"]["prompt_tokens"], 107);
    let [first] = &own.seen()[..] else {
        panic!("one call")
    };
    let [second] = &hosted.seen()[..] else {
        panic!("one call")
    };
    assert!(
        first
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        first.head
    );
    assert_eq!(
        first.body,
        body.as_bytes(),
        "the same dialect passes as it came"
    );
    assert!(
        second.head.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{}",
        second.head
    );
    let has = |seen: &Seen, line: &str| seen.head.to_lowercase().matches(line).count();
    assert_eq!(has(second, "x-api-key: hosted-key"), 1, "{}", second.head);
    assert_eq!(
        has(second, "anthropic-version: 2023-06-01\r\n"),
        1,
        "{}",
        second.head
    );
    assert_eq!(has(second, "authorization"), 0, "{}", second.head);
    assert_eq!(
        has(first, "authorization: bearer own-key"),
        1,
        "{}",
        first.head
    );
    let sent: Value = serde_json::from_slice(&second.body).expect("JSON");
    assert_eq!(
        (&sent["model"], &sent["max_tokens"]),
        (&json!("claude"), &json!(8192))
    );
    let [record] = &gate.records(1)[..] else {
        panic!("one record")
    };
    assert_eq!(record["backend"], "hosted");
    assert_eq!(
        (
            &record["prompt_tokens"],
            &record["cached_tokens"],
            &record["completion_tokens"]
        ),
        (&json!(107), &json!(100), &json!(3))
    );
}

#[test]
fn what_the_backend_does_not_have_is_refused_in_the_clients_words() {
    let own = Upstream::start(|_, _| vec![Step::Send(answer(503, BUSY))]);
    let hosted = Upstream::start(|_, _| vec![Step::Send(answer(200, ANSWER))]);
    let body = r#"{"model":"m","input":"a"}"#;
    // No backend has it: the caller can mend that.
    let alone = format!(
        "backends:\n  hosted: {{ url: http://{}/v1, dialect: anthropic, credential: {{ inline: hosted-key }} }}\n\
         routes: [ {{ workload: w, backend: hosted }} ]\n",
        hosted.address
    );
    let gate = Gate::start(&alone, &[]);
    let response = gate.call(&post("/v1/embeddings", &[WHO], body));
    assert_eq!(response.status, 400, "{response:?}");
    let told = String::from_utf8_lossy(&response.body).into_owned();
    assert!(
        told.contains("speaks anthropic, which has no embeddings"),
        "{told}"
    );
    // One has it and is busy: the caller can try again.
    let gate = over_both(&own, &hosted);
    let response = gate.call(&post("/v1/embeddings", &[WHO], body));
    assert_eq!(response.status, 503, "{response:?}");
    assert!(hosted.seen().is_empty());
}

#[test]
fn a_stream_that_ends_without_its_end_is_an_error_in_the_clients_dialect() {
    let own = Upstream::start(|_, _| vec![Step::Send(answer(503, BUSY))]);
    let begun = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n";
    let hosted = Upstream::start(move |_, _| vec![Step::Send(events(begun.as_bytes()))]);
    let gate = over_both(&own, &hosted);
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}],"stream":true}"#;
    let response = gate.call(&post("/v1/chat/completions", &[WHO], body));
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert!(
        text.contains(r#""content":"Hel""#) || response.status == 502,
        "{text}"
    );
    assert!(text.contains(r#""error":{"message""#), "{text}");
    assert!(!text.contains("[DONE]"), "{text}");
    let [record] = &gate.records(1)[..] else {
        panic!("one record")
    };
    assert_ne!(record["outcome"], "completed", "{record}");
}

const GENERATED: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"},{"text":"lo."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":12,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":20,"totalTokenCount":35},"modelVersion":"gemini-3-flash","responseId":"r1"}"#;

#[test]
fn calls_of_three_apis_reach_a_backend_that_speaks_gemini_and_are_metered_in_its_own() {
    let google = Upstream::start(|_, seen| {
        vec![Step::Send(match seen.head.contains("alt=sse") {
            true => events(format!("data: {GENERATED}\r\n\r\n").as_bytes()),
            false => answer(200, GENERATED),
        })]
    });
    let config = format!(
        "backends: {{ google: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: goog-key }}, \
         model_names: {{ m: gemini-3-flash }} }} }}\n\
         routes: [ {{ workload: w, backend: google }} ]\n",
        google.address
    );
    let gate = Gate::start(&config, &[]);
    let asked = r#""model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]"#;
    let calls = [
        ("/v1/chat/completions", format!("{{{asked}}}"), "Hello."),
        (
            "/v1/chat/completions",
            format!("{{{asked},\"stream\":true}}"),
            r#""finish_reason":"stop""#,
        ),
        (
            "/v1/messages",
            format!("{{{asked}}}"),
            r#""output_tokens":23"#,
        ),
        (
            "/v1/messages",
            format!("{{{asked},\"stream\":true}}"),
            r#""cache_read_input_tokens":4"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":"Hello"}"#.to_owned(),
            r#""reasoning_tokens":20"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":"Hello","stream":true}"#.to_owned(),
            "response.completed",
        ),
    ];
    for (nth, (path, body, holds)) in calls.iter().enumerate() {
        let response = gate.call(&post(path, &[WHO], body));
        let text = response.text();
        assert_eq!(response.status, 200, "{text}");
        assert!(text.contains(holds), "{path}: {text}");
        let seen = google.seen().pop().expect("it arrived");
        let line = match nth % 2 {
            0 => "POST /v1beta/models/gemini-3-flash:generateContent HTTP/1.1\r\n",
            _ => "POST /v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n",
        };
        assert!(seen.head.starts_with(line), "{}", seen.head);
        assert!(
            seen.head.contains("x-goog-api-key: goog-key"),
            "{}",
            seen.head
        );
    }
    for record in gate.records(calls.len()) {
        let counts = [
            "prompt_tokens",
            "cached_tokens",
            "completion_tokens",
            "reasoning_tokens",
        ];
        let counts = counts.map(|name| record[name].as_u64());
        assert_eq!(counts, [Some(12), Some(4), Some(23), Some(20)], "{record}");
        assert_eq!(record["prompt_source"], "reported");
    }
}

#[test]
fn azure_is_asked_at_the_deployment_of_a_model_with_its_version_and_its_key() {
    let completion = crate::harness::answer::COMPLETION;
    let azure = Upstream::start(move |_, _| vec![Step::Send(answer(200, completion))]);
    let config = format!(
        "backends:\n  classic: {{ url: http://{0}/openai, dialect: azure, query: {{ api-version: 2024-10-21 }}, credential: {{ inline: azure-key }}, model_names: {{ m: mine }} }}\n  \
         newer: {{ url: http://{0}/openai/v1, dialect: azure, credential: {{ inline: azure-key }} }}\n\
         routes: [ {{ workload: w, match: {{ model: m }}, backend: classic }}, {{ workload: w, backend: newer }} ]\n",
        azure.address
    );
    let gate = Gate::start(&config, &[]);
    let body = |model: &str| {
        format!(
            r#"{{ "model" : "{model}", "max_tokens":9, "messages":[{{"role":"user","content":"Hello"}}] }}"#
        )
    };
    let table = [
        (
            "/v1/chat/completions",
            "m",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        (
            "/v1/messages",
            "m",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        (
            "/v1/chat/completions",
            "other",
            "/openai/v1/chat/completions",
        ),
        ("/v1/messages", "other", "/openai/v1/chat/completions"),
    ];
    for (path, model, expected) in table {
        let response = gate.call(&post(path, &[WHO], &body(model)));
        assert_eq!(response.status, 200, "{}", response.text());
        let seen = azure.seen().pop().expect("it arrived");
        let line = format!("POST {expected} HTTP/1.1\r\n");
        assert!(seen.head.starts_with(&line), "{}", seen.head);
        assert_eq!(seen.header("api-key"), ["azure-key"]);
        assert!(seen.header("authorization").is_empty(), "{}", seen.head);
        if path == "/v1/chat/completions" {
            let expected = body(model).replace("\"m\"", "\"mine\"");
            assert_eq!(String::from_utf8_lossy(&seen.body), expected);
        }
    }
    for record in gate.records(table.len()) {
        assert_eq!(record["prompt_source"], "reported", "{record}");
    }
}

#[test]
fn an_answer_that_cannot_be_translated_is_an_error_in_the_clients_dialect() {
    // The head comes first, and nothing tells yet that what follows is no answer.
    let strange = Upstream::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n";
        vec![
            Step::Send(head.into()),
            Step::Sleep(std::time::Duration::from_millis(50)),
            Step::Send(b"hello".to_vec()),
        ]
    });
    let config = format!(
        "backends: {{ strange: {{ url: http://{}/v1, dialect: openai }} }}\n\
         routes: [ {{ workload: w, backend: strange }} ]\n",
        strange.address
    );
    let gate = Gate::start(&config, &[]);
    let body = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}"#;
    let response = gate.call(&post("/v1/messages", &[WHO], body));
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(
        (response.status, &told["type"]),
        (502, &json!("error")),
        "{told}"
    );
    let [record] = &gate.records(1)[..] else {
        panic!("one record")
    };
    assert_eq!(record["code"], "upstream_malformed", "{record}");
}
