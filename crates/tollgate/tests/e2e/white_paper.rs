//! The white paper's three policies against the running demo, by the real OpenAI SDKs.
//!
//! Invariant: every case runs with each SDK, streaming and not, each time on a fresh demo, because
//! limits are by the minute.

mod credential;
mod limit;
mod route;

use serde_json::{Value, json};

use crate::harness::{Demo, Sdk};

/// A chat call under a workload, for the script `calls`.
fn call(workload: &str, stream: bool) -> Value {
    json!({
        "headers": { "x-workload-app": workload },
        "body": {
            "model": "gpt-oss-120b",
            "messages": [{ "role": "user", "content": "Hello" }],
            "stream": stream,
        },
    })
}

/// Makes these calls with the SDK, one after the other; returns one outcome for each.
fn make(sdk: Sdk, demo: &Demo, calls: &[Value]) -> Vec<Value> {
    let input = json!({ "base_url": demo.base_url(), "calls": calls });
    let outcomes = sdk.run("calls", &input).as_array().expect("a list").clone();
    assert_eq!(outcomes.len(), calls.len());
    outcomes
}
