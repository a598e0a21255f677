//! Blocks of requests and trailers, in each way to write a field, whole and cut anywhere.

use super::huffman::tests::encoded;
use super::*;

const END_STREAM: u8 = 1;

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As a literal that is not kept; in Huffman's code.
    Plain(bool),
    /// As one that is kept.
    Kept(bool),
    /// As a literal that is never kept.
    Never(bool),
}

const WAYS: [Way; 6] = [
    Way::Plain(false),
    Way::Plain(true),
    Way::Kept(false),
    Way::Kept(true),
    Way::Never(false),
    Way::Never(true),
];

fn number(first: u8, bits: u32, value: usize) -> Vec<u8> {
    let most = (1 << bits) - 1;
    if value < most {
        return vec![first | u8::try_from(value).unwrap()];
    }
    let mut bytes = vec![first | u8::try_from(most).unwrap()];
    let mut rest = value - most;
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f | 0x80).unwrap());
        rest >>= 7;
    }
    bytes.push(u8::try_from(rest).unwrap());
    bytes
}

fn text(text: &str, is_coded: bool) -> Vec<u8> {
    let (first, bytes) = match is_coded {
        true => (0x80, encoded(text.as_bytes())),
        false => (0, text.as_bytes().to_vec()),
    };
    [number(first, 7, bytes.len()), bytes].concat()
}

/// A literal; its name by index where that is not 0.
fn field(way: Way, index: usize, name: &str, value: &str) -> Vec<u8> {
    let (first, bits, is_coded) = match way {
        Way::Plain(is_coded) => (0, 4, is_coded),
        Way::Kept(is_coded) => (0x40, 6, is_coded),
        Way::Never(is_coded) => (0x10, 4, is_coded),
    };
    let mut bytes = number(first, bits, index);
    if index == 0 {
        bytes.extend(text(name, is_coded));
    }
    bytes.extend(text(value, is_coded));
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn preface() -> Vec<u8> {
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
    ]
    .concat()
}

/// What becomes of these bytes when they come in pieces of this length.
fn passed(bytes: &[u8], step: usize) -> Result<Vec<u8>, MalformedBlock> {
    let mut blocks = HeaderBlocks::default();
    let mut bytes = bytes.to_vec();
    bytes
        .chunks_mut(step)
        .try_for_each(|piece| blocks.read(piece))?;
    Ok(bytes)
}

/// Checks what becomes of a connection, however it is cut.
fn check(sent: &[u8], wanted: &[u8]) {
    for step in [1, 2, 3, 5, 7, 10, 64, sent.len()] {
        let got = passed(sent, step).unwrap();
        assert_eq!(
            got.escape_ascii().to_string(),
            wanted.escape_ascii().to_string(),
            "in pieces of {step}"
        );
    }
}

#[test]
fn a_fragment_of_a_path_becomes_what_no_path_may_hold() {
    for way in WAYS {
        for index in [0, 4, 5] {
            for (path, seen) in [
                ("/v1/models#x", "/v1/models>x"),
                ("#", ">"),
                ("/a#b#", "/a>b>"),
                ("/?a=#", "/?a=>"),
                ("/v1/models?a=b", "/v1/models?a=b"),
            ] {
                let other = field(way, 0, ":paths", "/#");
                let block =
                    |path| [&[0x82, 0x86][..], &field(way, index, ":path", path), &other].concat();
                let both = |path| {
                    let headers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(path));
                    [preface(), headers].concat()
                };
                check(&both(path), &both(seen));
            }
        }
    }
}

#[test]
fn blocks_are_found_behind_padding_priorities_and_in_continuations() {
    let block = |path: &str| [&[0x82][..], &field(Way::Kept(true), 4, "", path), &[0x86]].concat();
    let all = |path: &str| {
        let block = block(path);
        let mut bytes = preface();
        let with = |before: &[u8], after: &[u8]| [before, &block, after].concat();
        bytes.extend(frame(HEADERS, END_HEADERS | PADDED, 1, &with(&[3], b"###")));
        bytes.extend(frame(0, 0, 1, b"/v1/models#x"));
        bytes.extend(frame(
            HEADERS,
            END_HEADERS | PRIORITY,
            3,
            &with(&[0, 0, 0, 1, 9], b""),
        ));
        let both = with(&[1, 0, 0, 0, 1, 9], b"#");
        bytes.extend(frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 5, &both));
        // In three parts, one of them empty.
        let (start, end) = block.split_at(block.len() / 2);
        bytes.extend(frame(HEADERS, 0, 7, start));
        bytes.extend(frame(CONTINUATION, 0, 7, b""));
        bytes.extend(frame(CONTINUATION, END_HEADERS, 7, end));
        bytes.extend(frame(HEADERS, END_HEADERS, 9, &block));
        bytes
    };
    check(&all("/v1/mo#els"), &all("/v1/mo>els"));
}

