//! Malformed HTTP/2 streams: H4, and the bounds of H10 and H14 over HTTP/2.
//!
//! Not here: floods of well-formed frames (`floods`).

use super::list;
use crate::fixture::Fixture;
use crate::harness::h2::{self, Ended, Frames};

const BODY: &[u8] = b"{}";

#[test]
fn h4_malformed_requests_end_their_stream_and_are_not_forwarded() {
    let fixture = Fixture::new();
    let replaced = |name: &'static str, value: &'static str| {
        let mut list = list("");
        list.iter_mut()
            .filter(|(n, _)| *n == name)
            .for_each(|field| field.1 = value);
        list
    };
    let without = |name: &str| {
        list("")
            .into_iter()
            .filter(|(n, _)| *n != name)
            .collect::<Vec<_>>()
    };
    let with = |name: &'static str, value: &'static str| [list(""), vec![(name, value)]].concat();
    let rows = [
        ("an upper-case name", with("X-Upper", "1")),
        ("two paths", with(":path", "/v1/files")),
        ("two methods", with(":method", "GET")),
        (
            "a pseudo-header after the others",
            [without(":path"), vec![(":path", "/v1/files")]].concat(),
        ),
        (
            "an unknown pseudo-header",
            [vec![(":own", "1")], list("")].concat(),
        ),
        (
            "a pseudo-header of responses",
            [vec![(":status", "200")], list("")].concat(),
        ),
        ("no path", without(":path")),
        ("no method", without(":method")),
        ("an empty path", replaced(":path", "")),
        ("a path that is none", replaced(":path", "v1/files")),
        ("a fragment", replaced(":path", "/v1/chat/completions#x")),
        (
            "a fragment of a query",
            replaced(":path", "/v1/chat/completions?a=b#c"),
        ),
        (
            "an authority that is none",
            replaced(":authority", "good/?#@evil"),
        ),
        ("another host", with("host", "evil.test")),
        (
            "two hosts",
            [list(""), vec![("host", "gate.test"), ("host", "evil.test")]].concat(),
        ),
        (
            "the host twice",
            [list(""), vec![("host", "gate.test"), ("host", "gate.test")]].concat(),
        ),
        (
            "the host twice and no authority",
            [
                without(":authority"),
                vec![("host", "gate.test"), ("host", "gate.test")],
            ]
            .concat(),
        ),
        ("a blank before a value", with("x-a", " b")),
        ("a blank after a value", with("x-a", "b ")),
        ("a tab before a value", with("x-a", "\tb")),
        ("a tab after a value", with("x-a", "b\t")),
        ("only a blank", with("x-a", " ")),
        ("connection", with("connection", "x-workload-app")),
        ("transfer-encoding", with("transfer-encoding", "chunked")),
        ("upgrade", with("upgrade", "foo")),
        ("keep-alive", with("keep-alive", "timeout=5")),
        ("proxy-connection", with("proxy-connection", "x")),
        ("te", with("te", "gzip")),
        (
            "CR LF in a value",
            with("x-a", "b\r\nx-workload-app: other"),
        ),
        ("NUL in a value", with("x-a", "b\0")),
        ("a colon in a name", with("x:a", "b")),
        ("a space in a name", with("x a", "b")),
        ("an empty name", with("", "b")),
        (
            "two lengths",
            [
                list(""),
                vec![("content-length", "2"), ("content-length", "2")],
            ]
            .concat(),
        ),
        ("a length in words", with("content-length", "two")),
        ("a negative length", with("content-length", "-2")),
        ("a length that is too short", with("content-length", "1")),
        ("a length that is too long", with("content-length", "3")),
    ];
    for (what, list) in rows {
        let mut frames = Frames::open(fixture.gate.data, &[]);
        frames.headers(1, &list, false);
        frames.send(h2::DATA, h2::END_STREAM, 1, BODY);
        let ended = frames.ended(1);
        let is_refused = match ended {
            Ended::Whole(status) => (400..500).contains(&status),
            Ended::Reset(code) | Ended::GoAway(code) => code != h2::NO_ERROR,
            Ended::Closed => false,
        };
        assert!(is_refused, "{what}: {ended:?}");
        assert_eq!(
            fixture.upstream.seen().len(),
            0,
            "{what} reached the upstream"
        );
    }
    let mut frames = Frames::open(fixture.gate.data, &[]);
    frames.headers(1, &list("2"), false);
    frames.send(h2::DATA, h2::END_STREAM, 1, BODY);
    assert_eq!(
        frames.ended(1),
        Ended::Whole(200),
        "the same without a fault"
    );
}

#[test]
fn h14_trailers_of_a_request_are_dropped() {
    let fixture = Fixture::new();
    let mut frames = Frames::open(fixture.gate.data, &[]);
    frames.headers(1, &list(""), false);
    frames.send(h2::DATA, 0, 1, BODY);
    let trailers = [
        ("authorization", "Bearer evil"),
        ("x-workload-app", "other"),
        ("x-trailer", "1"),
    ];
    frames.headers(1, &trailers, true);
    assert_eq!(frames.ended(1), Ended::Whole(200));
    let seen = fixture.upstream.seen();
    assert_eq!(seen[0].header("authorization"), ["Bearer gate-key"]);
    assert_eq!(seen[0].header("x-trailer"), Vec::<String>::new());
    assert_eq!(seen[0].body, BODY);
}

