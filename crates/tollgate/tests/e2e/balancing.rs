//! A backend of several engines, balanced by what each has to do and has seen: simulated engines with a prefix cache, a real gate.
//!
//! Not here: the arithmetic (`policy::balancing`), figures of latency (`prove run scenarios/inference-pool`).

use std::time::Duration;

use engine::{EngineConfig, EngineHandle, Hardware, spawn_thread};
use serde_json::{Value, json};
use testing::eventually;

use crate::harness::{Gate, Step, Upstream, post};

/// A simulated engine, with a KV cache and vLLM's metrics.
fn engine() -> EngineHandle {
    let config = EngineConfig {
        hardware: Some(Hardware::named("gpt-oss-120b.h100x4-paper").expect("a preset")),
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        enable_prompt_tokens_details: true,
        ..EngineConfig::default()
    };
    spawn_thread(config).expect("an engine")
}

fn config(addresses: &[String], balancing: &str) -> String {
    let endpoints = addresses
        .iter()
        .map(|at| format!("{{ url: http://{at}/v1 }}"));
    format!(
        "backends: {{ pool: {{ endpoints: [ {} ], balancing: {balancing} }} }}\n\
         routes: [ {{ workload: w, backend: pool }} ]\n",
        endpoints.collect::<Vec<_>>().join(", ")
    )
}

/// A turn of a conversation: its beginning is the one before.
fn turn(conversation: usize, turns: usize) -> Vec<u8> {
    let said = |nth: usize| {
        let text = format!("conversation {conversation} turn {nth} ").repeat(400);
        json!({ "role": "user", "content": text })
    };
    let messages: Vec<Value> = (0..turns).map(said).collect();
    let body = json!({ "model": "gpt-oss-120b", "max_tokens": 1, "messages": messages });
    let id = format!("x-request-id: {conversation}-{turns}");
    post(
        "/v1/chat/completions",
        &["x-workload-app: w", &id],
        &body.to_string(),
    )
}

fn answered(gate: &Gate, request: &[u8]) -> Value {
    let response = gate.call(request);
    assert_eq!(
        response.status,
        200,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    serde_json::from_slice(&response.body).expect("JSON")
}

fn chosen(gate: &Gate, reason: &str) -> f64 {
    let label = format!("reason=\"{reason}\"");
    let endpoints = ["pool#1", "pool#2", "pool#3"];
    let of = |name: &&str| {
        let endpoint = format!("endpoint=\"{name}\"");
        gate.metric("tollgate_balancing_chosen_total", &[&label, &endpoint])
    };
    endpoints.iter().map(of).sum()
}

#[test]
fn turns_of_a_conversation_go_to_the_engine_that_has_seen_it() {
    let engines = [engine(), engine(), engine()];
    let addresses: Vec<String> = engines.iter().map(|e| e.addr().to_string()).collect();
    let gate = Gate::start(&config(&addresses, "prefix_cache"), &[]);
    let asked = |gate: &Gate| {
        let labels = ["service=\"engine_metrics\"", "result=\"answered\""];
        gate.metric("tollgate_callout_questions_total", &labels)
    };
    eventually("each engine says what it has to do", || asked(&gate) >= 3.0);
    let mut cached = 0;
    for turns in 1..=3 {
        for conversation in 0..6 {
            let answer = answered(&gate, &turn(conversation, turns));
            let details = &answer["usage"]["prompt_tokens_details"];
            cached += details["cached_tokens"].as_u64().unwrap_or(0);
        }
    }
    assert_eq!(chosen(&gate, "load"), 6.0, "each conversation once");
    assert_eq!(
        chosen(&gate, "prefix"),
        12.0,
        "and every further turn of it"
    );
    assert!(
        cached > 2000,
        "the engines had {cached} tokens of the prompts"
    );
    let records = gate.records(18);
    let of = |conversation: usize| {
        let id = format!("{conversation}-");
        let is_of = move |record: &&Value| {
            let own = record["request_id"].as_str();
            own.is_some_and(|own| own.starts_with(&id))
        };
        records.iter().filter(is_of)
    };
    for conversation in 0..6 {
        let endpoints: Vec<&Value> = of(conversation).map(|record| &record["endpoint"]).collect();
        assert_eq!(endpoints.len(), 3);
        let is_one = endpoints.iter().all(|one| *one == endpoints[0]);
        assert!(is_one, "{conversation}: {endpoints:?}");
    }
    let last = of(5)
        .find(|record| record["request_id"] == "5-3")
        .expect("a record");
    assert_eq!(last["chosen_by"], "prefix");
    let bytes = |name: &str| last[name].as_u64().expect("bytes");
    assert!(bytes("prefix_bytes") * 2 > bytes("prompt_bytes"), "{last}");
    eventually("nothing runs any more", || {
        gate.metric("tollgate_balancing_in_flight", &["endpoint=\"pool#1\""]) == 0.0
    });
}

#[test]
fn an_engine_that_says_it_is_full_is_passed_over_and_one_that_is_gone_is_not_missed() {
    let engine = |waiting: u32| {
        Upstream::start(move |_, seen| {
            let (kind, body) = if seen.head.starts_with("GET /metrics ") {
                let page = format!(
                    "vllm:num_requests_running 8\nvllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc 0.4\n"
                );
                ("text/plain", page)
            } else {
                let usage = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
                ("application/json", usage.to_owned())
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            vec![Step::Send((head + &body).into_bytes())]
        })
    };
    let (busy, free) = (engine(30), engine(0));
    let addresses = [
        busy.address.to_string(),
        free.address.to_string(),
        "127.0.0.1:9".to_owned(),
    ];
    let balancing = "{ policy: least_load, every: 20ms }";
    let gate = Gate::start(&config(&addresses, balancing), &[]);
    let waiting = |endpoint: &str| {
        let label = format!("endpoint=\"{endpoint}\"");
        let page = gate.metrics();
        let mut lines = page.lines();
        let name = "tollgate_balancing_engine_waiting{";
        lines.any(|line| line.starts_with(name) && line.contains(&label))
    };
    eventually("both engines say what they have to do", || {
        waiting("pool#1") && waiting("pool#2")
    });
    for _ in 0..8 {
        answered(&gate, &turn(1, 1));
    }
    let records = gate.records(8);
    let at = |name: &str| {
        records
            .iter()
            .filter(|record| record["endpoint"] == name)
            .count()
    };
    // Nobody is at the third address, which says nothing and so seems free: the call goes on where somebody is.
    assert_eq!(at("pool#1"), 0, "{records:?}");
    assert_eq!(at("pool#2"), 8, "{records:?}");
    assert!(!waiting("pool#3"));
    assert!(
        gate.log().contains("cannot read the engine's load"),
        "{}",
        gate.log()
    );
}

#[test]
fn explain_says_how_addresses_share_calls() {
    let addresses = ["127.0.0.1:9".to_owned(), "127.0.0.1:10".to_owned()];
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("tollgate.yaml");
    let listen = "listen: { data: 127.0.0.1:1975, admin: 127.0.0.1:1976 }\nidentity: { header: x-workload-app }\n";
    std::fs::write(
        &file,
        format!("{listen}{}", config(&addresses, "prefix_cache")),
    )
    .expect("a file");
    let asked = ["explain", "--header", "x-workload-app: w", "--model", "m"];
    let said = crate::harness::tollgate(dir.path(), &asked, &[("COLUMNS", "160")]);
    assert!(
        said.out.contains("prefix_cache: of 2 addresses of pool"),
        "{said:?}"
    );
}
