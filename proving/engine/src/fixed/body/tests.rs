//! Any cut of a body gives the same findings and the same end.

use super::*;

fn run(
    mut body: Body,
    wire: &[u8],
    cuts: impl Fn(usize) -> usize,
) -> (usize, u64, bool, bool, bool) {
    let needles = Needles::new();
    let mut scan = Scan::new(&needles);
    let mut at = 0;
    while at < wire.len() && !body.is_done() {
        let end = (at + cuts(at).max(1)).min(wire.len());
        let mut segment = &wire[at..end];
        while !segment.is_empty() && !body.is_done() {
            let used = body.feed(segment, &mut scan).unwrap();
            at += used;
            segment = &segment[used..];
        }
    }
    (
        at,
        scan.bytes,
        scan.stream,
        scan.include_usage,
        body.is_done(),
    )
}

const JSON: &[u8] =
    br#"{"text":"\"stream\":true","stream" : true,"stream_options":{"include_usage":true}}"#;

fn chunked(data: &[u8], size: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for part in data.chunks(size) {
        wire.extend(format!("{:x};x=y\r\n", part.len()).bytes());
        wire.extend_from_slice(part);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\nTrailer: 1\r\n\r\nNEXT");
    wire
}

#[test]
fn members_are_found_however_the_body_is_cut() {
    for cut in 1..=JSON.len() {
        let sized = run(Body::Sized(JSON.len() as u64), JSON, |_| cut);
        assert_eq!(
            sized,
            (JSON.len(), JSON.len() as u64, true, true, true),
            "cut {cut}"
        );
        for size in [1, 3, 7, 50, 1000] {
            let wire = chunked(JSON, size);
            let found = run(Body::chunked(), &wire, |_| cut);
            assert_eq!(
                found,
                (wire.len() - 4, JSON.len() as u64, true, true, true),
                "cut {cut} size {size}"
            );
        }
    }
}

#[test]
fn quoted_false_and_absent_members_are_not_found() {
    for json in [
        &br#"{"text":"\"stream\":true","stream":false}"#[..],
        br#"{"stream_x":true}"#,
        b"{}",
    ] {
        for cut in 1..=json.len() {
            let found = run(Body::Sized(json.len() as u64), json, |_| cut);
            assert_eq!((found.2, found.3), (false, false), "{json:?} cut {cut}");
        }
    }
}

#[test]
fn bad_chunk_sizes_are_malformed() {
    let needles = Needles::new();
    for wire in [&b"xyz\r\n"[..], b"2\r\nabX", b"fffffffffffffffff\r\n"] {
        let mut scan = Scan::new(&needles);
        let mut body = Body::chunked();
        assert!(body.feed(wire, &mut scan).is_err(), "{wire:?}");
    }
}