#[test]
fn h14_pseudo_headers_in_trailers_end_the_connection_and_are_not_forwarded() {
    let fixture = Fixture::new();
    for trailers in [
        vec![(":path", "/v1/embeddings")],
        vec![(":method", "GET")],
        vec![(":status", "200")],
        vec![(":own", "1")],
        vec![("x-trailer", "1"), (":authority", "evil.test")],
    ] {
        let mut frames = Frames::open(fixture.gate.data, &[]);
        frames.headers(1, &list(""), false);
        frames.send(h2::DATA, 0, 1, BODY);
        frames.headers(1, &trailers, true);
        let ended = frames.ended(1);
        let is_refused = match ended {
            Ended::Whole(_) => false,
            Ended::Reset(code) | Ended::GoAway(code) => code != h2::NO_ERROR,
            Ended::Closed => true,
        };
        assert!(is_refused, "{trailers:?}: {ended:?}");
    }
    assert_eq!(fixture.upstream.seen().len(), 0);
}

#[test]
fn h10_a_header_list_is_bounded_in_bytes_and_in_fields() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..200).map(|n| format!("x-{n}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let mut frames = Frames::open(fixture.gate.data, &[]);
    frames.headers(1, &[list(""), fields].concat(), false);
    frames.send(h2::DATA, h2::END_STREAM, 1, BODY);
    assert_eq!(frames.ended(1), Ended::Whole(431), "200 fields");
    let value = "v".repeat(10 << 10);
    let large: Vec<_> = names[..8]
        .iter()
        .map(|name| (name.as_str(), value.as_str()))
        .collect();
    let block = h2::encoded(&[list(""), large].concat());
    let ended = blocks(&mut frames, 3, &block);
    assert_eq!(ended, Ended::Whole(431), "80 KiB");
    frames.headers(5, &list(""), false);
    frames.send(h2::DATA, h2::END_STREAM, 5, BODY);
    assert_eq!(frames.ended(5), Ended::Whole(200), "the connection goes on");
    assert_eq!(fixture.upstream.seen().len(), 1);
}

#[test]
fn h10_a_small_header_block_that_decodes_to_a_large_list_is_refused() {
    let fixture = Fixture::new();
    let before = fixture.gate.resident_kib();
    // A field of 4,000 bytes is put into the dynamic table once and referenced 10,000 times: 40 MB decoded.
    let mut block = h2::encoded(&list(""));
    block.push(0x40);
    h2::string(&mut block, b"cookie");
    h2::string(&mut block, "c".repeat(3900).as_bytes());
    block.extend(std::iter::repeat_n(0xbe, 10_000));
    for _ in 0..5 {
        let mut frames = Frames::open(fixture.gate.data, &[(4, 0)]);
        let ended = blocks(&mut frames, 1, &block);
        let is_refused = matches!(
            ended,
            Ended::Whole(431) | Ended::Reset(_) | Ended::GoAway(_)
        );
        assert!(is_refused, "{ended:?}");
    }
    let peak = fixture.gate.peak_kib();
    assert!(
        peak - before < 32 << 10,
        "{before} KiB, then {peak} KiB at most"
    );
    assert_eq!(fixture.upstream.seen().len(), 0);
}

/// Sends a header block in frames of at most 16 KiB and waits for the stream's end.
fn blocks(frames: &mut Frames, stream: u32, block: &[u8]) -> Ended {
    let pieces: Vec<_> = block.chunks(16_000).collect();
    for (n, piece) in pieces.iter().enumerate() {
        let kind = if n == 0 {
            h2::HEADERS
        } else {
            h2::CONTINUATION
        };
        let first = if n == 0 { h2::END_STREAM } else { 0 };
        let last = if n + 1 == pieces.len() {
            h2::END_HEADERS
        } else {
            0
        };
        frames.send(kind, first | last, stream, piece);
    }
    frames.ended(stream)
}

#[test]
fn h11_no_100_continue_is_sent_over_http2() {
    let fixture = Fixture::new();
    let mut frames = Frames::open(fixture.gate.data, &[]);
    frames.headers(
        1,
        &[list("2"), vec![("expect", "100-continue")]].concat(),
        false,
    );
    frames.send(h2::DATA, h2::END_STREAM, 1, BODY);
    // A 100 would be the first status.
    assert_eq!(frames.ended(1), Ended::Whole(200));
    assert_eq!(
        fixture.upstream.seen()[0].header("expect"),
        Vec::<String>::new()
    );
}

#[test]
fn a_head_request_that_is_refused_is_answered_without_a_body() {
    let fixture = Fixture::new();
    let asked = |path: &'static str, name: &'static str, value: &'static str| {
        let mut list = list("");
        list.retain(|(name, _)| *name != "content-type");
        for (name, value) in &mut list {
            match *name {
                ":method" => *value = "HEAD",
                ":path" => *value = path,
                _ => {}
            }
        }
        [list, vec![(name, value)]].concat()
    };
    let rows = [
        ("unknown", 404, asked("/v1/nothing", "x-a", "b")),
        ("malformed", 400, asked("/v1/models", "x-a", " b")),
    ];
    for (case, status, list) in rows {
        let mut frames = Frames::open(fixture.gate.data, &[]);
        frames.headers(1, &list, true);
        let mut bytes = 0;
        let mut statuses = Vec::new();
        while let Some(frame) = frames.next() {
            if frame.stream != 1 {
                continue;
            }
            match frame.kind {
                h2::HEADERS => statuses.push(frame.status()),
                h2::DATA => bytes += frame.payload.len(),
                _ => {}
            }
            if frame.flags & h2::END_STREAM != 0 {
                break;
            }
        }
        assert_eq!((statuses, bytes), (vec![status], 0), "{case}");
    }
}
