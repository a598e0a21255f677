//! U4: a compressed stream that nobody asked for.
//!
//! Invariant: it goes through unchanged, is said to be compressed, and is never metered as if it
//! had been read.

use super::{call, one, record};
use crate::harness::{Gate, Step, Upstream, chat, post};

/// `data: [DONE]\n\n` under gzip, stored.
fn gzipped() -> Vec<u8> {
    let text = b"data: [DONE]\n\n";
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = u16::try_from(text.len()).expect("short");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&(!length).to_le_bytes());
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(&[0; 8]);
    bytes
}

#[test]
fn an_unasked_encoding_passes_unread() {
    let upstream = Upstream::start(|_, _| {
        let body = gzipped();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send([head.into_bytes(), body].concat())]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let headers = ["x-workload-app: w", "accept-encoding: gzip, br, zstd"];
    let request = post("/v1/chat/completions", &headers, &chat("m", true));
    let response = gate.call(&request);
    assert_eq!((response.status, response.whole), (200, true));
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.body, gzipped());
    assert!(upstream.seen()[0].header("accept-encoding").is_empty());
    let record = record(&gate, 1, "m");
    assert_eq!(record["prompt_source"], "estimated");
    assert_eq!(record["completion_source"], "estimated");
    // The same without the client's wish.
    assert_eq!(gate.call(&call("n", false)).body, gzipped());
    assert!(upstream.seen()[1].header("accept-encoding").is_empty());
}