#[test]
fn a_name_from_the_table_is_known_for_as_long_as_it_is_there() {
    let mut bytes = preface();
    let mut wanted = bytes.clone();
    let mut stream = 1;
    let mut send = |block: &[u8], seen: &[u8]| {
        bytes.extend(frame(HEADERS, END_HEADERS, stream, block));
        wanted.extend(frame(HEADERS, END_HEADERS, stream, seen));
        stream += 2;
    };
    let path = |path: &str| field(Way::Kept(false), 0, ":path", path);
    send(&path("/a#"), &path("/a>"));
    // Entry 62 is the path; behind one more, 63.
    let by = |index, value: &str| field(Way::Plain(true), index, "", value);
    send(&by(62, "/b#"), &by(62, "/b>"));
    let one_more = field(Way::Kept(true), 0, "x-a", "#");
    let block = |path: &str| [&one_more[..], &by(63, path), &by(62, "#")].concat();
    send(&block("/c#"), &block("/c>"));
    // A table of nothing forgets it, and one that is large again does not know it.
    let sizes = [number(0x20, 5, 0), number(0x20, 5, 4096)].concat();
    let block = [
        &sizes[..],
        &field(Way::Kept(false), 0, "x-a", "1"),
        &by(62, "#"),
    ]
    .concat();
    send(&block, &block);
    // Sixteen entries of 256 bytes fill the table; the seventeenth drives the first one out.
    send(&path("/d#"), &path("/d>"));
    let entry = field(Way::Kept(true), 0, "x-a", &"v".repeat(256 - 32 - 3));
    for n in 0..15 {
        let at = 63 + n;
        let block = |path: &str| [&entry[..], &by(at, path)].concat();
        send(&block("#"), &block(">"));
    }
    let block = [&entry[..], &by(62 + 15, "#"), &by(62 + 16, "#")].concat();
    send(&block, &block);
    check(&bytes, &wanted);
}

#[test]
fn pseudo_fields_of_trailers_end_the_connection() {
    let request = || {
        let list = [
            &[0x82, 0x86, 0x84][..],
            &field(Way::Kept(false), 0, ":path", "/"),
        ]
        .concat();
        [
            preface(),
            frame(HEADERS, END_HEADERS, 1, &list),
            frame(0, 0, 1, b"{}"),
        ]
        .concat()
    };
    // Behind the field that stands before it, the request's path is entry 63.
    let mut bad = vec![vec![0x82], vec![0x84], vec![0x88], vec![0x80 | 63]];
    for way in WAYS {
        bad.push(field(way, 4, "", "/other"));
        bad.push(field(way, 63, "", "/other"));
        bad.push(field(way, 0, ":path", "/other"));
        bad.push(field(way, 0, ":own", "1"));
        bad.push(field(way, 0, ":", ""));
    }
    for field_of in bad {
        let good = field(Way::Kept(true), 0, "x-trailer", ":path");
        let trailers = [&good[..], &field_of].concat();
        let sent = [
            request(),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers),
        ]
        .concat();
        let at = sent.len() - field_of.len();
        for step in 1..sent.len() {
            match passed(&sent, step) {
                Ok(got) => assert_eq!(
                    got.get(at),
                    Some(&NO_FIELD),
                    "{field_of:?} in pieces of {step}"
                ),
                Err(MalformedBlock) => assert!(step < sent.len()),
            }
        }
        let got = passed(&sent, sent.len()).unwrap();
        assert_eq!(got.get(at), Some(&NO_FIELD), "{field_of:?}");
    }
    let good = field(Way::Kept(true), 0, "x-trailer", ":path #");
    let sent = [
        request(),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &good),
    ]
    .concat();
    check(&sent, &sent);
}

/// As the library has it, an index of nothing.
const NO_FIELD: u8 = 0x80;

#[test]
fn a_stream_that_depends_on_itself_ends_the_connection() {
    let block = [&[0, 0, 0, 1, 9][..], &[0x82]].concat();
    let sent = [preface(), frame(HEADERS, END_HEADERS | PRIORITY, 1, &block)].concat();
    for step in [1, 4, sent.len()] {
        assert_eq!(passed(&sent, step), Err(MalformedBlock));
    }
}

#[test]
fn noise_is_gone_past_and_changes_no_length() {
    let mut seed = 7_u64;
    for _ in 0..300 {
        let mut bytes = preface();
        while bytes.len() < 3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let noise = seed.to_le_bytes();
            let payload = noise.repeat(usize::from(noise[7] % 5));
            bytes.extend(frame(
                noise[6] % 11,
                noise[5],
                u32::from(noise[4] % 8),
                &payload,
            ));
        }
        let _any: Result<Vec<u8>, MalformedBlock> = passed(&bytes, 1 + bytes.len() % 97);
    }
}
