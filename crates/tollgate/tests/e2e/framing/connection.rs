//! Successive exchanges on one client connection.
//!
//! Not here: slow clients and bounds (`connections`).

use crate::fixture::{Fixture, IDENTITY, answer, call, config, is_closed};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

#[test]
fn two_pipelined_calls_are_answered_in_order() {
    let fixture = Fixture::new();
    let mut connection = Connection::open(fixture.gate.data);
    let second = post(
        "/v1/completions",
        &[IDENTITY, "connection: close"],
        &chat("second", false),
    );
    connection.send(&[call(&chat("first", false)), second].concat());
    fixture.forwarded("the first", &connection.response());
    let response = connection.response();
    fixture.forwarded("the second", &response);
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_closed(&mut connection));
    let models: Vec<_> = fixture
        .upstream
        .seen()
        .iter()
        .map(|s| s.json()["model"].clone())
        .collect();
    assert_eq!(models, ["first", "second"]);
    fixture.end();
}

#[test]
fn after_a_refusal_a_small_unread_body_is_skipped_and_a_large_one_ends_the_connection() {
    let fixture = Fixture::new();
    let stranger = |bytes: usize| {
        post(
            "/v1/chat/completions",
            &["x-workload-app: nobody"],
            &"x".repeat(bytes),
        )
    };
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&stranger(60 << 10));
    fixture.refused("a small body", &response, 404, "workload_not_registered");
    fixture.forwards_on("a small body", &mut connection);
    let response = connection.call(&stranger(200 << 10));
    fixture.refused("a large body", &response, 404, "workload_not_registered");
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_closed(&mut connection));
    fixture.end();
}

#[test]
fn http_1_0_connections_are_closed_unless_keep_alive_is_requested() {
    let fixture = Fixture::new();
    let request =
        |lines: &str| format!("GET /v1/files HTTP/1.0\r\n{IDENTITY}\r\n{lines}\r\n").into_bytes();
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&request(""));
    fixture.forwarded("HTTP/1.0", &response);
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_closed(&mut connection));
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&request("connection: keep-alive\r\n"));
    fixture.forwarded("kept alive", &response);
    assert_eq!(response.header("connection"), Some("keep-alive"));
    fixture.forwards_on("kept alive", &mut connection);
    fixture.end();
}

#[test]
fn an_http_1_0_stream_ends_with_a_close_and_breaks_with_a_reset() {
    let upstream = Upstream::start(|n, _| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let events = b"e\r\ndata: [DONE]\n\n\r\n".to_vec();
        let end = if n == 0 {
            Step::Send(b"0\r\n\r\n".to_vec())
        } else {
            Step::Reset
        };
        vec![Step::Send(head.to_vec()), Step::Send(events), end]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let body = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.0\r\n{IDENTITY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut ends = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(gate.data);
        connection.send(request.as_bytes());
        let mut all = Vec::new();
        let end = std::io::Read::read_to_end(&mut connection.tcp, &mut all);
        let text = String::from_utf8_lossy(&all).into_owned();
        assert!(!text.contains("transfer-encoding"), "{text}");
        ends.push((text.ends_with("data: [DONE]\n\n"), end.is_ok()));
    }
    assert_eq!(ends[0], (true, true));
    // HTTP/1.0 has no framing, so only the reset shows the break.
    assert!(!ends[1].1, "the break looked like an end");
    let outcomes: Vec<_> = gate
        .records(2)
        .iter()
        .map(|r| r["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["completed", "failed"]);
}

#[test]
fn a_head_request_is_answered_without_a_body() {
    let upstream = Upstream::start(|_, seen| {
        let whole = answer();
        let end = whole
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .expect("a head")
            + 4;
        let length = if seen.head.starts_with("HEAD ") {
            end
        } else {
            whole.len()
        };
        vec![Step::Send(whole[..length].to_vec())]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    // The second request follows at once: a body would be read as the start of the second answer.
    let head = format!("HEAD /v1/files HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
    connection.send(&[head.as_bytes(), &call(&chat("m", false))].concat());
    while connection
        .unread()
        .windows(4)
        .filter(|w| w == b"\r\n\r\n")
        .count()
        < 2
    {
        assert!(connection.more());
    }
    let text = String::from_utf8_lossy(connection.unread()).into_owned();
    let length = format!("content-length: {}", body_length());
    let (first, second) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        first.starts_with("HTTP/1.1 200 ") && first.contains(&length),
        "{first}"
    );
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
    for (path, host, status) in [("/nothing", "g", 404), ("/v1/models", "g\r\nhost: h", 400)] {
        let head = format!("HEAD {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let refused = gate.call(head.as_bytes());
        assert_eq!((refused.status, refused.body.len()), (status, 0));
        assert!(refused.header("content-length").is_some_and(|l| l != "0"));
    }
    assert_eq!(gate.records(4).len(), 4);
    assert_eq!(
        upstream.connections(),
        1,
        "the upstream connection is used again after HEAD"
    );
}

#[test]
fn connection_close_of_a_client_is_honoured() {
    let fixture = Fixture::new();
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&post(
        "/v1/chat/completions",
        &[IDENTITY, "connection: x, Close"],
        &chat("m", false),
    ));
    fixture.forwarded("connection: close", &response);
    assert_eq!(response.header("connection"), Some("close"));
    assert!(is_closed(&mut connection));
    fixture.end();
}

fn body_length() -> usize {
    let whole = answer();
    whole.len()
        - whole
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .expect("a head")
        - 4
}

#[test]
fn a_slow_request_after_head_is_answered_with_a_body() {
    let fixture = Fixture::with("bounds: { head_time: 1s }\n");
    let mut connection = Connection::open(fixture.gate.data);
    let head = format!("HEAD /v1/models HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
    connection.send(head.as_bytes());
    assert_eq!(connection.headless().status, 200);
    connection.send(b"PO");
    let slow = connection.response();
    assert_eq!(
        (slow.status, slow.code().as_str()),
        (408, "request_timeout")
    );
}
