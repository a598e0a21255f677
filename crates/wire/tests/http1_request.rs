//! Replays the committed fuzz corpus of HTTP/1.1 requests, and adds random inputs of the same kind.
//!
//! Not here: the invariants (`fuzz/checks/http1_request.rs`).

#[path = "../../../fuzz/checks/http1_request.rs"]
mod check;

use std::path::Path;

#[test]
fn the_corpus_of_http1_request_breaks_no_invariant() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http1_request");
    let mut replayed = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus is committed") {
        check::fuzz_one(&std::fs::read(entry.expect("an entry").path()).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 20, "the corpus has lost entries: {replayed}");
}

#[test]
fn random_requests_break_no_invariant() {
    let seed = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(1, |since| since.as_nanos() as u64)
        | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    let (mut input, mut accepted) = (Vec::new(), 0);
    for _ in 0..20_000 {
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
    assert!(accepted > 500, "too few inputs reach the body: {accepted}");
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

/// Xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
