//! Paths, hosts and methods: H9 and H15.
//!
//! Not here: which operations exist (`policy::operation`).

use crate::fixture::{After, Fixture, IDENTITY};

#[test]
fn h9_an_ambiguous_path_is_refused() {
    let fixture = Fixture::new();
    let rows = [
        ("//v1/files", "ambiguous_path"),
        ("/v1//files", "ambiguous_path"),
        ("/v1/../v1/files", "ambiguous_path"),
        ("/v1/./files", "ambiguous_path"),
        ("/v1/%2e%2e/files", "ambiguous_path"),
        ("/v1/%2E/files", "ambiguous_path"),
        ("/v1%2ffiles", "ambiguous_path"),
        ("/v1/a%5cb", "ambiguous_path"),
        ("/v1/a\\b", "ambiguous_path"),
        ("/v1/files;x", "ambiguous_path"),
        ("/v1/files%3bx", "ambiguous_path"),
        ("/v1/files%00", "ambiguous_path"),
        ("/v1/%252e%252e/files", "ambiguous_path"),
        ("/v1/files%", "ambiguous_path"),
        ("/%76%31/files", "ambiguous_path"),
        ("/v1/files#x", "bad_target_byte"),
        ("*", "bad_target_form"),
        ("v1/files", "bad_target_form"),
    ];
    for (target, code) in rows {
        let request = format!("GET {target} HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
        fixture.refuses(target, request.as_bytes(), 400, code, After::Closed);
    }
    for target in [
        "/V1/files",
        "/",
        "/v2/files",
        "/v1",
        "/v1/",
        "/v1files",
        "/metrics",
        "/config",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
        fixture.refuses(target, request.as_bytes(), 404, "unknown_url", After::Kept);
    }
    let request = format!("GET /v1/files?after=/../%20b HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
    let seen = fixture.forwards("a query", request.as_bytes());
    assert!(
        seen.head
            .starts_with("GET /v1/files?after=/../%20b HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    fixture.end();
}

#[test]
fn a_path_that_is_nearly_one_is_refused_with_the_one_that_was_meant() {
    let fixture = Fixture::new();
    for (target, status, code, after) in [
        ("/chat/completions", 404, "unknown_url", After::Kept),
        (
            "/v1/chat/completions/",
            404,
            "operation_not_allowed",
            After::Kept,
        ),
        (
            "/v1/v1/chat/completions",
            404,
            "operation_not_allowed",
            After::Kept,
        ),
        (
            "//v1/chat/completions",
            400,
            "ambiguous_path",
            After::Closed,
        ),
    ] {
        let body = r#"{"model":"m","messages":[]}"#;
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let response = fixture.refuses(target, request.as_bytes(), status, code, after);
        let message = response.json()["error"]["message"].to_string();
        assert!(
            message.contains(" /v1/chat/completions"),
            "{target}: {message}"
        );
    }
    fixture.end();
}

/// A server that builds a URL of `host` and path, and routes or authorizes by that, sees another path.
#[test]
fn cve_2026_49468_a_host_with_a_path_of_its_own_is_refused_whoever_asks() {
    let fixture = Fixture::new();
    for (host, code) in [
        ("x/#@y", "host_invalid"),
        ("x/?@y", "host_invalid"),
        ("x/v1/models#", "host_invalid"),
        ("x\\@y", "host_invalid"),
        ("x%2f%23@y", "host_invalid"),
    ] {
        for path in ["/v1/files", "/v1/models", "/key/generate"] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{IDENTITY}\r\n\r\n");
            fixture.refuses(host, request.as_bytes(), 400, code, After::Closed);
        }
    }
    fixture.end();
}

#[test]
fn h9_a_host_must_be_one_name_or_address_and_is_not_forwarded() {
    let fixture = Fixture::new();
    let rows = [
        ("", "host_missing"),
        ("host: a\r\nhost: a\r\n", "host_repeated"),
        ("host: a\r\nhost: b\r\n", "host_repeated"),
        ("host:\r\n", "host_invalid"),
        ("host: good/?#@evil\r\n", "host_invalid"),
        ("host: user@good\r\n", "host_invalid"),
        ("host: a, b\r\n", "host_invalid"),
        ("host: a:b\r\n", "host_invalid"),
        ("host: a%2fb\r\n", "host_invalid"),
    ];
    for (lines, code) in rows {
        let request = format!("GET /v1/files HTTP/1.1\r\n{lines}{IDENTITY}\r\n\r\n");
        fixture.refuses(lines, request.as_bytes(), 400, code, After::Closed);
    }
    let own = fixture.upstream.address.to_string();
    for host in ["gate.test", "127.0.0.1:1975", "[::1]:80"] {
        let request = format!(
            "GET /v1/files HTTP/1.1\r\nhost: {host}\r\nx-forwarded-host: evil\r\n{IDENTITY}\r\n\r\n"
        );
        let seen = fixture.forwards(host, request.as_bytes());
        assert_eq!(seen.header("host"), [own.as_str()]);
        assert_eq!(seen.header("x-forwarded-host"), Vec::<String>::new());
    }
    fixture.end();
}

#[test]
fn h15_unsupported_methods_are_refused() {
    let fixture = Fixture::new();
    for (method, after) in [
        ("TRACE", After::Kept),
        ("OPTIONS", After::Kept),
        ("BREW", After::Kept),
        ("get", After::Kept),
        ("M-SEARCH", After::Kept),
    ] {
        let request = format!(
            "{method} /v1/files HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nauthorization: Bearer x\r\n\r\n"
        );
        let response =
            fixture.refuses(method, request.as_bytes(), 405, "method_not_allowed", after);
        assert_eq!(
            response.header("allow"),
            Some("GET, HEAD, POST, PUT, PATCH, DELETE")
        );
    }
    for (target, after) in [
        ("evil.example:443", After::Closed),
        ("/v1/files", After::Kept),
    ] {
        let request = format!("CONNECT {target} HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
        fixture.refuses(target, request.as_bytes(), 405, "method_not_allowed", after);
    }
    for (method, body) in [
        ("PUT", "content-length: 2\r\n\r\n{}"),
        ("DELETE", "\r\n"),
        ("PATCH", "content-length: 2\r\n\r\n{}"),
    ] {
        let request =
            format!("{method} /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n{body}");
        let response = fixture.refuses(
            method,
            request.as_bytes(),
            405,
            "method_not_allowed",
            After::Kept,
        );
        assert_eq!(response.header("allow"), Some("POST"));
    }
    for method in ["GET", "PUT", "PATCH", "DELETE", "POST"] {
        let request = format!(
            "{method} /v1/files HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nx-http-method-override: DELETE\r\n\r\n"
        );
        let seen = fixture.forwards(method, request.as_bytes());
        assert!(
            seen.head
                .starts_with(&format!("{method} /v1/files HTTP/1.1\r\n")),
            "{}",
            seen.head
        );
        assert!(seen.header("x-http-method-override").is_empty());
    }
    fixture.end();
}
