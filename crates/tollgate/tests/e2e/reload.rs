//! Reloads of configuration, secrets and certificates while the gate runs, without effect on open exchanges.
//!
//! Not here: which configurations are valid (unit tests of `config`).

mod leaks;
mod preserved;
mod refused;
mod secret;
mod streams;

use std::net::SocketAddr;

use serde_json::Value;

use crate::harness::{Gate, Response, chat, post};

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

/// The version of the active configuration.
fn version(gate: &Gate) -> String {
    let page: Value = gate.admin("/config").json();
    page["version"].as_str().expect("a version").to_owned()
}

/// Replaces the configuration, sends SIGHUP, and waits until it is active.
fn reload(gate: &Gate, config: &str) {
    let before = version(gate);
    gate.reconfigure(config);
    gate.signal(libc::SIGHUP);
    testing::eventually("the configuration is taken", || version(gate) != before);
}

#[test]
fn a_signal_to_reload_that_comes_during_the_start_does_not_end_the_gate() {
    let upstream = crate::harness::Upstream::start(|_, _| {
        vec![crate::harness::Step::Send(crate::harness::answer::json(
            200, "{}",
        ))]
    });
    let gate = Gate::start_hung_up(&one_route(upstream.address));
    assert_eq!(call(&gate, "w").status, 200);
}
