//! Which calls are forwarded, and which of their parts: operations, listed calls, headers, queries.
//!
//! Invariant: a refused call never reaches the upstream; a forwarded call is metered, or charged as its
//! route says.
//! Not here: paths and heads that are ambiguous (`framing`), credentials (`credentials`).

mod headers;
mod listed;
mod metered;
mod models_besides;
mod shared_addresses;
mod stored_objects;

use crate::harness::answer::json;
use crate::harness::{Gate, Response, Seen, Step, Upstream, chat, post, tollgate};

fn quiet() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, "{}"))])
}

fn request(method: &str, target: &str, workload: &str) -> Vec<u8> {
    if matches!(method, "GET" | "HEAD" | "DELETE") {
        return format!(
            "{method} {target} HTTP/1.1\r\nhost: g\r\nx-workload-app: {workload}\r\n\r\n"
        )
        .into();
    }
    let who = format!("x-workload-app: {workload}");
    let text = String::from_utf8(post(target, &[&who], &chat("m", false))).expect("text");
    text.replacen("POST", method, 1).into()
}

/// Asserts a refusal that did not reach the upstream; returns its message.
fn refused(gate: &Gate, upstream: &Upstream, bytes: &[u8], status: u16, code: &str) -> String {
    let before = upstream.seen().len();
    let response = gate.call(bytes);
    let what = String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        (response.status, response.code().as_str()),
        (status, code),
        "{what}: {}",
        response.text()
    );
    assert_eq!(upstream.seen().len(), before, "{what} reached the upstream");
    let message = response.json()["error"]["message"].clone();
    message.as_str().expect("a message").to_owned()
}

/// Asserts that a call is forwarded; returns what the upstream saw.
fn passed(gate: &Gate, upstream: &Upstream, bytes: &[u8]) -> (Seen, Response) {
    let response = gate.call(bytes);
    let what = String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(response.status, 200, "{what}: {}", response.text());
    (upstream.seen().pop().expect("it arrived"), response)
}

#[test]
fn an_operation_neither_known_nor_listed_is_not_forwarded() {
    let upstream = quiet();
    let gate = Gate::start(
        &format!(
            "backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: ours }} }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n",
            upstream.address
        ),
        &[],
    );
    for (method, path) in [
        ("POST", "/v1/v1/chat/completions"),
        ("POST", "/v1/batches"),
        ("POST", "/v1/fim/completions"),
        ("POST", "/v1/files"),
        ("GET", "/v1/files"),
        ("GET", "/v1/files/file-1/content"),
        ("DELETE", "/v1/files/file-1"),
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/chat/completions/chat-1"),
        ("DELETE", "/v1/chat/completions/chat-1"),
        ("POST", "/v1/chat/completions/chat-1"),
        ("POST", "/v1/realtime/client_secrets"),
        ("POST", "/v1/load_lora_adapter"),
        ("POST", "/v1/conversations"),
        ("PUT", "/v1/x"),
        ("PATCH", "/v1/x"),
        ("DELETE", "/v1/models/m"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/chat/completions%3Fa=b"),
        ("POST", "/v1/chat/completion%c5%bf"),
        ("POST", "/v1/chat/%EF%BD%83ompletions"),
        ("POST", "/v1/Chat/Completions"),
        ("POST", "/v1/chat/completions%20"),
        ("GET", "/v1/models/a%3Fb"),
    ] {
        let bytes = request(method, path, "w");
        let message = refused(&gate, &upstream, &bytes, 404, "operation_not_allowed");
        let nearly = [
            "/v1/chat/completions/",
            "/v1/Chat/Completions",
            "/v1/v1/chat/completions",
        ];
        let is_nearly_one = nearly.contains(&path);
        let says = match path {
            _ if is_nearly_one => "/v1/chat/completions was meant",
            _ if path.starts_with("/v1/batches") || path.starts_with("/v1/files") => "`batches`",
            _ => "`unread`",
        };
        assert!(message.contains(says), "{message}");
        assert!(message.contains(&format!("{method} {path}")), "{message}");
    }
    let escaped = request("POST", "/v1/%63hat/completions", "w");
    refused(&gate, &upstream, &escaped, 400, "ambiguous_path");
    let stored = request("GET", "/v1/chat/completions", "w");
    refused(&gate, &upstream, &stored, 405, "method_not_allowed");
    let stranger = request("POST", "/v1/files", "nobody");
    refused(&gate, &upstream, &stranger, 404, "workload_not_registered");
}

#[test]
fn an_engine_at_the_root_needs_at_root_and_no_path_bypasses_the_operation_rules() {
    let upstream = quiet();
    let config = |more: &str| {
        format!(
            "backends: {{ up: {{ url: http://{}{more} }} }}\n\
             routes: [ {{ workload: w, backend: up, match: {{ model: m }} }} ]\n",
            upstream.address
        )
    };
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), config("")).expect("a file");
    let checked = tollgate(dir.path(), &["check", "-c", "tollgate.yaml"], &[]);
    let said = format!("{}{}", checked.out, checked.err);
    assert_eq!(checked.code, Some(1), "{said}");
    assert!(
        said.contains("backends.up.url: ") && said.contains("has no path"),
        "{said}"
    );
    assert!(
        said.contains("/v1") && said.contains("at_root: true"),
        "{said}"
    );

    let gate = Gate::start(&config(", at_root: true"), &[]);
    let (seen, _) = passed(
        &gate,
        &upstream,
        &request("POST", "/v1/chat/completions", "w"),
    );
    assert!(
        seen.head.starts_with("POST /chat/completions HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    let round = request("POST", "/v1/v1/chat/completions", "w");
    refused(&gate, &upstream, &round, 404, "operation_not_allowed");
}

#[test]
fn a_background_response_is_refused_with_background_not_served() {
    let upstream = quiet();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let call = |body: &str| post("/v1/responses", &["x-workload-app: w"], body);
    for body in [
        r#"{"model":"m","background":true}"#,
        r#"{"model":"m","b\u0061ckground":true,"stream":true}"#,
        r#"{"background":1,"input":"x"}"#,
    ] {
        let message = refused(&gate, &upstream, &call(body), 400, "background_not_served");
        assert!(message.contains("background"), "{message}");
    }
    let twice = r#"{"background":false,"background":true}"#;
    refused(&gate, &upstream, &call(twice), 400, "duplicate_member");
    passed(
        &gate,
        &upstream,
        &call(r#"{"model":"m","background":false}"#),
    );
    passed(
        &gate,
        &upstream,
        &call(r#"{"model":"m","background":null}"#),
    );
}
