//! Identity headers and client credentials: faults H5 to H8.
//!
//! Invariant: the upstream sees one credential, the gate's, and no identity header; conflicting
//! identities or credentials are refused.
//! Not here: rotation of secrets, which headers are credentials (`policy::credential`).

use crate::fixture::{After, Fixture, IDENTITY};
use crate::harness::{chat, post};

#[test]
fn h5_connection_options_cannot_remove_headers_that_the_gate_reads_or_sets() {
    let fixture = Fixture::new();
    let abuse = "connection: close, x-workload-app, authorization, host, content-length, x-request-id, content-type";
    let request = post(
        "/v1/chat/completions",
        &[IDENTITY, abuse, "x-own: 1"],
        &chat("m", false),
    );
    let seen = fixture.forwards(abuse, &request);
    assert_eq!(seen.header("authorization"), ["Bearer gate-key"]);
    assert_eq!(seen.header("host"), [fixture.upstream.address.to_string()]);
    assert_eq!(seen.header("content-type"), ["application/json"]);
    assert_eq!(seen.header("x-request-id").len(), 1);
    assert_eq!(seen.header("connection"), Vec::<String>::new());
    assert_eq!(seen.header("x-own"), ["1"]);
    // A client may name its own hop-by-hop headers.
    let request = post(
        "/v1/chat/completions",
        &[IDENTITY, "connection: x-own", "x-own: 1"],
        &chat("m", false),
    );
    assert_eq!(
        fixture.forwards("x-own", &request).header("x-own"),
        Vec::<String>::new()
    );
    // An identity header that is named there still counts.
    let request = post(
        "/v1/chat/completions",
        &["x-workload-app: nobody", "connection: x-workload-app"],
        &chat("m", false),
    );
    fixture.refuses(
        "hidden identity",
        &request,
        404,
        "workload_not_registered",
        After::Kept,
    );
    fixture.end();
}

#[test]
fn h6_an_identity_must_be_exactly_one_registered_value() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    let rows: &[(&[&str], u16, &str)] = &[
        (&[], 404, "workload_not_registered"),
        (&["x-workload-app:"], 404, "workload_not_registered"),
        (&["x-workload-app: W"], 404, "workload_not_registered"),
        (&["x-workload-app: w w"], 404, "workload_not_registered"),
        (
            &["x-workload-app: w\u{200b}"],
            404,
            "workload_not_registered",
        ),
        (
            &["x-workload-app: \u{ff57}"],
            404,
            "workload_not_registered",
        ),
        (&["x-workload-app: \"w\""], 404, "workload_not_registered"),
        (&["x-workload_app: w"], 404, "workload_not_registered"),
        (&["x-tenant: w"], 404, "workload_not_registered"),
        (&["x-workload-app: w,nobody"], 400, "identity_repeated"),
        (&["x-workload-app: nobody, w"], 400, "identity_repeated"),
        (&["x-workload-app: w, w"], 400, "identity_repeated"),
        (
            &["x-workload-app: w", "x-workload-app: w"],
            400,
            "identity_repeated",
        ),
        (
            &["x-workload-app: w", "X-Workload-App: nobody"],
            400,
            "identity_repeated",
        ),
    ];
    for (lines, status, code) in rows {
        let what = format!("{lines:?}");
        let request = post("/v1/chat/completions", lines, &body);
        fixture.refuses(&what, &request, *status, code, After::Kept);
    }
    for line in [
        "X-Workload-App: w",
        "x-workload-app:w",
        "x-workload-app: \t w \t",
    ] {
        fixture.forwards(line, &post("/v1/chat/completions", &[line], &body));
    }
    fixture.end();
}

#[test]
fn h6_headers_about_the_client_are_not_forwarded() {
    let fixture = Fixture::new();
    let lines = [
        IDENTITY,
        "x-workload_app: other",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: https",
        "x-forwarded-host: evil",
        "x-forwarded-client-cert: By=x",
        "x-real-ip: 127.0.0.1",
        "forwarded: for=127.0.0.1",
        "via: 1.1 evil",
        "te: trailers",
    ];
    let seen = fixture.forwards(
        "all of them",
        &post("/v1/chat/completions", &lines, &chat("m", false)),
    );
    for line in lines {
        let name = line.split(':').next().unwrap_or_default();
        assert_eq!(seen.header(name), Vec::<String>::new(), "{name}");
    }
    fixture.end();
}

