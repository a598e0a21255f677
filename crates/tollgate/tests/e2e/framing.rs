//! Framing and addressing of HTTP/1.1 messages: faults H1 to H3, H9 to H12, H14 and H15.
//!
//! Invariant: an ambiguous message is refused, nothing of it goes upstream, and its connection is
//! closed.
//! Not here: headers that say who calls (`identity`), HTTP/2 (`http2`).

mod conformance;
mod connection;
mod heads;
mod response;
mod targets;

use crate::fixture::{After, Fixture, IDENTITY, call, get, is_closed};
use crate::harness::{Connection, chat};

/// A POST with these framing headers, followed by `rest` unchanged.
fn framed(lines: &str, rest: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\n{lines}\r\n{rest}"
    )
    .into_bytes()
}

#[test]
fn h1_conflicting_body_lengths_are_refused() {
    let fixture = Fixture::new();
    let rows = [
        (
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            "length_and_encoding",
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: 0\r\n",
            "length_and_encoding",
        ),
        ("transfer-encoding: xchunked\r\n", "encoding_invalid"),
        (
            "transfer-encoding: chunked, identity\r\n",
            "encoding_invalid",
        ),
        ("transfer-encoding: gzip, chunked\r\n", "encoding_invalid"),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
            "encoding_invalid",
        ),
        ("transfer-encoding: \"chunked\"\r\n", "encoding_invalid"),
        ("transfer-encoding: \x0bchunked\r\n", "bad_field_value"),
        ("transfer-encoding : chunked\r\n", "bad_field_name"),
        ("transfer-encoding:\r\n", "encoding_invalid"),
        (
            "content-length: 5\r\ncontent-length: 5\r\n",
            "length_repeated",
        ),
        (
            "content-length: 5\r\ncontent-length: 6\r\n",
            "length_repeated",
        ),
        ("content-length: 5, 5\r\n", "length_invalid"),
        ("content-length: +5\r\n", "length_invalid"),
        ("content-length: -5\r\n", "length_invalid"),
        ("content-length: 0x5\r\n", "length_invalid"),
        ("content-length: 5 5\r\n", "length_invalid"),
        ("content-length:\r\n", "length_invalid"),
        ("content-length: 18446744073709551616\r\n", "length_invalid"),
    ];
    for (lines, code) in rows {
        let request = framed(
            lines,
            "0\r\n\r\nGET /v1/files HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n\r\n",
        );
        fixture.refuses(lines, &request, 400, code, After::Closed);
    }
    for method in ["GET", "DELETE"] {
        for (lines, body) in [
            ("content-length: 5\r\n", "hello"),
            ("transfer-encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ] {
            let request = format!(
                "{method} /v1/models HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n{lines}\r\n{body}"
            );
            fixture.refuses(
                method,
                request.as_bytes(),
                400,
                "body_not_expected",
                After::Closed,
            );
        }
    }
    let request = "POST /v1/files HTTP/1.0\r\nhost: g\r\nx-workload-app: w\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    fixture.refuses(
        "chunks in HTTP/1.0",
        request.as_bytes(),
        400,
        "encoding_invalid",
        After::Closed,
    );
    fixture.end();
}

