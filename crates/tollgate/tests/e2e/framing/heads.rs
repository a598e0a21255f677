//! Heads that are malformed or too large: H3 and H10.
//!
//! Not here: the parser's own vectors (`wire`).

use crate::fixture::{After, Fixture, IDENTITY, get, is_closed};
use crate::harness::Connection;

#[test]
fn h3_malformed_heads_are_refused() {
    let fixture = Fixture::new();
    let rows: &[(&str, &[u8], u16, &str)] = &[
        (
            "a bare LF",
            b"GET /v1/files HTTP/1.1\nhost: g\n\n",
            400,
            "bad_line_end",
        ),
        (
            "one bare LF",
            b"GET /v1/files HTTP/1.1\r\nhost: g\nx-a: b\r\n\r\n",
            400,
            "bad_line_end",
        ),
        (
            "a bare CR",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-a: b\rc: d\r\n\r\n",
            400,
            "bad_line_end",
        ),
        (
            "NUL in a value",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-a: b\0c\r\n\r\n",
            400,
            "bad_field_value",
        ),
        (
            "NUL in a name",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx\0a: b\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "a folded line",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-a: b\r\n c\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "a space before a colon",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-a : b\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "a space in a name",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx a: b\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "no colon",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-a\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "no name",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\n: b\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "a name of other letters",
            b"GET /v1/files HTTP/1.1\r\nhost: g\r\nx-\xc3\xa9: b\r\n\r\n",
            400,
            "bad_field_name",
        ),
        (
            "HTTP/2.0 in text",
            b"GET /v1/files HTTP/2.0\r\nhost: g\r\n\r\n",
            505,
            "version_not_supported",
        ),
        (
            "no version",
            b"GET /v1/files\r\nhost: g\r\n\r\n",
            400,
            "bad_start_line",
        ),
        (
            "two spaces",
            b"GET  /v1/files HTTP/1.1\r\nhost: g\r\n\r\n",
            400,
            "bad_start_line",
        ),
        (
            "a TLS hello",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            400,
            "bad_start_line",
        ),
    ];
    for (what, bytes, status, code) in rows {
        fixture.refuses(what, bytes, *status, code, After::Closed);
    }
    fixture.end();
}

#[test]
fn h10_a_head_is_bounded_in_bytes_and_in_fields() {
    let fixture = Fixture::new();
    let value = "v".repeat(8 << 10);
    let seen = fixture.forwards("8 KiB", &get(&format!("x-a: {value}\r\n")));
    assert_eq!(seen.header("x-a"), [value]);
    let lines: String = (0..95).map(|n| format!("x-{n}: 1\r\n")).collect();
    fixture.forwards("97 fields", &get(&lines));
    let lines: String = (0..10_000).map(|n| format!("x-{n}: 1\r\n")).collect();
    fixture.refuses(
        "10,000 fields",
        &get(&lines),
        431,
        "too_many_fields",
        After::Closed,
    );
    let lines = format!("x-a: {}\r\n", "v".repeat(65 << 10));
    fixture.refuses("65 KiB", &get(&lines), 431, "head_too_large", After::Closed);
    // The head never ends, so only the bound can refuse it.
    let mut connection = Connection::open(fixture.gate.data);
    connection.send(
        format!(
            "GET /v1/files HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nx-a: {}",
            "v".repeat(70 << 10)
        )
        .as_bytes(),
    );
    fixture.refused(
        "a head without end",
        &connection.response(),
        431,
        "head_too_large",
    );
    assert!(is_closed(&mut connection));
    let cookies: String = "cookie: a=b\r\n".repeat(200);
    fixture.refuses(
        "cookie crumbs",
        &get(&cookies),
        431,
        "too_many_fields",
        After::Closed,
    );
    fixture.end();
}

#[test]
fn h10_the_configured_bounds_apply() {
    let fixture = Fixture::with("bounds: { head: 1KiB, fields: 5 }\n");
    fixture.forwards("4 fields", &get("a: 1\r\nb: 2\r\n"));
    fixture.refuses(
        "6 fields",
        &get("a: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n"),
        431,
        "too_many_fields",
        After::Closed,
    );
    let line = format!("a: {}\r\n", "v".repeat(1 << 10));
    fixture.refuses(
        "over 1 KiB",
        &get(&line),
        431,
        "head_too_large",
        After::Closed,
    );
    fixture.end();
}
