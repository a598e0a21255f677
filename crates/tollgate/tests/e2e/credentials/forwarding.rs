//! What is forwarded: method, path, query, harmless headers, and bodies of any kind.

use super::{OURS, credentials};
use crate::harness::answer::{json, whole};
use crate::harness::{Connection, Gate, Step, Upstream, post};

fn gate(upstream: &Upstream, base: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}{base}, credential: {{ file: secret }}{} }} }}\n\
         routes:\n  - workload: w\n    backend: up\n    unread:\n      - call:\n          \
         - GET /v1/files\n          - POST /v1/files\n          - GET /v1/files/{{id}}/content\n          \
         - GET /v1/chat/completions/{{id}}\n          - GET /v1/batches/{{id}}\n          \
         - POST /v1/batches/{{id}}\n          - PUT /v1/batches/{{id}}\n          \
         - PATCH /v1/batches/{{id}}\n          - DELETE /v1/batches/{{id}}\n",
        upstream.address,
        if base.is_empty() {
            ", at_root: true"
        } else {
            ""
        }
    );
    Gate::start(&config, &[("secret", OURS.as_bytes())])
}

fn echo() -> Upstream {
    Upstream::start(|_, seen| {
        if seen.head.starts_with("HEAD") {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n";
            return vec![Step::Send(format!("{head}\r\n").into())];
        }
        vec![Step::Send(whole(
            200,
            "application/octet-stream",
            &seen.body,
        ))]
    })
}

fn bare(method: &str, target: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n\r\n").into()
}

#[test]
fn paths_are_appended_to_the_base_path_of_the_backend() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(json(200, "{}"))]);
    let targets = [
        ("/v1/files", "/files"),
        (
            "/v1/files/file-1/content?limit=b&after=%20d",
            "/files/file-1/content?limit=b&after=%20d",
        ),
        ("/v1/models/org/name", "/models/org/name"),
        ("/v1/models/org%2Fname", "/models/org%2Fname"),
        ("/v1/files?after=x&key=k", "/files?after=x"),
        ("/v1/files?key=k", "/files"),
        ("/v1/chat/completions/chat-1", "/chat/completions/chat-1"),
    ];
    for base in ["/v1beta/openai", "/v1", "", "/a/b/"] {
        let gate = gate(&upstream, base);
        let mut connection = Connection::open(gate.data);
        let base = base.trim_end_matches('/');
        for (sent, rest) in targets {
            let response = connection.call(&bare("GET", sent));
            assert_eq!(response.status, 200, "{sent}: {}", response.text());
            let seen = upstream.seen().pop().expect("it arrived");
            let line = format!("GET {base}{rest} HTTP/1.1");
            assert_eq!(seen.head.split("\r\n").next(), Some(line.as_str()));
            assert_eq!(credentials(&seen), [format!("Bearer {OURS}")]);
            assert!(seen.header("content-length").is_empty(), "{}", seen.head);
        }
    }
}

#[test]
fn every_method_of_a_listed_path_is_forwarded() {
    let upstream = echo();
    let gate = gate(&upstream, "/v1");
    let mut connection = Connection::open(gate.data);
    for method in ["GET", "DELETE", "POST", "PUT", "PATCH"] {
        let response = connection.call(&bare(method, "/v1/batches/b-1"));
        assert_eq!(response.status, 200, "{method}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert!(
            seen.head
                .starts_with(&format!("{method} /v1/batches/b-1 HTTP/1.1\r\n"))
        );
    }
    connection.send(&bare("HEAD", "/v1/files"));
    while !connection.unread().ends_with(b"\r\n\r\n") {
        assert!(connection.more(), "a head comes");
    }
    let head = String::from_utf8_lossy(connection.unread()).into_owned();
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains("content-length: 99\r\n"),
        "{head}"
    );
}

#[test]
fn bodies_of_any_kind_pass_byte_for_byte() {
    let upstream = echo();
    let gate = gate(&upstream, "/v1");
    let mut connection = Connection::open(gate.data);
    let multipart: Vec<u8> = [
        &b"--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b\r\n"[..],
        b"content-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n",
        &(0..=255).collect::<Vec<u8>>().repeat(4000),
        b"\r\n--b--\r\n",
    ]
    .concat();
    let bodies = [
        ("multipart/form-data; boundary=b", multipart),
        ("application/json", b"{ not json".to_vec()),
        ("text/plain; charset=utf-16", vec![0xff, 0xfe, 0, 1]),
        ("application/octet-stream", Vec::new()),
    ];
    for (content_type, body) in bodies {
        let head = format!(
            "POST /v1/files?purpose=x HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n\
             content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let response = connection.call(&[head.as_bytes(), &body].concat());
        assert_eq!(response.status, 200, "{content_type}: {}", response.text());
        assert!(
            response.body == body,
            "{content_type}: other bytes came back"
        );
        let seen = upstream.seen().pop().expect("it arrived");
        assert!(seen.body == body, "{content_type}: other bytes arrived");
        assert_eq!(seen.header("content-type"), [content_type]);
        assert!(
            seen.head
                .starts_with("POST /v1/files?purpose=x HTTP/1.1\r\n")
        );
    }
    let records = gate.records(4);
    assert!(
        records
            .iter()
            .all(|r| r["operation"] == "unread" && r["prompt_tokens"].is_null())
    );
}

#[test]
fn a_chunked_upload_is_forwarded_with_its_length() {
    let upstream = echo();
    let gate = gate(&upstream, "/v1");
    let head = "POST /v1/files HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n\
         content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
    let body = "5\r\nhello\r\n1;x=y\r\n,\r\n6\r\n world\r\n0\r\nx-late: 1\r\n\r\n";
    let response = gate.call(format!("{head}{body}").as_bytes());
    assert_eq!(response.text(), "hello, world");
    let seen = &upstream.seen()[0];
    assert_eq!(seen.header("content-length"), ["12"]);
    assert!(seen.header("transfer-encoding").is_empty() && seen.header("x-late").is_empty());
}

#[test]
fn harmless_headers_are_forwarded() {
    let upstream = echo();
    let gate = gate(&upstream, "/v1");
    let lines = [
        "accept: text/event-stream",
        "user-agent: OpenAI/Python 1.99",
        "x-stainless-lang: python",
        "x-stainless-retry-count: 0",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "openai-beta: assistants=v2",
        "idempotency-key: i-1",
    ];
    let mut headers = vec!["x-workload-app: w"];
    headers.extend(lines);
    gate.call(&post("/v1/files", &headers, "{}"));
    let seen = &upstream.seen()[0];
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header line");
        assert_eq!(seen.header(name), [value], "{}", seen.head);
    }
    assert_eq!(seen.header("host"), [upstream.address.to_string()]);
    for name in ["x-workload-app", "connection", "accept-encoding"] {
        assert!(seen.header(name).is_empty(), "{}", seen.head);
    }
}
