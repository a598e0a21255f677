//! The cost of reading an HTTP/1.1 head and a chunked body, with warm memory.
//!
//! The promise: a request head of about 300 bytes with 8 fields in under 250 ns, without allocation.

use divan::{AllocProfiler, Bencher, black_box, counter::BytesCount};
use wire::head::{Known, Method, RequestHead, ResponseHead};
use wire::http1::{
    ChunkStep, Chunked, Limits, parse_request, parse_response, request_framing, response_framing,
};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\n\
    Host: gate.internal.example:1975\r\n\
    User-Agent: OpenAI/Python 1.99.1\r\n\
    Accept: application/json\r\n\
    Accept-Encoding: gzip, deflate\r\n\
    Authorization: Bearer sk-0123456789abcdef0123456789abcdef\r\n\
    Content-Type: application/json\r\n\
    X-Workload-App: toolbench-agent\r\n\
    Content-Length: 1234\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    date: Thu, 20 Nov 2025 10:00:00 GMT\r\n\
    server: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\n\
    transfer-encoding: chunked\r\n\r\n";

fn main() {
    divan::main();
}

#[divan::bench]
fn request_head(bencher: Bencher<'_, '_>) {
    let (limits, mut head) = (Limits::default(), RequestHead::new());
    let _ = parse_request(REQUEST, &limits, &mut head);
    bencher
        .counter(BytesCount::of_slice(REQUEST))
        .bench_local(|| {
            let step = parse_request(black_box(REQUEST), &limits, &mut head);
            assert!(step.is_ok());
            step
        });
}

#[divan::bench]
fn request_framing_and_lookups(bencher: Bencher<'_, '_>) {
    let mut head = RequestHead::new();
    let _ = parse_request(REQUEST, &Limits::default(), &mut head);
    bencher.bench_local(|| {
        let head = black_box(&head);
        let bearer = head.fields.only(Known::Authorization);
        let workload = head.fields.by_name(b"x-workload-app").next();
        (
            request_framing(head),
            bearer.ok().flatten().map(<[u8]>::len),
            workload.map(<[u8]>::len),
        )
    });
}

#[divan::bench]
fn response_head_with_framing(bencher: Bencher<'_, '_>) {
    let (limits, mut head) = (Limits::default(), ResponseHead::new());
    let _ = parse_response(RESPONSE, &limits, &mut head);
    bencher
        .counter(BytesCount::of_slice(RESPONSE))
        .bench_local(|| {
            let step = parse_response(black_box(RESPONSE), &limits, &mut head);
            (step, response_framing(&head, Method::Post))
        });
}

#[divan::bench]
fn sixteen_chunks_of_an_event_each(bencher: Bencher<'_, '_>) {
    let chunk = format!("c8\r\n{}\r\n", "x".repeat(200));
    let body = chunk.repeat(16) + "0\r\n\r\n";
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| {
        let (mut reader, mut rest, mut data) = (Chunked::new(), black_box(body.as_bytes()), 0);
        while let Ok(ChunkStep::Data { skip, len }) = reader.next(rest) {
            rest = rest.get(skip + len..).unwrap_or_default();
            data += len;
        }
        data
    });
}
