//! Limits end to end: exact across connections, reported in headers, counted in metrics.
//!
//! Invariant: over a window no more is admitted than limit plus burst; a refusal carries `retry-after`,
//! never reaches the upstream, and takes nothing from other limits.
//! Not here: the arithmetic of one bucket (`policy::limit`).

mod requests;
mod tokens;

use crate::harness::answer::{counts, json};
use crate::harness::{Gate, Response, Seen, Step, Upstream, post};

/// Answers at once and reports the usage that the call's `user` member names: `7,3`.
fn engine() -> Upstream {
    Upstream::start(|_, seen| vec![Step::Send(json(200, &answer(seen)))])
}

fn answer(seen: &Seen) -> String {
    if seen.body.is_empty() {
        return "{}".to_owned();
    }
    let call = seen.json();
    let (prompt, completion) = call["user"]
        .as_str()
        .and_then(|u| u.split_once(','))
        .unwrap_or(("7", "3"));
    let counts = counts(
        prompt.parse().expect("a count"),
        completion.parse().expect("a count"),
    );
    format!(r#"{{"id":"c","choices":[],"usage":{counts}}}"#)
}

/// Workloads `a` and `b` under these limits.
fn config(upstream: &Upstream, limits: &str) -> String {
    format!(
        "workers: 2\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: [a, b], backend: up, limits: [ {limits} ] }} ]\n",
        upstream.address
    )
}

/// A call of a workload that caps its output and is reported this usage.
fn call(workload: &str, cap: u64, usage: &str) -> Vec<u8> {
    let body = format!(r#"{{"model":"m","max_tokens":{cap},"user":"{usage}","messages":[]}}"#);
    post(
        "/v1/chat/completions",
        &[&format!("x-workload-app: {workload}")],
        &body,
    )
}

/// A call that uses one request and no tokens.
fn call_without_tokens(workload: &str) -> Vec<u8> {
    format!("GET /v1/models HTTP/1.1\r\nhost: g\r\nx-workload-app: {workload}\r\n\r\n").into()
}

fn number(response: &Response, name: &str) -> u64 {
    let value = response
        .header(name)
        .unwrap_or_else(|| panic!("no {name} in {response:?}"));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

/// The metric of a workload's refusals.
fn refused(gate: &Gate, workload: &str, kind: &str) -> f64 {
    let labels = [
        format!("workload=\"{workload}\""),
        format!("kind=\"{kind}\""),
    ];
    gate.metric(
        "http_local_rate_limit_rate_limited",
        &[&labels[0], &labels[1]],
    )
}

fn assert_refused(response: &Response, what: &str) {
    assert_eq!(
        (response.status, response.code().as_str()),
        (429, "rate_limit_exceeded"),
        "{what}"
    );
    assert_eq!(response.json()["error"]["type"], "rate_limit_error");
    let ms = number(response, "retry-after-ms");
    assert!(ms > 0, "{what}");
    assert_eq!(number(response, "retry-after"), ms.div_ceil(1000), "{what}");
    assert_eq!(response.header("x-should-retry"), None, "{what}: it may");
}
