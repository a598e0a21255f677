//! Bodies at and beyond their bound: B8.
//!
//! Invariant: a body that is too large is refused as soon as that is known, is not sent upstream,
//! and costs no more memory than the bound.
//! Not here: slow bodies (`connections`).

use std::io::Write;

use crate::fixture::{After, Fixture, IDENTITY, call, is_closed};
use crate::harness::Connection;

const MIB: usize = 1 << 20;

#[test]
fn b8_a_declared_length_beyond_the_bound_is_refused_before_the_body() {
    let fixture = Fixture::with("bounds: { body: 1KiB }\n");
    for length in ["70000", "1048576", "9223372036854775808"] {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        fixture.refuses(
            length,
            head.as_bytes(),
            413,
            "request_too_large",
            After::Closed,
        );
    }
    fixture.forwards("exactly the bound", &call(&sized(1024)));
    fixture.refuses(
        "one byte more",
        &call(&sized(1025)),
        413,
        "request_too_large",
        After::Kept,
    );
    fixture.end();
}

#[test]
fn b8_chunks_are_refused_where_they_cross_the_bound() {
    let fixture = Fixture::with("bounds: { body: 1KiB }\n");
    let response = Connection::open(fixture.gate.data).call(&chunked(&sized(1024), 100));
    fixture.forwarded("exactly the bound", &response);
    // The body never ends, so only the bound can refuse it.
    let mut connection = Connection::open(fixture.gate.data);
    connection.send(&chunked(&sized(4096), 100)[..1500]);
    fixture.refused("chunks", &connection.response(), 413, "request_too_large");
    assert!(is_closed(&mut connection));
    fixture.end();
}

#[test]
fn b8_a_refusal_reaches_a_client_that_is_still_sending() {
    let fixture = Fixture::with("bounds: { body: 64KiB }\n");
    for request in [
        call(&sized(900 << 10)),
        chunked(&sized(900 << 10), 64 << 10),
    ] {
        let response = Connection::open(fixture.gate.data).call(&request);
        fixture.refused("still sending", &response, 413, "request_too_large");
    }
    fixture.end();
}

#[test]
fn b8_memory_stays_within_the_bound() {
    let fixture = Fixture::new();
    let before = fixture.gate.peak_kib() / 1024;
    let body = sized(32 * MIB);
    for request in [call(&body), chunked(&body, 64 << 10)] {
        let response = Connection::open(fixture.gate.data).call(&request);
        let seen = fixture.forwarded("32 MiB", &response);
        assert!(seen.body == body.as_bytes(), "the body changed");
    }
    let passed = fixture.gate.peak_kib() / 1024;
    assert!(
        passed - before < 3 * 32,
        "{before} MiB, then {passed} MiB for bodies of 32 MiB"
    );
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-length: {}\r\n\r\n",
        33 * MIB
    );
    fixture.refuses(
        "33 MiB declared",
        head.as_bytes(),
        413,
        "request_too_large",
        After::Closed,
    );
    let mut connection = Connection::open(fixture.gate.data);
    // Written in pieces, because the gate stops reading.
    for piece in chunked(&sized(33 * MIB), 64 << 10).chunks(1 << 20) {
        if connection.tcp.write_all(piece).is_err() {
            break;
        }
    }
    fixture.refused(
        "33 MiB in chunks",
        &connection.response(),
        413,
        "request_too_large",
    );
    let after = fixture.gate.peak_kib() / 1024;
    assert!(
        after - passed < 64,
        "{passed} MiB, then {after} MiB for bodies of 33 MiB"
    );
    fixture.end();
}

/// A call of exactly this many bytes.
fn sized(bytes: usize) -> String {
    let around = r#"{"model":"m","messages":[],"user":""}"#;
    let fill = "x".repeat(bytes - around.len());
    format!(r#"{{"model":"m","messages":[],"user":"{fill}"}}"#)
}

fn chunked(body: &str, size: usize) -> Vec<u8> {
    let mut request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for chunk in body.as_bytes().chunks(size) {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}
