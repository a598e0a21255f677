//! What changes while the gate runs, and what must not be felt of it.
//!
//! Not here: what a configuration may say (`config`'s own tests).

mod preserved;
mod refused;
mod secret;
mod leaks;
mod streams;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Gate, Response, chat, eventually, post};

/// One backend and one workload `w`.
fn one_route(upstream: SocketAddr) -> String {
    format!(
        "backends: {{ up: {{ url: http://{upstream}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n"
    )
}

/// A call of this workload, not streaming.
fn call(gate: &Gate, workload: &str) -> Response {
    let workload = format!("x-workload-app: {workload}");
    gate.call(&post(
        "/v1/chat/completions",
        &[&workload],
        &chat("m", false),
    ))
}

/// The version in force.
fn version(gate: &Gate) -> String {
    let page: Value = gate.admin("/config").json();
    page["version"].as_str().expect("a version").to_owned()
}

/// Changes the configuration, tells the gate, and waits until it is in force.
fn change(gate: &Gate, config: &str) {
    let before = version(gate);
    gate.reconfigure(config);
    gate.signal(libc::SIGHUP);
    eventually(
        "the configuration is taken",
        Duration::from_secs(10),
        || version(gate) != before,
    );
}