#[test]
fn h7_two_authorizations_are_refused() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    for lines in [
        &["authorization: Bearer a", "authorization: Bearer a"][..],
        &["authorization: Bearer a", "Authorization: Bearer b"],
        &["authorization: Bearer a, Bearer b"],
        &["authorization: Basic YTpi, Bearer b"],
    ] {
        let what = format!("{lines:?}");
        let request = post(
            "/v1/chat/completions",
            &[&[IDENTITY], lines].concat(),
            &body,
        );
        fixture.refuses(&what, &request, 400, "conflicting_credentials", After::Kept);
    }
    let long = format!("authorization: Bearer {}", "t".repeat(64 << 10));
    let request = post("/v1/chat/completions", &[IDENTITY, &long], &body);
    fixture.refuses("64 KiB", &request, 431, "head_too_large", After::Closed);
    // A single one of any scheme is dropped unread, because it is not used as identity.
    for value in [
        "Bearer a",
        "bearer a",
        "Bearer Bearer a",
        "Bearer",
        "",
        "Basic YTpi",
        "Bearer\ta",
        "Bearer ' OR 1=1 --",
    ] {
        let line = format!("authorization: {value}");
        let seen = fixture.forwards(
            value,
            &post("/v1/chat/completions", &[IDENTITY, &line], &body),
        );
        assert_eq!(seen.header("authorization"), ["Bearer gate-key"], "{value}");
    }
    fixture.end();
}

#[test]
fn h8_credentials_in_two_places_are_refused() {
    let fixture = Fixture::new();
    let places = [
        "authorization: Bearer canary",
        "x-api-key: canary",
        "api-key: canary",
        "x-goog-api-key: canary",
    ];
    for (i, one) in places.iter().enumerate() {
        for other in &places[i..] {
            let request = post(
                "/v1/chat/completions",
                &[IDENTITY, one, other],
                &chat("m", false),
            );
            let what = format!("{one} and {other}");
            fixture.refuses(&what, &request, 400, "conflicting_credentials", After::Kept);
        }
        for query in [
            "key=canary",
            "api-key=canary",
            "a=1&%6bey=canary",
            "x;api_key=canary",
        ] {
            let path = format!("/v1/chat/completions?{query}");
            let request = post(&path, &[IDENTITY, one], &chat("m", false));
            let what = format!("{one} and {query}");
            fixture.refuses(&what, &request, 400, "conflicting_credentials", After::Kept);
        }
    }
    let request = post(
        "/v1/chat/completions?key=a&api-key=b",
        &[IDENTITY],
        &chat("m", false),
    );
    fixture.refuses(
        "two in the query",
        &request,
        400,
        "conflicting_credentials",
        After::Kept,
    );
    fixture.end();
}

#[test]
fn h8_every_form_of_credential_is_replaced_by_the_gates() {
    let fixture = Fixture::new();
    let rows: &[(&str, &str)] = &[
        ("", "authorization: Bearer canary"),
        ("", "x-api-key: canary"),
        ("", "api-key: canary"),
        ("", "x-goog-api-key: canary"),
        ("", "x-goog-user-project: canary"),
        ("", "proxy-authorization: Basic canary"),
        ("", "cookie: session=canary"),
        ("", "openai-organization: canary"),
        ("", "openai-project: canary"),
        ("", "sec-websocket-protocol: openai-insecure-api-key.canary"),
        ("", "x-amz-security-token: canary"),
        ("", "x-amz-date: canary"),
        ("", "x-auth-token: canary"),
        ("", "x_api_key: canary"),
        ("", "ocp-apim-subscription-key: canary"),
        ("", "x-my-secret: canary"),
        ("?key=canary", "a: 1"),
        ("?api-key=canary", "a: 1"),
        ("?access_token=canary", "a: 1"),
        ("?API%2DKEY=canary", "a: 1"),
        ("?x=1;key=canary", "a: 1"),
    ];
    for (query, line) in rows {
        let what = format!("{query} {line}");
        let path = format!("/v1/chat/completions{query}");
        let seen = fixture.forwards(&what, &post(&path, &[IDENTITY, line], &chat("m", false)));
        assert!(!seen.head.contains("canary"), "{what}: {}", seen.head);
        assert_eq!(
            seen.head.matches("gate-key").count(),
            1,
            "{what}: {}",
            seen.head
        );
        assert_eq!(seen.header("authorization"), ["Bearer gate-key"], "{what}");
    }
    let log = fixture.gate.log()
        + &std::fs::read_to_string(fixture.gate.path("access.jsonl")).expect("a log");
    let pages = fixture.gate.metrics() + &fixture.gate.admin("/config").text();
    for word in ["canary", "gate-key"] {
        assert!(!log.contains(word), "a log holds {word}");
        assert!(!pages.contains(word), "an admin page holds {word}");
    }
    let kept = post(
        "/v1/chat/completions?beta=1&monkey=2&api-version=2",
        &[IDENTITY],
        &chat("m", false),
    );
    let seen = fixture.forwards("an innocent query", &kept);
    assert!(
        seen.head
            .starts_with("POST /v1/chat/completions?beta=1&api-version=2 "),
        "{}",
        seen.head
    );
    fixture.end();
}
