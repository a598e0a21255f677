//! Upstream faults and client disconnects: faults U1 to U5, U8 to U10, H13.
//!
//! Invariant: every answer is the upstream's own bytes, a typed error of the gate, or visibly cut
//! off; never an invented success. Each exchange leaves one record that says which.
//! Not here: retries elsewhere (`failover`), which usage is read (`usage`).

mod backpressure;
mod broken_streams;
mod compressed;
mod disconnects;
mod events;
mod heads;
mod invalid_answers;
mod read_to_end;
mod splits;
mod timeouts;
mod unnamed_streams;

use std::net::SocketAddr;

use serde_json::Value;

use crate::harness::{Gate, Response, Seen, chat, post};

/// One workload, one backend, one endpoint.
pub(crate) fn one(address: SocketAddr) -> String {
    format!(
        "backends: {{ up: {{ url: http://{address}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up, forward_headers: x-splits, return_headers: x-kept }} ]\n"
    )
}

/// A chat call of workload `w`; the model's name tells the upstream which case it is.
pub(crate) fn call(case: &str, stream: bool) -> Vec<u8> {
    post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat(case, stream),
    )
}

/// The case of a request.
pub(crate) fn case(seen: &Seen) -> String {
    seen.json()["model"]
        .as_str()
        .expect("a model is sent")
        .to_owned()
}

/// The only record of a call with this model.
pub(crate) fn record(gate: &Gate, calls: usize, case: &str) -> Value {
    let records = gate.records(calls);
    let mut of_case = records.into_iter().filter(|r| r["model"] == case);
    let record = of_case
        .next()
        .unwrap_or_else(|| panic!("no record of {case}"));
    assert!(of_case.next().is_none(), "a second record of {case}");
    record
}

/// Asserts a typed error in OpenAI's shape.
pub(crate) fn assert_error(response: &Response, status: u16, code: &str, case: &str) {
    assert_eq!(response.status, status, "{case}: {}", response.text());
    assert_eq!(response.code(), code, "{case}");
    assert!(response.header("x-request-id").is_some(), "{case}");
    assert_eq!(
        response.header("content-type"),
        Some("application/json"),
        "{case}"
    );
    let error = &response.json()["error"];
    assert!(
        error["message"].as_str().is_some_and(|m| !m.is_empty()),
        "{case}"
    );
    assert!(
        error["type"].is_string() && error.get("param").is_some(),
        "{case}"
    );
}
