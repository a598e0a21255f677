//! U4: compressed answers that the gate did not ask for.
//!
//! Invariant: a compressed answer passes unchanged with its `content-encoding`. It is decoded for metering, and
//! estimated where it cannot be decoded.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{call, one, record};
use crate::harness::{Gate, Step, Upstream, chat, post};

const EVENTS: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":7,\"total_tokens\":38}}\n\n\
    data: [DONE]\n\n";
const WHOLE: &str = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"hello\"}}],\
    \"usage\":{\"prompt_tokens\":31,\"completion_tokens\":7,\"total_tokens\":38}}";

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

/// [`EVENTS`] and [`WHOLE`] by the `zstd` command (1.5.4).
const EVENTS_ZSTD: &[u8] = include_bytes!("events.zst");
const WHOLE_ZSTD: &[u8] = include_bytes!("whole.zst");

fn answering(content_type: &'static str, coding: &'static str, body: Vec<u8>) -> Upstream {
    Upstream::start(move |_, _| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-encoding: {coding}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send([head.into_bytes(), body.clone()].concat())]
    })
}

#[test]
fn a_compressed_answer_passes_unchanged_and_its_usage_is_read() {
    for (content_type, coding, coded, stream) in [
        ("text/event-stream", "gzip", gzipped(EVENTS), true),
        ("application/json", "gzip", gzipped(WHOLE), false),
        ("text/event-stream", "zstd", EVENTS_ZSTD.to_vec(), true),
        ("application/json", "zstd", WHOLE_ZSTD.to_vec(), false),
    ] {
        let upstream = answering(content_type, coding, coded.clone());
        let gate = Gate::start(&one(upstream.address), &[]);
        let headers = ["x-workload-app: w", "accept-encoding: gzip, br, zstd"];
        let request = post("/v1/chat/completions", &headers, &chat("m", stream));
        let response = gate.call(&request);
        assert_eq!((response.status, response.whole), (200, true));
        assert_eq!(response.header("content-encoding"), Some(coding));
        assert_eq!(response.body, coded);
        assert!(upstream.seen()[0].header("accept-encoding").is_empty());
        let record = record(&gate, 1, "m");
        assert_eq!(record["prompt_source"], "reported", "{record}");
        assert_eq!(record["completion_source"], "reported");
        assert_eq!(
            (&record["prompt_tokens"], &record["completion_tokens"]),
            (&31.into(), &7.into())
        );
        // The same for a client that did not ask for compression.
        assert_eq!(gate.call(&call("n", stream)).body, coded);
        assert!(upstream.seen()[1].header("accept-encoding").is_empty());
    }
}

#[test]
fn a_compressed_answer_that_cannot_be_decoded_passes_unchanged_and_is_estimated() {
    let mut damaged = gzipped(EVENTS);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    for (coding, body) in [("gzip", damaged), ("zstd", b"(\xb5/\xfd".to_vec())] {
        let upstream = answering("text/event-stream", coding, body.clone());
        let gate = Gate::start(&one(upstream.address), &[]);
        let response = gate.call(&call("m", true));
        assert_eq!((response.status, response.whole), (200, true));
        assert_eq!(response.body, body, "{coding}");
        let record = record(&gate, 1, "m");
        assert_eq!(record["prompt_source"], "estimated", "{coding}: {record}");
        assert_eq!(record["completion_source"], "estimated");
    }
}
