//! The texts of answers: chat completions in one piece and as events.
//!
//! Invariant: what is sent is no JSON that a library would write anew as it stands: spaces, escapes and a comment show a
//! gateway that does not pass on bytes.
//! Not here: sending (`serve`).

use serde_json::{Value, json};

use super::Usage;

/// Content events of a stream.
const WORDS: [&str; 6] = [
    "An ",
    "upstream ",
    "that ",
    "writes ",
    "down \\u2014 ",
    "naïvely.",
];

/// The usage of the call of this number.
pub(super) const fn usage(number: u64) -> Usage {
    Usage {
        prompt: 21 + number % 89,
        completion: 7 + number % 13,
    }
}

fn usage_text(usage: Usage) -> String {
    let Usage { prompt, completion } = usage;
    let total = prompt + completion;
    format!(
        r#"{{"prompt_tokens": {prompt}, "completion_tokens": {completion}, "total_tokens": {total}}}"#
    )
}

/// What a call asks for.
pub(super) struct Wanted {
    pub(super) model: String,
    pub(super) streams: bool,
    pub(super) with_usage: bool,
}

impl Wanted {
    /// Whatever a body is, it is answered.
    pub(super) fn of(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let usage = body.pointer("/stream_options/include_usage");
        Self {
            model: body["model"].as_str().unwrap_or("none").to_owned(),
            streams: body["stream"] == true,
            with_usage: usage == Some(&true.into()),
        }
    }
}

/// An answer in one piece.
pub(super) fn whole(number: u64, model: &str, usage: Usage) -> String {
    let (model, content) = (json!(model), WORDS.concat());
    let usage = usage_text(usage);
    format!(
        "{{\"id\": \"chatcmpl-{number:06}\", \"object\": \"chat.completion\", \"created\": 1767225600,\n \
         \"model\": {model},\n \"choices\": [ {{\"index\": 0, \"message\": {{\"role\": \"assistant\", \
         \"content\": \"{content}\"}}, \"finish_reason\": \"stop\"}} ],\n \"usage\": {usage} }}\n"
    )
}

/// A stream, event by event.
pub(super) fn events(number: u64, wanted: &Wanted, usage: Usage) -> Vec<String> {
    let model = json!(wanted.model);
    let of = |rest: &str| {
        format!(
            "data: {{\"id\": \"chatcmpl-{number:06}\", \"object\": \"chat.completion.chunk\", \
             \"created\": 1767225600, \"model\": {model}, {rest}}}\n\n"
        )
    };
    let mut events = vec![of(
        r#""choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]"#,
    )];
    events.extend(WORDS.iter().map(|word| {
        of(&format!(
            r#""choices": [{{"index": 0, "delta": {{"content": "{word}"}}, "finish_reason": null}}]"#
        ))
    }));
    events.push(of(
        r#""choices": [ {"index": 0, "delta": {}, "finish_reason": "stop"} ]"#,
    ));
    if wanted.with_usage {
        let usage = usage_text(usage);
        events.push(of(&format!(r#""choices": [], "usage": {usage}"#)));
    }
    events.push("data: [DONE]\n\n".into());
    events
}

/// What is said to whoever is refused, and of a failure on demand.
pub(super) fn error(says: &str, code: &str) -> String {
    json!({ "error": { "message": says, "type": "upstream_error", "param": null, "code": code } })
        .to_string()
}
