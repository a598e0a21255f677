//! Credentials: those of a client never reach a backend; the gate's own does, exactly once.
//!
//! Invariant: whatever form the client's credential has, the upstream sees one credential, the
//! gate's. Faults H5, H7 and H8.
//! Not here: secrets in logs, metrics and pages.

mod forwarding;

use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Gate, Seen, Step, Upstream, chat, post};

const OURS: &str = "the-gates-own-secret";
const THEIRS: &str = "malicious-canary";

fn echo() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))])
}

/// A gate whose backend has this credential, as written after `credential:`; empty for none.
fn gate(upstream: &Upstream, credential: &str) -> Gate {
    let credential = if credential.is_empty() {
        String::new()
    } else {
        format!(", credential: {credential}")
    };
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1{credential} }} }}\n\
         routes: [ {{ workload: w, backend: up, forward_headers: x-custom }} ]\n",
        upstream.address
    );
    Gate::start(&config, &[("secret", format!("{OURS}\n").as_bytes())])
}

/// Header lines in which a client may carry a credential, each alone.
fn lines() -> Vec<String> {
    let forms = [
        "authorization: Bearer {}",
        "Authorization: bearer {}",
        "AUTHORIZATION: {}",
        "authorization: Bearer Bearer {}",
        "authorization:\tBearer\t{}",
        "authorization: Basic {}",
        "authorization: Bearer '; DROP TABLE keys; -- {}",
        "authorization: Bearer \"{}\"",
        "x-api-key: {}",
        "X-Api-Key: {}",
        "api-key: {}",
        "x-goog-api-key: {}",
        "x-goog-user-project: {}",
        "cookie: session={}",
        "proxy-authorization: Bearer {}",
        "openai-organization: {}",
        "OpenAI-Project: {}",
        "anthropic-version: {}",
        "anthropic-beta: {}",
        "anthropic-api-key: {}",
        "anthropic-auth-token: {}",
        "anthropic-dangerous-direct-browser-access: {}",
        "x-amz-security-token: {}",
        "x-amz-date: {}",
        "x-amz-content-sha256: {}",
        "sec-websocket-protocol: realtime, openai-insecure-api-key.{}",
        "x-auth-token: {}",
        "x-access-token: {}",
        "x-authorization: {}",
        "x-forwarded-authorization: {}",
        "x-openai-api-key: {}",
        "x-custom-key: {}",
        "x-apikey: {}",
        "x-secret: {}",
        "x-client-secret: {}",
        "x-jwt-assertion: {}",
        "x-csrf-token: {}",
        "x-vault-token: {}",
        "x-password: {}",
        "ocp-apim-subscription-key: {}",
        "cf-access-jwt-assertion: {}",
        "x_api_key: {}",
        "x-forwarded-for: {}",
        "x-forwarded-user: {}",
        "forwarded: for={}",
        "x-real-ip: {}",
        "via: 1.1 {}",
        "referer: https://a/?key={}",
    ];
    forms
        .iter()
        .map(|form| form.replace("{}", THEIRS))
        .collect()
}

/// Credentials in the headers that any provider reads one from.
fn credentials(seen: &Seen) -> Vec<String> {
    let names = [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "proxy-authorization",
        "cookie",
        "x-auth-token",
    ];
    names.iter().flat_map(|name| seen.header(name)).collect()
}

#[test]
fn each_form_of_client_credential_is_stripped_and_the_gates_is_sent_once() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret }");
    let mut connection = Connection::open(gate.data);
    for line in lines() {
        let request = post(
            "/v1/chat/completions",
            &["x-workload-app: w", &line],
            &chat("m", false),
        );
        let response = connection.call(&request);
        assert_eq!(response.status, 200, "{line}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert!(
            !seen.head.contains(THEIRS),
            "{line} crossed:\n{}",
            seen.head
        );
        assert_eq!(credentials(&seen), [format!("Bearer {OURS}")], "{line}");
        assert_eq!(seen.head.matches(OURS).count(), 1, "{line}:\n{}", seen.head);
    }
    assert_eq!(upstream.seen().len(), lines().len());
}

#[test]
fn each_form_of_credential_in_a_query_is_stripped() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret }");
    let mut connection = Connection::open(gate.data);
    let names = [
        "key",
        "api-key",
        "api_key",
        "apikey",
        "API-KEY",
        "%6bey",
        "k%65y",
        "access_token",
        "token",
        "auth",
        "sig",
        "signature",
        "x-amz-signature",
        "X-Goog-Signature",
        "client_secret",
        "password",
        "key[]",
        "a;key",
    ];
    for name in names {
        let path = format!("/v1/chat/completions?beta=true&{name}={THEIRS}&api-version=2");
        let request = post(&path, &["x-workload-app: w"], &chat("m", false));
        let response = connection.call(&request);
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert!(
            !seen.head.contains(THEIRS),
            "{name} crossed:\n{}",
            seen.head
        );
        assert!(
            seen.head
                .starts_with("POST /v1/chat/completions?beta=true&api-version=2 HTTP/1.1\r\n"),
            "{name}:\n{}",
            seen.head
        );
        assert_eq!(credentials(&seen), [format!("Bearer {OURS}")], "{name}");
    }
}

