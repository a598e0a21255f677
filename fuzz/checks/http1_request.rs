//! What must hold for any bytes that claim to be an HTTP/1.1 request.
//!
//! Read as a request with its body: the answer does not depend on the cuts, an accepted head has only CRLF lines
//! and clean fields, what is written again reads the same, and one framing rule applies.
//! Not here: which inputs are good (`vectors/http1`).

use wire::head::{Head, Known, RequestHead, Version};
use wire::http1::{ChunkStep, Chunked, Framing, HeadFault, Limits, Step};
use wire::http1::{
    empty_lines, parse_request, parse_response, request_framing, response_framing, write_field,
    write_request_line,
};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let limits = Limits {
        head_bytes: 1024,
        fields: 12,
    };
    let mut head = RequestHead::new();
    let whole = parse_request(input, &limits, &mut head);
    cut_anywhere(input, &limits, whole);
    if let Ok(Step::Done { consumed }) = whole {
        let (bytes, body) = input.split_at(consumed);
        lines_are_clean(bytes);
        fields_are_clean(&head.fields);
        reads_back(&head, &limits);
        framing_is_one_rule(&head, body);
    }
    any_response(input, &limits);
    any_body(input);
}

fn cut_anywhere(input: &[u8], limits: &Limits, whole: Result<Step, HeadFault>) {
    let mut head = RequestHead::new();
    for end in 0..input.len().min(1200) {
        match parse_request(&input[..end], limits, &mut head) {
            Ok(Step::Partial) => {}
            seen => {
                assert_eq!(seen, whole, "cut at {end}");
                return;
            }
        }
    }
}

fn lines_are_clean(bytes: &[u8]) {
    assert!(bytes.ends_with(b"\r\n\r\n"));
    let pairs = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    assert_eq!(bytes.iter().filter(|&&b| b == b'\n').count(), pairs);
    assert_eq!(bytes.iter().filter(|&&b| b == b'\r').count(), pairs);
    assert!(!bytes.contains(&0));
    let start = &bytes[empty_lines(bytes)..];
    assert_eq!(
        start.windows(4).filter(|four| four == b"\r\n\r\n").count(),
        1,
        "the head ends once"
    );
}

fn fields_are_clean(fields: &Head) {
    for field in fields.iter() {
        assert!(!field.name.is_empty());
        assert!(!field.name.iter().any(|b| b.is_ascii_uppercase()
            || b.is_ascii_whitespace()
            || *b == b':'
            || !b.is_ascii()));
        assert!(
            !field
                .value
                .iter()
                .any(|b| b.is_ascii_control() && *b != b'\t')
        );
        assert!(!matches!(
            field.value,
            [b' ' | b'\t', ..] | [.., b' ' | b'\t']
        ));
        assert_eq!(Known::of(field.name), field.known);
        assert!(fields.count(field.known) >= 1);
    }
}

fn reads_back(head: &RequestHead, limits: &Limits) {
    assert!(head.target() == "*" || head.path().starts_with('/'));
    assert!(head.target().bytes().all(|b| b.is_ascii_graphic()));
    assert!(
        !head
            .path()
            .split('/')
            .any(|segment| segment == ".." || segment == ".")
    );
    if head.version != Version::H11 {
        return;
    }
    assert_eq!(head.fields.count(Known::Host), 1);
    let mut out = Vec::new();
    write_request_line(&mut out, head.method_text(), &[head.target()]);
    for field in head.fields.iter() {
        write_field(&mut out, field.name, field.value);
    }
    out.extend_from_slice(b"\r\n");
    let mut again = RequestHead::new();
    let larger = Limits {
        head_bytes: limits.head_bytes * 2,
        ..*limits
    };
    assert_eq!(
        parse_request(&out, &larger, &mut again),
        Ok(Step::Done {
            consumed: out.len()
        })
    );
    assert!(again.fields.iter().eq(head.fields.iter()));
    assert_eq!((again.target(), again.method), (head.target(), head.method));
}

fn framing_is_one_rule(head: &RequestHead, body: &[u8]) {
    let lengths = head.fields.count(Known::ContentLength);
    let codings = head.fields.count(Known::TransferEncoding);
    let Ok(framing) = request_framing(head) else {
        return;
    };
    assert!(lengths + codings <= 1);
    match framing.framing {
        Framing::None => assert_eq!(codings, 0),
        Framing::Length(length) => assert!(lengths == 1 && length > 0),
        Framing::Chunked => {
            assert_eq!(codings, 1);
            any_body(body);
        }
        Framing::UntilClose => panic!("a request always says where it ends"),
    }
}

fn any_response(input: &[u8], limits: &Limits) {
    let mut head = Default::default();
    if let Ok(Step::Done { consumed }) = parse_response(input, limits, &mut head) {
        lines_are_clean(&input[..consumed]);
        fields_are_clean(&head.fields);
        let _ = response_framing(&head, wire::head::Method::Get);
    }
}

fn any_body(input: &[u8]) {
    let whole = read_chunks([input]);
    assert_eq!(whole, read_chunks(input.chunks(1)), "byte by byte");
    assert_eq!(whole, read_chunks(input.chunks(7)), "seven at a time");
}

/// The data, and how it ended: the fault, or whether the body is over.
fn read_chunks<'a>(
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u8>, Result<bool, HeadFault>) {
    let (mut reader, mut data) = (Chunked::new(), Vec::new());
    for mut part in parts {
        loop {
            match reader.next(part) {
                Ok(ChunkStep::Data { skip, len }) => {
                    assert!(len > 0);
                    data.extend_from_slice(&part[skip..skip + len]);
                    part = &part[skip + len..];
                }
                Ok(ChunkStep::NeedMore { consumed }) => {
                    assert_eq!(consumed, part.len());
                    break;
                }
                Ok(ChunkStep::End { .. }) => return (data, Ok(true)),
                Err(fault) => return (data, Err(fault)),
            }
        }
    }
    (data, Ok(false))
}
