//! Responses that the gate keeps for clients whose backends keep none.
//!
//! Not here: what is kept for how long (`tollgate/src/responses`).

use serde_json::{Value, json};

use super::{WHO, engine};
use crate::harness::answer::json as answer;
use crate::harness::{Gate, Sdk, Step, Upstream, post};

const COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello, Ada."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#;

#[test]
fn the_openai_sdk_goes_on_from_responses_that_the_gate_keeps() {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
         responses: {{ store: {{ keep: 1h, size: 8MiB }} }}\n\
         routes:\n  - {{ workload: open, backend: up }}\n  - {{ workload: tight, backend: up }}\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[]);
    let input = json!({ "base_url": format!("http://{}", gate.data) });
    assert_eq!(
        Sdk::Python.run("kept_responses", &input),
        json!([
            "goes_on",
            "retrieved",
            "input_items",
            "of_its_caller_alone",
            "not_kept",
            "removed"
        ])
    );
    let kept = |r: &Value| r["operation"] == "kept_response" && r["status"] == 200;
    let records = gate.records(1);
    assert!(records.iter().any(kept), "{records:?}");
}

/// A gate in front of one backend that speaks chat completions; `more` is the rest of its configuration.
fn gate_of(up: &Upstream, more: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n{more}\
         routes: [ {{ workload: w, backend: up }} ]\n",
        up.address
    );
    Gate::start(&config, &[])
}

#[test]
fn a_backend_is_told_every_turn_before_and_no_id_of_the_gates() {
    let up = Upstream::start(|_, _| vec![Step::Send(answer(200, COMPLETION))]);
    let gate = gate_of(&up, "responses: { store: {} }\n");
    let body = r#"{"model":"m","input":"I am Ada.","instructions":"first"}"#;
    let first = gate.call(&post("/v1/responses", &[WHO], body));
    assert_eq!(first.status, 200, "{}", first.text());
    let first: Value = serde_json::from_slice(&first.body).expect("JSON");
    let id = first["id"].as_str().expect("an id");
    let body = format!(
        r#"{{"model":"m","previous_response_id":"{id}","input":[{{"role":"user","content":"Who?"}}]}}"#
    );
    let second = gate.call(&post("/v1/responses", &[WHO], &body));
    assert_eq!(second.status, 200, "{}", second.text());
    let asked = up.seen().pop().expect("it arrived").json();
    assert_eq!(
        asked["messages"],
        json!([
            { "role": "user", "content": "I am Ada." },
            { "role": "assistant", "content": "Hello, Ada." },
            { "role": "user", "content": "Who?" },
        ]),
        "{asked}"
    );
    assert!(!asked.to_string().contains(id), "{asked}");
}

#[test]
fn a_gate_without_a_store_says_what_to_do() {
    let up = Upstream::start(|_, _| vec![Step::Send(answer(200, COMPLETION))]);
    let gate = gate_of(&up, "");
    let body = r#"{"model":"m","input":"a","previous_response_id":"resp_1"}"#;
    let refused = gate.call(&post("/v1/responses", &[WHO], body));
    assert_eq!(refused.status, 400);
    let told = refused.text();
    assert!(
        told.contains("previous_response_id") && told.contains("responses.store"),
        "{told}"
    );
    let asked = gate.call(
        format!("GET /v1/responses/resp_1 HTTP/1.1\r\nhost: localhost\r\n{WHO}\r\n\r\n").as_bytes(),
    );
    assert_eq!(asked.status, 404, "{}", asked.text());
    assert!(asked.text().contains("operation_not_allowed"));
    assert!(up.seen().is_empty());
}
