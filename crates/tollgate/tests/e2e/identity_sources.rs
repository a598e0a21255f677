//! Callers that prove who they are: keys of the gate's own, signed tokens, tokens that are asked about.
//!
//! Not here: identity headers alone (`identity`), which source decides (`policy::identity`), attacks on tokens (`jose`).

mod authority;
pub(crate) mod issuer;
mod keys;
mod kube_apiserver;
mod kubernetes;
mod login;
mod matrix;
mod openid;
pub(crate) mod provider;
mod tokens;

use serde_json::Value;

use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Gate, Response, Step, Upstream, chat, post};

/// An upstream that answers every call.
fn echo() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))])
}

/// Two workloads, `chat` and `ci`, and these sources of identities.
fn config(upstream: &Upstream, identity: &str) -> String {
    format!(
        "workers: 1\nidentity: {identity}\n\
         backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: [chat, ci], backend: up }} ]\n",
        upstream.address
    )
}

/// A call with these header lines.
fn call(gate: &Gate, lines: &[&str]) -> Response {
    gate.call(&post("/v1/chat/completions", lines, &chat("m", false)))
}

/// Its status and code, as the SDKs read them.
fn told(response: &Response) -> (u16, String) {
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    let code = body["error"]["code"].as_str().unwrap_or_default();
    (response.status, code.to_owned())
}

fn bearer(credential: &str) -> String {
    format!("authorization: Bearer {credential}")
}

/// The bad credential is told as every other one is.
fn assert_invalid(response: &Response, what: &str) {
    assert_eq!(
        told(response),
        (401, "invalid_api_key".to_owned()),
        "{what}: {}",
        response.text()
    );
    assert_eq!(
        response.header("www-authenticate"),
        Some("Bearer error=\"invalid_token\""),
        "{what}"
    );
    assert!(
        response.text().contains("the credential is not valid here"),
        "{what}"
    );
}
