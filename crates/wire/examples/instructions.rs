//! One scenario, repeated, for counting its instructions.
//!
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/instructions <scenario> <times>`:
//! the difference between two counts, divided by that of the repetitions, is what one costs, warm.
//! Not here: wall time (`benches`), whole exchanges (`prove`).

use std::hint::black_box;

use wire::call::CallScanner;
use wire::head::{Method, RequestHead, ResponseHead};
use wire::http1::{Limits, parse_request, parse_response, request_framing, response_framing};
use wire::sse::{Mode, Scanner};
use wire::usage::{Reading, UnaryUsage};

const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\n\
    Host: gate.internal.example:1975\r\n\
    User-Agent: OpenAI/Python 1.99.1\r\n\
    Accept: application/json\r\n\
    Accept-Encoding: gzip, deflate\r\n\
    Connection: keep-alive\r\n\
    Authorization: Bearer sk-0123456789abcdef0123456789abcdef\r\n\
    Content-Type: application/json\r\n\
    X-Request-Id: 4be1f6d0-5c2f-4be0-9a51-1d7e5f0f7f11\r\n\
    Content-Length: 1234\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    date: Thu, 20 Nov 2025 10:00:00 GMT\r\n\
    server: uvicorn\r\n\
    content-length: 1040\r\n\
    content-type: application/json\r\n\r\n";

const EVENT: &[u8] = b"data: {\"id\":\"chatcmpl-9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"openai/gpt-oss-120b\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\" symbol\"},\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null}]}\n\n";

const USAGE: &str = r#""usage":{"prompt_tokens":412,"completion_tokens":128,"total_tokens":540,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":0}}"#;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let scenario = arguments.next().unwrap_or_default();
    let times = arguments.next().and_then(|times| times.parse().ok());
    let times: u32 = times.expect("a scenario and how often");
    match scenario.as_str() {
        "request_body" => body(&chat_body(5, 170), times),
        "request_body_32_kib" => body(&chat_body(16, 2000), times),
        "request_body_of_short_turns" => body(&chat_body(150, 170), times),
        "response_usage" => usage(&[completion().as_bytes()], times),
        "response_usage_split" => {
            let body = completion();
            let (start, end) = body.as_bytes().split_at(body.len() - 90);
            usage(&[start, end], times);
        }
        "sse_observe" => {
            let mut scanner = Scanner::new(Mode::Observe);
            (0..times).for_each(|_| scanner.observe(black_box(EVENT)));
            assert_eq!(scanner.stats().data_events, u64::from(times));
        }
        "request_head" => {
            let (limits, mut head) = (Limits::default(), RequestHead::new());
            for _ in 0..times {
                assert!(parse_request(black_box(REQUEST), &limits, &mut head).is_ok());
            }
        }
        "request_framing" => {
            let (limits, mut head) = (Limits::default(), RequestHead::new());
            assert!(parse_request(REQUEST, &limits, &mut head).is_ok());
            for _ in 0..times {
                assert!(request_framing(black_box(&head)).is_ok());
            }
        }
        "response_head" => {
            let (limits, mut head) = (Limits::default(), ResponseHead::new());
            for _ in 0..times {
                assert!(parse_response(black_box(RESPONSE), &limits, &mut head).is_ok());
            }
        }
        "response_framing" => {
            let (limits, mut head) = (Limits::default(), ResponseHead::new());
            assert!(parse_response(RESPONSE, &limits, &mut head).is_ok());
            for _ in 0..times {
                assert!(response_framing(black_box(&head), Method::Post).is_ok());
            }
        }
        unknown => panic!("no scenario is called `{unknown}`"),
    }
}

fn body(body: &[u8], times: u32) {
    for _ in 0..times {
        let mut scanner = CallScanner::new();
        assert!(scanner.push(black_box(body)).is_ok());
        assert!(black_box(scanner.finish()).is_ok());
    }
}

fn usage(chunks: &[&[u8]], times: u32) {
    for _ in 0..times {
        let mut usage = UnaryUsage::new();
        chunks.iter().for_each(|chunk| usage.push(black_box(chunk)));
        assert!(matches!(usage.finish(), Reading::Valid(_)));
    }
}

/// A chat call: so many turns of so many bytes of prose each, with two escapes.
fn chat_body(turns: usize, turn_bytes: usize) -> Vec<u8> {
    let prose = "the build fails in the third module although the second one compiles as before and here is what came of it ";
    let half = prose.repeat(turn_bytes / 2 / prose.len() + 1);
    let half = half.get(..turn_bytes / 2 - 2).unwrap_or(&half);
    let turn = format!(r#"{{"role":"user","content":"{half}\n\n{half}"}}"#);
    let turns = vec![turn; turns].join(",");
    format!(
        r#"{{"model":"gpt-oss-120b","messages":[{turns}],"temperature":0.7,"top_p":1,"max_tokens":512,"stream":true,"stream_options":{{"include_usage":true}},"user":"team-a"}}"#
    )
    .into_bytes()
}

/// A completion of about 1 KB.
fn completion() -> String {
    let text = "the second module compiles because its symbols are public ".repeat(9);
    format!(
        r#"{{"id":"chatcmpl-9f8a7b6c5d4e3f2a","object":"chat.completion","created":1730000000,"model":"gpt-oss-120b","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],{USAGE},"service_tier":"default","system_fingerprint":"fp_44709d6fcb"}}"#
    )
}
