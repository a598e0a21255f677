//! What scripted upstreams answer, as raw bytes.
//!
//! Not here: faults; a test builds its own from these parts.

/// A chat completion whose engine reports 7 and 3 tokens.
pub(crate) const COMPLETION: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#;

/// The end mark of a stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A whole response with a declared length.
pub(crate) fn whole(status: u16, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status} Some\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A whole response of JSON.
pub(crate) fn json(status: u16, body: &str) -> Vec<u8> {
    whole(status, "application/json", body.as_bytes())
}

/// The head of a chunked event stream.
pub(crate) fn events_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec()
}

/// One chunk.
pub(crate) fn chunk(data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// The chunk that ends a body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A whole event stream.
pub(crate) fn events(body: &[u8]) -> Vec<u8> {
    [events_head(), chunk(body), LAST_CHUNK.to_vec()].concat()
}

/// An event with a delta of the answer's text.
pub(crate) fn delta(text: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

/// The event that only reports usage; `counts` is the usage value.
pub(crate) fn usage_event(counts: &str) -> String {
    format!("data: {{\"id\":\"c\",\"choices\":[],\"usage\":{counts}}}\n\n")
}

/// A consistent usage value.
pub(crate) fn counts(prompt: u64, completion: u64) -> String {
    let total = prompt + completion;
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total}}}"#
    )
}
