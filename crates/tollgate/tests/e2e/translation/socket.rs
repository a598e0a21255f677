//! Calls over a WebSocket of the Responses API: each admitted, held, settled and recorded by itself.
//!
//! Not here: frames (`wire::websocket`).

use serde_json::{Value, json};
use testing::eventually;

use super::engine;
use crate::harness::{Gate, Sdk};

#[test]
fn the_openai_sdk_calls_over_a_websocket_and_each_call_is_admitted_and_metered() {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
         routes:\n  - {{ workload: open, match: {{ model: m }}, backend: up }}\n  \
         - {{ workload: tight, match: {{ model: m }}, backend: up, limits: [ {{ requests: 2, per: 1h }} ] }}\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[]);
    let input = json!({ "base_url": format!("http://{}", gate.data) });
    assert_eq!(
        Sdk::Python.run("responses_socket", &input),
        json!([
            "streamed",
            "goes_on",
            "loop_of_tools",
            "errors",
            "limited",
            "unknown",
            "closed"
        ])
    );
    let sockets = |r: &Value| r["operation"] == "responses_socket" && r["status"] == 101;
    eventually("the connections have their records", || {
        gate.records(1).iter().filter(|r| sockets(r)).count() == 3
    });
    let records = gate.records(1);
    let well = |r: &&Value| r["operation"] == "responses" && r["status"] == 200;
    let calls: Vec<&Value> = records.iter().filter(well).collect();
    assert!(calls.iter().all(|r| r["prompt_source"] == "reported"));
    assert!(calls.iter().all(|r| r["streamed"] == true));
    let stats = engine.stats();
    let sum = |name: &str| calls.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    assert_eq!(
        (sum("prompt_tokens"), sum("completion_tokens")),
        (stats.prompt_tokens, stats.generation_tokens)
    );
    let limited = |r: &&Value| r["code"] == "rate_limit_exceeded";
    assert_eq!(records.iter().filter(limited).count(), 1, "{records:?}");
}