#[test]
fn h2_malformed_chunks_are_refused() {
    let fixture = Fixture::new();
    let extension = format!("1;{}\r\n{{\r\n", "e".repeat(64 << 10));
    let many = "1;eeee\r\n \r\n".repeat(2000);
    let rows = [
        ("0x2\r\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("_2\r\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("+2\r\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("-1\r\n", "bad_chunk_size"),
        (" 2\r\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("\r\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("8000000000000000\r\n", "bad_chunk_size"),
        ("ffffffffffffffffff\r\n", "bad_chunk_size"),
        ("2\r\n{}X\r\n0\r\n\r\n", "bad_chunk_end"),
        ("2\r\n{}0\r\n\r\n", "bad_chunk_end"),
        ("2\n{}\r\n0\r\n\r\n", "bad_chunk_size"),
        ("2\r\n{}\n0\r\n\r\n", "bad_chunk_end"),
        (&extension, "bad_chunk_extension"),
        (&many, "bad_chunk_extension"),
        ("2;a\x00\r\n{}\r\n0\r\n\r\n", "bad_chunk_extension"),
        ("2\r\n{}\r\n0\r\nbad trailer\r\n\r\n", "bad_trailer"),
    ];
    for (body, code) in rows {
        let what = &body[..body.len().min(30)];
        let mut connection = Connection::open(fixture.gate.data);
        let response = connection.call(&framed("transfer-encoding: chunked\r\n", body));
        fixture.refused(what, &response, 400, code);
        assert_eq!(response.header("connection"), Some("close"), "{what}");
        assert!(is_closed(&mut connection), "{what}");
    }
    fixture.end();
}

#[test]
fn h2_valid_chunks_become_one_body_however_they_are_split() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    for size in [1, 2, 7, 1000] {
        let mut text = String::new();
        for chunk in body.as_bytes().chunks(size) {
            let chunk = std::str::from_utf8(chunk).expect("ASCII");
            text += &format!("{:X};name=\"a value\"\r\n{chunk}\r\n", chunk.len());
        }
        let seen = fixture.forwards(
            "chunks",
            &framed("transfer-encoding: Chunked\r\n", &(text + "000\r\n\r\n")),
        );
        assert_eq!(seen.body, body.as_bytes());
        assert_eq!(seen.header("transfer-encoding"), Vec::<String>::new());
        assert_eq!(seen.header("content-length"), [body.len().to_string()]);
    }
    fixture.end();
}

#[test]
fn h14_trailers_are_dropped() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    let text = format!(
        "{:x}\r\n{body}\r\n0\r\nauthorization: Bearer evil\r\ncontent-length: 3\r\nx-workload-app: other\r\nx-trailer: 1\r\n\r\n",
        body.len()
    );
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&framed(
        "trailer: x-trailer\r\ntransfer-encoding: chunked\r\n",
        &text,
    ));
    let seen = fixture.forwarded("trailers", &response);
    assert_eq!(seen.header("authorization"), ["Bearer gate-key"]);
    assert_eq!(seen.header("content-length"), [body.len().to_string()]);
    for name in ["x-workload-app", "x-trailer", "trailer"] {
        assert_eq!(seen.header(name), Vec::<String>::new());
    }
    fixture.forwards_on("trailers", &mut connection);
    fixture.end();
}

#[test]
fn h11_only_100_continue_may_be_expected() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    let lines = format!("expect: 100-Continue\r\ncontent-length: {}\r\n", body.len());
    // The client sends the body only after 100 Continue.
    let mut connection = Connection::open(fixture.gate.data);
    connection.send(&framed(&lines, ""));
    assert!(connection.more());
    assert_eq!(connection.unread(), b"HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(body.as_bytes());
    let seen = fixture.forwarded("after 100", &connection.response());
    assert_eq!(seen.header("expect"), Vec::<String>::new());
    fixture.forwards_on("after 100", &mut connection);
    // The client did not wait with the body: no 100 is sent, and the connection stays usable.
    let mut connection = Connection::open(fixture.gate.data);
    let response = connection.call(&framed(&lines, &body));
    fixture.forwarded("body at once", &response);
    fixture.forwards_on("body at once", &mut connection);
    // A refusal is sent instead of 100. The body may or may not follow, so the connection is closed.
    let unknown = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-workload-app: nobody\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    fixture.refuses(
        "refused early",
        unknown.as_bytes(),
        404,
        "workload_not_registered",
        After::Closed,
    );
    for value in ["x", "100-continue, x", "200-ok"] {
        let lines = format!("expect: {value}\r\ncontent-length: {}\r\n", body.len());
        fixture.refuses(
            value,
            &framed(&lines, &body),
            417,
            "expectation_failed",
            After::Closed,
        );
    }
    fixture.end();
}

#[test]
fn h12_upgrade_is_ignored_and_pipelined_bytes_are_the_next_request() {
    let fixture = Fixture::new();
    for protocol in ["foo", "websocket", "h2c"] {
        let lines = format!(
            "connection: upgrade, http2-settings\r\nupgrade: {protocol}\r\nhttp2-settings: AAMAAABkAAQAAP__\r\nsec-websocket-key: a\r\nsec-websocket-version: 13\r\n"
        );
        let mut connection = Connection::open(fixture.gate.data);
        connection.send(&[get(&lines), call(&chat("m", false))].concat());
        let first = connection.response();
        let seen = fixture.forwarded(protocol, &first);
        for name in ["upgrade", "connection", "http2-settings"] {
            assert_eq!(seen.header(name), Vec::<String>::new(), "{protocol}");
        }
        let second = connection.response();
        let seen = fixture.forwarded(protocol, &second);
        assert!(
            seen.head.starts_with("POST /v1/chat/completions "),
            "{}",
            seen.head
        );
    }
    fixture.end();
}
