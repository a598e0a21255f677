//! What must hold for any bytes that claim to be an HTTP/1.1 response head.
//!
//! Cut anywhere the answer is the same; an accepted head has clean lines and fields and a status that a client can
//! be told; its framing is one rule, and none where the request or the status forbids a body.
//! Not here: which inputs are good (`vectors/http1`).

use wire::head::{Known, Method, ResponseHead};
use wire::http1::{Framing, Limits, Step, parse_response, response_framing};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let limits = Limits {
        head_bytes: 1024,
        fields: 12,
    };
    let mut head = ResponseHead::new();
    let whole = parse_response(input, &limits, &mut head);
    cut_anywhere(input, &limits, whole);
    let Ok(Step::Done { consumed }) = whole else {
        return;
    };
    let bytes = &input[..consumed];
    assert!(bytes.ends_with(b"\r\n\r\n") && consumed <= limits.head_bytes);
    let pairs = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    assert_eq!(bytes.iter().filter(|&&b| b == b'\n').count(), pairs);
    assert_eq!(bytes.iter().filter(|&&b| b == b'\r').count(), pairs);
    assert!(!bytes.contains(&0));
    assert!((100..600).contains(&head.status) && head.status != 101);
    assert!(head.fields.len() <= limits.fields);
    for field in head.fields.iter() {
        assert!(!field.name.is_empty() && !field.name.iter().any(u8::is_ascii_uppercase));
        assert_eq!(Known::of(field.name), field.known);
        let is_clean = |b: &u8| !b.is_ascii_control() || *b == b'\t';
        assert!(field.value.iter().all(is_clean));
    }
    framing(&head);
}

fn cut_anywhere(input: &[u8], limits: &Limits, whole: Result<Step, wire::http1::HeadFault>) {
    let mut head = ResponseHead::new();
    for end in 0..input.len().min(1200) {
        match parse_response(&input[..end], limits, &mut head) {
            Ok(Step::Partial) => {}
            seen => return assert_eq!(seen, whole, "cut at {end}"),
        }
    }
}

fn framing(head: &ResponseHead) {
    let bodiless = matches!(head.status, 100..=199 | 204 | 304);
    for method in [Method::Get, Method::Head, Method::Post] {
        let Ok((framing, _)) = response_framing(head, method) else {
            continue;
        };
        if bodiless || method == Method::Head {
            assert_eq!(framing, Framing::None);
            continue;
        }
        let lengths = head.fields.count(Known::ContentLength);
        let codings = head.fields.count(Known::TransferEncoding);
        match framing {
            Framing::Chunked => assert_eq!((lengths, codings), (0, 1)),
            Framing::Length(_) => assert_eq!((lengths, codings), (1, 0)),
            Framing::UntilClose => assert_eq!((lengths, codings), (0, 0)),
            Framing::None => assert_eq!(codings, 0),
        }
    }
}
