//! The constant answers, made once as bytes.
//!
//! Invariant: each is a whole HTTP/1.1 message or a whole chunk of one, so that sending is one write.
//! Not here: when they are sent.

use serde_json::{Value, json};

use super::{PROMPT_TOKENS, UNARY_TOKENS};
use crate::chat::usage;

const UNARY_BODY_BYTES: usize = 950;
const EVENT_BYTES: usize = 330;
/// Events that one write carries at most.
const BATCH_EVENTS: usize = 128;

pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
pub(super) const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
pub(super) const HEALTHY: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}";
pub(super) const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
const FILLER: &str =
    "the gate counts every token that passes and forwards each chunk when it arrives, ";

pub(super) struct Replies {
    /// A whole answer, head and body.
    pub(super) unary: Vec<u8>,
    batch: Vec<u8>,
    event_bytes: usize,
    finish: Vec<u8>,
}

impl Replies {
    pub(super) fn new() -> Self {
        let event = event(&filled(EVENT_BYTES, |text| {
            chunk(json!([choice(
                json!({"role": "assistant", "content": text}),
                None
            )]))
        }));
        Self {
            unary: unary(PROMPT_TOKENS, UNARY_TOKENS),
            batch: event.repeat(BATCH_EVENTS),
            event_bytes: event.len(),
            finish: self::event(&chunk(json!([choice(json!({}), Some("stop"))])).to_string()),
        }
    }

    /// As many of `wanted` events as fit one write, and how many they are.
    pub(super) fn events(&self, wanted: u32) -> (&[u8], u32) {
        let given = wanted.min(BATCH_EVENTS as u32);
        (&self.batch[..given as usize * self.event_bytes], given)
    }

    /// Everything after the last content event.
    pub(super) fn closing(&self, events: u32, include_usage: bool) -> Vec<u8> {
        let mut out = self.finish.clone();
        if include_usage {
            let mut last = chunk(json!([]));
            last["usage"] = usage(PROMPT_TOKENS, events as usize);
            out.extend(event(&last.to_string()));
        }
        out.extend(event("[DONE]"));
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }
}

/// What an answer to this call claims, prompt and completion.
pub(super) fn claims(id: &str) -> (u64, u64) {
    let hash = crate::text::hash(0xcbf2_9ce4_8422_2325, id.as_bytes());
    (1 + hash % PROMPT_TOKENS, 1 + (hash >> 32) % UNARY_TOKENS)
}

/// A whole answer that claims so many tokens.
pub(super) fn claiming(prompt: u64, completion: u64) -> Vec<u8> {
    unary(prompt, completion)
}

fn unary(prompt: u64, completion: u64) -> Vec<u8> {
    let completion = usize::try_from(completion).unwrap_or(usize::MAX);
    let body = filled(UNARY_BODY_BYTES, |text| {
        json!({
            "id": "chatcmpl-fixed", "object": "chat.completion", "created": 1_700_000_000, "model": "fixed",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": usage(prompt, completion),
        })
    });
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn chunk(choices: Value) -> Value {
    json!({"id": "chatcmpl-fixed", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "fixed",
        "choices": choices})
}

fn choice(delta: Value, finish: Option<&str>) -> Value {
    json!({"index": 0, "delta": delta, "finish_reason": finish})
}

/// What `make` gives for a text that brings it to `bytes`.
fn filled(bytes: usize, make: impl Fn(&str) -> Value) -> String {
    let room = bytes.saturating_sub(make("").to_string().len());
    let text: String = FILLER.chars().cycle().take(room).collect();
    make(&text).to_string()
}

/// One server-sent event as one HTTP chunk.
fn event(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}
