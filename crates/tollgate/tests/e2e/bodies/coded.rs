//! Compressed bodies, where policy must read them: decoded, judged as what they decode to, and sent on so.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::fixture::{After, Fixture, IDENTITY};
use crate::harness::chat;

fn post(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{IDENTITY}\r\n\
         content-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The same in chunks of one byte.
fn post_in_bytes(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{IDENTITY}\r\n\
         content-encoding: {coding}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut request = head.into_bytes();
    for byte in body {
        request.extend_from_slice(&[b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn bare_deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

/// A frame of one block that is stored as it is (RFC 8878, 3.1.1): a single segment whose length is a byte.
fn zstd(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x20, length];
    [&head[..], &block[..3], text].concat()
}

#[test]
fn b9_a_body_in_one_known_coding_is_decoded_judged_and_sent_on_decoded() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    for (coding, coded) in [
        ("gzip", gzip(body.as_bytes())),
        ("GZIP", gzip(body.as_bytes())),
        ("x-gzip", gzip(body.as_bytes())),
        ("deflate", zlib(body.as_bytes())),
        ("deflate", bare_deflate(body.as_bytes())),
        ("zstd", zstd(body.as_bytes())),
    ] {
        for (how, request) in [
            ("whole", post(coding, &coded)),
            ("in bytes", post_in_bytes(coding, &coded)),
        ] {
            let seen = fixture.forwards(&format!("{coding} {how}"), &request);
            assert_eq!(seen.body, body.as_bytes(), "{coding} {how}");
            assert!(seen.header("content-encoding").is_empty(), "{}", seen.head);
            assert_eq!(
                seen.header("content-length"),
                [body.len().to_string()],
                "{}",
                seen.head
            );
        }
    }
    // What stands in it is judged as if it had come so.
    let twice = gzip(br#"{"model":"m","model":"n"}"#);
    fixture.refuses(
        "a member twice",
        &post("gzip", &twice),
        400,
        "duplicate_member",
        After::Kept,
    );
    fixture.end();
}

#[test]
fn b9_a_coded_body_that_is_damaged_cut_or_far_too_long_is_refused() {
    let fixture = Fixture::new();
    let whole = gzip(chat("m", false).as_bytes());
    let mut damaged = whole.clone();
    if let Some(byte) = damaged.iter_mut().rev().nth(6) {
        *byte ^= 0x55;
    }
    let cut = &whole[..whole.len() - 9];
    let none: &[u8] = b"";
    for (what, body) in [
        ("no gzip", chat("m", false).as_bytes()),
        ("a wrong checksum", &damaged[..]),
        ("cut off", cut),
        ("nothing", none),
    ] {
        fixture.refuses(
            what,
            &post("gzip", body),
            400,
            "invalid_content_encoding",
            After::Kept,
        );
    }
    // What holds nothing and takes time.
    let empty = gzip(b"").repeat(20_000);
    let members = [&empty[..], &whole[..]].concat();
    fixture.refuses(
        "empty members",
        &post("gzip", &members),
        400,
        "invalid_content_encoding",
        After::Closed,
    );
    // Two bombs: one beyond a hundred times its length, one within that and beyond the bound of bodies.
    let zeros = vec![b' '; 40 << 20];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 64 << 10, "{}", bomb.len());
    let response = fixture.refuses(
        "a bomb",
        &post("gzip", &bomb),
        400,
        "invalid_content_encoding",
        After::Kept,
    );
    assert!(response.text().contains("expands"), "{}", response.text());
    fixture.end();
}