#[test]
fn two_credentials_are_refused_without_calling_an_upstream() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret }");
    let cases = [
        (
            "/v1/chat/completions",
            "authorization: Bearer a\r\nauthorization: Bearer b",
        ),
        ("/v1/chat/completions", "authorization: Bearer a, Bearer b"),
        (
            "/v1/chat/completions",
            "authorization: Bearer a\r\nx-api-key: b",
        ),
        ("/v1/chat/completions", "api-key: a\r\nx-goog-api-key: b"),
        ("/v1/chat/completions?key=a", "authorization: Bearer b"),
        ("/v1/chat/completions?key=a&api-key=b", "accept: */*"),
    ];
    for (path, lines) in cases {
        let response = gate.call(&post(
            path,
            &["x-workload-app: w", lines],
            &chat("m", false),
        ));
        assert_eq!(
            (response.status, response.code().as_str()),
            (400, "conflicting_credentials"),
            "{path} {lines}"
        );
    }
    assert_eq!((upstream.seen().len(), upstream.connections()), (0, 0));
}

#[test]
fn a_credential_for_another_header_is_sent_without_a_scheme() {
    let upstream = echo();
    let credential = "{ file: secret, header: api-key }";
    let gate = gate(&upstream, credential);
    for line in [
        "api-key: theirs",
        "authorization: Bearer theirs",
        "accept: */*",
    ] {
        let headers = ["x-workload-app: w", line];
        let response = gate.call(&post("/v1/chat/completions", &headers, &chat("m", false)));
        assert_eq!(response.status, 200);
        let seen = upstream.seen().pop().expect("it arrived");
        assert_eq!(seen.header("api-key"), [OURS], "{line}");
        assert_eq!(credentials(&seen), [OURS], "{line}");
    }
}

#[test]
fn another_scheme_is_sent_as_configured() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret, scheme: Key }");
    gate.call(&post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    ));
    assert_eq!(credentials(&upstream.seen()[0]), [format!("Key {OURS}")]);
}

#[test]
fn a_backend_without_credential_gets_none() {
    let upstream = echo();
    let gate = gate(&upstream, "");
    let mut connection = Connection::open(gate.data);
    for line in lines() {
        let request = post(
            "/v1/chat/completions",
            &["x-workload-app: w", &line],
            &chat("m", false),
        );
        assert_eq!(connection.call(&request).status, 200, "{line}");
        let seen = upstream.seen().pop().expect("it arrived");
        assert!(credentials(&seen).is_empty(), "{line}:\n{}", seen.head);
        assert!(
            !seen.head.contains(THEIRS),
            "{line} crossed:\n{}",
            seen.head
        );
    }
}

#[test]
fn a_client_cannot_remove_the_gates_headers_by_connection_options() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret }");
    for names in [
        "x-workload-app, authorization",
        "close, authorization, host, content-length, content-type, x-request-id",
        "Authorization",
        "keep-alive, X-Custom",
    ] {
        let connection = format!("connection: {names}");
        let headers = ["x-workload-app: w", &connection, "x-custom: theirs"];
        let response = gate.call(&post("/v1/chat/completions", &headers, &chat("m", false)));
        assert_eq!(response.status, 200, "{names}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert_eq!(credentials(&seen), [format!("Bearer {OURS}")], "{names}");
        assert_eq!(seen.header("content-type"), ["application/json"], "{names}");
        assert_eq!(
            seen.header("host"),
            [upstream.address.to_string()],
            "{names}"
        );
        assert_eq!(seen.header("x-request-id").len(), 1, "{names}");
        assert!(
            seen.header("connection").is_empty(),
            "{names}:\n{}",
            seen.head
        );
        assert!(seen.header("x-workload-app").is_empty(), "{names}");
        assert_eq!(
            seen.header("x-custom").is_empty(),
            names.contains("X-Custom"),
            "{names}"
        );
        assert_eq!(seen.body, chat("m", false).as_bytes());
    }
}

#[test]
fn each_endpoint_gets_its_own_credential_also_on_failover() {
    let first = Upstream::start(|_, _| vec![Step::Send(json(503, "{}"))]);
    let second = echo();
    let config = format!(
        "backends:\n  first: {{ url: http://{}/v1, credential: {{ file: secret }} }}\n  \
         second: {{ url: http://{}/v1, credential: {{ inline: second-secret, header: x-api-key }} }}\n\
         routes: [ {{ workload: w, backend: [first, second] }} ]\n",
        first.address, second.address
    );
    let gate = Gate::start(&config, &[("secret", OURS.as_bytes())]);
    let headers = ["x-workload-app: w", "authorization: Bearer theirs"];
    gate.call(&post("/v1/chat/completions", &headers, &chat("m", false)));
    assert_eq!(credentials(&first.seen()[0]), [format!("Bearer {OURS}")]);
    assert_eq!(credentials(&second.seen()[0]), ["second-secret"]);
}

#[test]
fn a_rotated_secret_is_used_without_a_restart() {
    let upstream = echo();
    let gate = gate(&upstream, "{ file: secret }");
    let mut connection = Connection::open(gate.data);
    for n in 0..3 {
        let secret = format!("rotated-{n}");
        gate.replace("secret", secret.as_bytes());
        testing::eventually("the new secret is in use", || {
            let request = post(
                "/v1/chat/completions",
                &["x-workload-app: w"],
                &chat("m", false),
            );
            assert_eq!(connection.call(&request).status, 200);
            let seen = upstream.seen().pop().expect("it arrived");
            credentials(&seen) == [format!("Bearer {secret}")]
        });
    }
}
