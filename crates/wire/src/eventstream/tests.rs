//! Messages that are whole, cut, broken, too long.

use testing::eventstream::{event, exception, framed, message as of_headers};

use super::*;

/// What a reader tells of these bytes, cut into pieces of this size, and whether it broke.
fn read(bytes: &[u8], size: usize) -> (Vec<String>, bool) {
    let (mut reader, mut told) = (Reader::default(), Vec::new());
    for piece in bytes.chunks(size) {
        let read = reader.push(piece, |message| {
            let payload = String::from_utf8_lossy(message.payload).into_owned();
            told.push(format!("{:?} {payload}", message.kind));
        });
        if read.is_err() {
            assert_eq!(reader.push(b"", |_| ()), Err(Broken), "it stays broken");
            return (told, true);
        }
    }
    assert_eq!(reader.held(), 0, "all was told");
    (told, false)
}

fn stream() -> Vec<u8> {
    let error = [
        (":error-code", "Throttled"),
        (":error-message", "not now"),
        (":message-type", "error"),
    ];
    [
        event("messageStart", r#"{"role":"assistant"}"#),
        event("empty", ""),
        exception("throttlingException", r#"{"message":"slow"}"#),
        of_headers(&error, b""),
    ]
    .concat()
}

const TOLD: [&str; 4] = [
    r#"Event("messageStart") {"role":"assistant"}"#,
    r#"Event("empty") "#,
    r#"Exception("throttlingException") {"message":"slow"}"#,
    r#"Error { code: "Throttled", message: "not now" } "#,
];

#[test]
fn the_bytes_of_a_message_are_those_of_its_specification() {
    // By hand: 0 + 16 bytes, no headers; and one header of a text.
    let no_headers = b"\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff";
    assert_eq!(framed(b"", b""), no_headers);
    let one = event("a", "{}");
    assert_eq!(one[..4], 89_u32.to_be_bytes());
    assert!(one[12..].starts_with(b"\x0b:event-type\x07\x00\x01a\x0d:content-type\x07\x00\x10"));
    assert!(one[..one.len() - 4].ends_with(b"event{}"));
}

#[test]
fn a_stream_tells_the_same_wherever_it_is_cut() {
    let bytes = stream();
    for size in 1..=bytes.len() {
        assert_eq!(
            read(&bytes, size),
            (TOLD.map(str::to_owned).to_vec(), false)
        );
    }
}

#[test]
fn a_byte_that_another_one_replaces_breaks_the_stream_where_it_stands() {
    let bytes = stream();
    let first = event("messageStart", r#"{"role":"assistant"}"#).len();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let (told, is_broken) = read(&damaged, 7);
        assert!(is_broken, "byte {at}");
        assert_eq!(told.is_empty(), at < first, "byte {at}: {told:?}");
        assert!(
            told.iter()
                .zip(TOLD)
                .all(|(told, expected)| told == expected)
        );
    }
}

#[test]
fn what_is_cut_off_is_held_and_told_to_nobody() {
    let bytes = stream();
    let mut reader = Reader::default();
    let mut told = 0;
    let (front, _) = bytes.split_at(bytes.len() - 1);
    assert_eq!(reader.push(front, |_| told += 1), Ok(()));
    assert_eq!(told, 3);
    assert!(reader.held() > 0);
}

#[test]
fn a_message_longer_than_any_breaks_before_it_has_come() {
    let prelude = |total: u32, headers: u32| {
        let mut prelude = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        prelude.extend_from_slice(&crc32fast::hash(&prelude).to_be_bytes());
        prelude
    };
    let most = u32::try_from(MESSAGE_BYTES).expect("it fits");
    for (total, headers, is_broken) in [
        (most, 0, false),
        (most + 1, 0, true),
        (u32::MAX, 0, true),
        (15, 0, true),
        (16, 1, true),
        (100, u32::MAX, true),
    ] {
        let mut reader = Reader::default();
        let read = reader.push(&prelude(total, headers), |_| ());
        assert_eq!(read.is_err(), is_broken, "{total} {headers}");
    }
}

#[test]
fn headers_of_every_kind_are_passed_over_and_such_as_are_none_break_it() {
    let kind = b"\x0d:message-type\x07\x00\x05event".as_slice();
    let others: &[&[u8]] = &[
        b"\x01a\x00",
        b"\x01a\x01",
        b"\x01a\x02x",
        b"\x01a\x03xx",
        b"\x01a\x04xxxx",
        b"\x01a\x05xxxxxxxx",
        b"\x01a\x06\x00\x03\xff\xff\xff",
        b"\x01a\x08xxxxxxxx",
        b"\x01a\x09xxxxxxxxxxxxxxxx",
    ];
    let all = [others.concat(), kind.to_vec()].concat();
    assert_eq!(
        read(&framed(&all, b"{}"), 5),
        (vec![r#"Event("") {}"#.into()], false)
    );
    let broken: &[&[u8]] = &[
        // No kind of message, one that is none, one that is no text.
        b"",
        b"\x0d:message-type\x07\x00\x05evens",
        b"\x0d:message-type\x06\x00\x05event",
        b"\x0d:message-type\x07\x00\x05\xff\xff\xff\xff\xff",
        // No kind of value, and headers that end too soon.
        b"\x01a\x0a",
        b"\x01a\x05xxx",
        b"\x01a\x07\x00\x05x",
        b"\x01a\x07\x00",
        b"\x01a",
        b"\x05a",
    ];
    for headers in broken {
        assert_eq!(
            read(&framed(headers, b"{}"), 5),
            (vec![], true),
            "{headers:?}"
        );
    }
}
