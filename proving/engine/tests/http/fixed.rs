//! The fixed-response server: constant answers, keep-alive, both framings, streams.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use engine::fixed::{
    FixedConfig, FixedHandle, FixedStats, PROMPT_TOKENS, UNARY_TOKENS, spawn_thread,
};
use serde_json::{Value, json};
use testing::Began;

use crate::client::{get, post, reply};

fn start() -> FixedHandle {
    spawn_thread(FixedConfig::default()).unwrap()
}

#[test]
fn a_post_gets_the_constant_completion() {
    let server = start();
    let got = post(server.addr(), "/v1/chat/completions", &[], "{}");
    assert_eq!(got.status, 200);
    assert_eq!(got.body.len(), 950);
    let usage = &got.json()["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(PROMPT_TOKENS), &json!(UNARY_TOKENS))
    );
    assert_eq!(
        get(server.addr(), "/health").json(),
        json!({"status": "ok"})
    );
}

#[test]
fn a_stream_has_the_asked_events_and_usage_only_if_asked() {
    let server = start();
    for (body, with_usage) in [
        (r#"{"stream":true}"#, false),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            true,
        ),
    ] {
        for events in [0, 1, 5, 300] {
            let got = post(
                server.addr(),
                "/",
                &[("x-fixed-events", &events.to_string())],
                body,
            );
            let mut data = got.events();
            assert_eq!(data.pop().as_deref(), Some("[DONE]"));
            let mut chunks: Vec<Value> = data
                .iter()
                .map(|d| serde_json::from_str(d).unwrap())
                .collect();
            if with_usage {
                let last = chunks.pop().unwrap();
                assert_eq!(
                    (&last["choices"], &last["usage"]["completion_tokens"]),
                    (&json!([]), &json!(events))
                );
            }
            assert_eq!(chunks.pop().unwrap()["choices"][0]["finish_reason"], "stop");
            assert_eq!(chunks.len(), events);
            assert!(data.iter().take(events).all(|d| d.len() == 330));
        }
    }
}

#[test]
fn the_delays_are_those_of_the_headers() {
    let server = start();
    let began = Began::now();
    post(server.addr(), "/", &[("x-fixed-latency-us", "30000")], "{}");
    began.took_at_least(Duration::from_millis(30));
    let began = Began::now();
    let headers = [
        ("x-fixed-latency-us", "20000"),
        ("x-fixed-interval-us", "10000"),
        ("x-fixed-events", "4"),
    ];
    post(server.addr(), "/", &headers, r#"{"stream":true}"#);
    began.took_at_least(Duration::from_millis(50));
}

#[test]
fn one_connection_carries_pipelined_and_large_requests_of_both_framings() {
    let server = start();
    let mut socket = TcpStream::connect(server.addr()).unwrap();
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(512 << 10));
    let mut wire = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    wire.extend(
        format!(
            "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{big}",
            big.len()
        )
        .bytes(),
    );
    wire.extend_from_slice(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
    for part in big.as_bytes().chunks(10_000) {
        wire.extend(format!("{:X}\r\n", part.len()).bytes());
        wire.extend_from_slice(part);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\nPOST / HTTP/1.1\r\nconnection: close\r\ncontent-length: 15\r\n\r\n{\"stream\":true}");
    let mut writer = socket.try_clone().unwrap();
    let sending = std::thread::spawn(move || writer.write_all(&wire));
    let mut raw = Vec::new();
    socket.read_to_end(&mut raw).unwrap();
    sending.join().unwrap().unwrap();
    let starts: Vec<usize> = (0..raw.len())
        .filter(|i| raw[*i..].starts_with(b"HTTP/1.1 200"))
        .collect();
    assert_eq!(starts.len(), 4);
    for i in 0..3 {
        assert_eq!(reply(&raw[starts[i]..starts[i + 1]]).body.len(), 950);
    }
    assert!(reply(&raw[starts[3]..]).body.ends_with("data: [DONE]\n\n"));
    let bytes = 2 + 2 * big.len() as u64 + 15;
    assert_eq!(
        server.stats(),
        FixedStats {
            connections: 1,
            requests: 4,
            streams: 1,
            body_bytes: bytes
        }
    );
}

#[test]
fn conflicting_or_unreadable_framing_is_refused() {
    let server = start();
    for head in [
        "POST / HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: -2\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        "NONSENSE\r\n\r\n",
    ] {
        let mut socket = TcpStream::connect(server.addr()).unwrap();
        socket.write_all(head.as_bytes()).unwrap();
        let mut raw = Vec::new();
        socket.read_to_end(&mut raw).unwrap();
        assert_eq!(reply(&raw).status, 400, "{head:?}");
    }
    assert_eq!(server.stats().requests, 0);
}
