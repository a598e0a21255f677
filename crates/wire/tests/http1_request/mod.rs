//! Replays the committed fuzz corpus of HTTP/1.1 requests, and adds random inputs of the same kind.
//!
//! Not here: the invariants (`fuzz/checks/http1_request.rs`).

#[path = "../../../../fuzz/checks/http1_request.rs"]
mod check;

use testing::{Draw, replay, seed};

#[test]
fn the_corpus_of_http1_request_breaks_no_invariant() {
    replay("http1_request", 20, check::fuzz_one);
}

#[test]
fn random_requests_break_no_invariant() {
    let mut random = Draw::new(seed("random_requests"));
    let (mut input, mut accepted) = (Vec::new(), 0);
    for _ in 0..10_000 {
        input.clear();
        if random.below(4) > 0 {
            input.extend_from_slice(b"POST /v1 HTTP/1.1\r\nHost: a\r\n");
        }
        for _ in 0..random.below(12) {
            input.extend_from_slice(PIECES[random.below(PIECES.len())]);
        }
        let mut head = wire::head::RequestHead::new();
        let step = wire::http1::parse_request(&input, &wire::http1::Limits::default(), &mut head);
        if let Ok(wire::http1::Step::Done { consumed }) = step {
            accepted += 1;
            agrees_with_httparse(&input[..consumed], &head);
        }
        check::fuzz_one(&input);
    }
    assert!(accepted > 250, "too few inputs reach the body: {accepted}");
}

/// A lenient parser finds the same parts in every head that we accept.
fn agrees_with_httparse(input: &[u8], head: &wire::head::RequestHead) {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut lax = httparse::Request::new(&mut fields);
    let read = lax.parse(input);
    assert_eq!(read, Ok(httparse::Status::Complete(input.len())));
    assert_eq!(
        (lax.method, lax.path),
        (Some(head.method_text()), Some(head.target()))
    );
    let lax: Vec<_> = lax
        .headers
        .iter()
        .map(|field| (field.name.to_ascii_lowercase().into_bytes(), field.value))
        .collect();
    let ours: Vec<_> = head
        .fields
        .iter()
        .map(|field| (field.name.to_vec(), field.value))
        .collect();
    assert_eq!(lax, ours);
}

const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b"x: y\r\n",
    b"A_b:\r\n",
    b"Host: a\r\n",
    b"GET ",
    b"OPTIONS * ",
    b"/v1/../x",
    b"/v1",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n",
    b"5;x\r\n",
    b"hello",
    b"ffffffffffffffff",
    b"\xff",
    b"Content-Length : 5\r\n",
    b"\r\n folded\r\n",
];
