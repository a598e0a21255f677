//! The SDKs of OpenAI and Anthropic through the gate; the scripts `sdk/surface` and `sdk/messages` assert the results.
//!
//! Not here: the white paper's policies (`white_paper`).

use std::time::Duration;

use engine::{EngineConfig, EngineHandle, spawn_thread};
use serde_json::{Value, json};
use testing::eventually;

use crate::harness::{Gate, Sdk, free_address};

/// The checks that both scripts must report, so that neither can omit one.
const SHOWN: [&str; 11] = [
    "chat_whole",
    "chat_streamed_without_usage_asked",
    "chat_streamed_with_usage_asked",
    "chat_cut_by_length",
    "tool_calls",
    "responses",
    "completions",
    "embeddings",
    "models",
    "errors",
    "fifty_at_once",
];

#[test]
fn the_python_sdk_works_with_every_dialect() {
    surface(Sdk::Python);
}

#[test]
fn the_node_sdk_works_with_every_dialect() {
    surface(Sdk::Node);
}

#[test]
fn the_anthropic_sdk_works_with_messages() {
    let engine = spawn_thread(EngineConfig {
        models: vec!["gpt-oss-120b".into()],
        api_key: Some("engine-key".into()),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let config = format!(
        "backends:\n  up: {{ url: http://{}/v1, credential: {{ file: key }} }}\n\
         routes:\n  - {{ workload: open, backend: up, model: gpt-oss-120b }}\n\
         \x20 - {{ workload: tight, backend: up, limits: [ {{ tokens: 10, per: 1h }} ] }}\n\
         \x20 - {{ workload: named, match: {{ model: [claude-of-ours, small] }}, backend: up }}\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[("key", b"engine-key")]);
    let input = json!({ "base_url": format!("http://{}", gate.data) });
    let shown = json!(["whole", "streamed", "tool", "limited", "unknown", "models"]);
    assert_eq!(Sdk::Python.run("messages", &input), shown);
    the_records_say_what_the_engine_says(&gate, &engine, 3);
    let is_message = |r: &Value| r["operation"] == "messages" || r["operation"] == "models";
    let refused = |r: &Value| r["outcome"] == "refused";
    assert!(gate.records(1).iter().all(|r| is_message(r) || refused(r)));
}

#[test]
fn an_sdk_script_fails_when_nothing_answers() {
    let closed = free_address();
    for sdk in Sdk::BOTH {
        let call = json!({ "headers": {}, "body": { "model": "m", "messages": [] } });
        let input = json!({ "base_url": format!("http://{closed}/v1"), "calls": [call] });
        let ended = sdk.end("calls", &input);
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{sdk:?}");
        assert!(ended.err.contains("Connection error."), "{}", ended.err);
    }
}

fn surface(sdk: Sdk) {
    let engine = spawn_thread(EngineConfig {
        models: vec!["gpt-oss-120b".into(), "other".into()],
        api_key: Some("engine-key".into()),
        ttft: Duration::from_millis(2),
        inter_token: Duration::from_millis(1),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let config = format!(
        "backends:\n  up: {{ url: http://{}/v1, credential: {{ file: key }}, models: [gpt-oss-120b, other] }}\n\
         routes:\n  - {{ workload: open, backend: up }}\n\
         \x20 - {{ workload: tight, backend: up, limits: [ {{ requests: 1, per: 1m }} ] }}\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[("key", b"engine-key")]);
    let input = json!({ "base_url": format!("http://{}/v1", gate.data), "models": ["gpt-oss-120b", "other"] });
    assert_eq!(sdk.run("surface", &input), json!(SHOWN));
    the_records_say_what_the_engine_says(&gate, &engine, 100);
}

/// Asserts that records and tokens of generated answers are as many as the engine counts.
fn the_records_say_what_the_engine_says(gate: &Gate, engine: &EngineHandle, least: u64) {
    let stats = engine.stats();
    assert_eq!(stats.finished_abort, 0);
    let ended = stats.finished_stop + stats.finished_length;
    assert!(ended >= least, "{stats:?}");
    let generated = || -> Vec<Value> {
        let reported = |r: &Value| r["prompt_source"] == "reported";
        gate.records(1).into_iter().filter(reported).collect()
    };
    eventually("every answer has its record", || {
        generated().len() as u64 >= ended
    });
    let records = generated();
    assert!(
        records
            .iter()
            .all(|r| r["status"] == 200 && r["outcome"] == "completed")
    );
    let sum = |name: &str| records.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    assert_eq!(
        (
            records.len() as u64,
            sum("prompt_tokens"),
            sum("completion_tokens")
        ),
        (ended, stats.prompt_tokens, stats.generation_tokens)
    );
}
