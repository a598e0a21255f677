//! The simplest case: one engine, one route, one call.

use engine::{EngineConfig, spawn_thread};

use crate::harness::{Gate, Step, Upstream, chat, post};

#[test]
fn a_call_goes_through_and_leaves_one_record() {
    let engine = spawn_thread(EngineConfig {
        listen: "127.0.0.1:0".parse().expect("an address"),
        api_key: Some("engine-key".into()),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ file: key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[("key", b"engine-key\n")]);
    let headers = ["x-workload-app: w", "authorization: Bearer client-key"];
    let response = gate.call(&post(
        "/v1/chat/completions",
        &headers,
        &chat("gpt-oss-120b", false),
    ));
    assert_eq!(response.status, 200, "{}", response.text());
    let usage = &response.json()["usage"];
    let records = gate.records(1);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["prompt_tokens"], usage["prompt_tokens"]);
    assert_eq!(records[0]["completion_tokens"], usage["completion_tokens"]);
    assert_eq!(records[0]["completion_source"], "reported");
}

#[test]
fn an_upstream_that_resets_becomes_502() {
    let upstream = Upstream::start(|_, _| vec![Step::Reset]);
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let response = gate.call(&post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    ));
    assert_eq!(
        (response.status, response.code().as_str()),
        (502, "upstream_reset")
    );
    assert_eq!(
        upstream.seen()[0].header("x-workload-app"),
        Vec::<String>::new()
    );
}
