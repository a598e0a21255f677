//! A fake of each provider: it answers a text, a call of a tool, a stream of either, or an error, in the provider's own form.
//!
//! Not here: whether what it was asked is right, which the provider's own types say (`sdk/validated.py`).

use testing::eventstream::event;

use crate::harness::Seen;
use crate::harness::answer::{LAST_CHUNK, chunk, events, json as answer, whole};

/// What a call wants: its body says it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Text,
    Call,
    Error,
}

impl Wants {
    fn of(seen: &Seen) -> Self {
        let body = String::from_utf8_lossy(&seen.body);
        let has = |text: &str| body.contains(text);
        match (has("FAIL"), has("weather"), has("21 degrees")) {
            (true, ..) => Self::Error,
            (_, true, false) => Self::Call,
            _ => Self::Text,
        }
    }
}

/// What a provider of this dialect answers.
pub(super) fn answered(dialect: &str, seen: &Seen) -> Vec<u8> {
    let wants = Wants::of(seen);
    if wants == Wants::Error {
        return failed(dialect);
    }
    let is_call = wants == Wants::Call;
    let body = String::from_utf8_lossy(&seen.body).replace(' ', "");
    let is_streamed = body.contains("\"stream\":true") || seen.path().contains("tream");
    match (dialect, is_streamed) {
        ("openai" | "azure", true) => lines(&chat_events(is_call), "data: [DONE]\n\n"),
        ("openai" | "azure", false) => answer(200, &chat(is_call)),
        ("anthropic" | "anthropic-on-vertex", true) => lines(&message_events(is_call), ""),
        ("anthropic" | "anthropic-on-vertex", false) => answer(200, &message(is_call)),
        ("gemini" | "vertex", true) => lines(&[generated(is_call)], ""),
        ("gemini" | "vertex", false) => answer(200, &generated(is_call)),
        ("cohere", true) => lines(&cohere_events(is_call), ""),
        ("cohere", false) => answer(200, &cohere(is_call)),
        (_, true) => frames(is_call),
        (_, false) => answer(200, &converse(is_call)),
    }
}

fn failed(dialect: &str) -> Vec<u8> {
    let body = match dialect {
        "anthropic" | "anthropic-on-vertex" => {
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#
        }
        "gemini" | "vertex" => {
            r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}"#
        }
        "bedrock" | "cohere" => r#"{"message":"slow down"}"#,
        _ => {
            r#"{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":null}}"#
        }
    };
    answer(429, body)
}

/// Events of these data, called by the type that stands at their beginning.
fn lines(data: &[impl AsRef<str>], end: &str) -> Vec<u8> {
    let told = data.iter().map(|data| {
        let data = data.as_ref();
        let kind = data
            .strip_prefix("{\"type\":\"")
            .and_then(|rest| rest.split('"').next());
        let name = kind.map_or_else(String::new, |kind| format!("event: {kind}\n"));
        format!("{name}data: {data}\n\n")
    });
    let told = told.collect::<String>() + end;
    events(told.as_bytes())
}

fn chat(is_call: bool) -> String {
    let (message, reason) = match is_call {
        true => (
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Turin\"}"}}]}"#,
            "tool_calls",
        ),
        false => (r#"{"role":"assistant","content":"Hello."}"#, "stop"),
    };
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}}}"#
    )
}

fn chat_events(is_call: bool) -> Vec<String> {
    let (delta, reason) = match is_call {
        true => (
            r#"{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Turin\"}"}}]}"#,
            "tool_calls",
        ),
        false => (r#"{"role":"assistant","content":"Hello."}"#, "stop"),
    };
    let of = |choices: &str, usage: &str| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{choices}]{usage}}}"#
        )
    };
    vec![
        of(
            &format!(r#"{{"index":0,"delta":{delta},"finish_reason":null}}"#),
            "",
        ),
        of(
            &format!(r#"{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}"#),
            "",
        ),
        of(
            "",
            r#","usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}"#,
        ),
    ]
}

fn message(is_call: bool) -> String {
    let (block, reason) = match is_call {
        true => (
            r#"{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Turin"}}"#,
            "tool_use",
        ),
        false => (r#"{"type":"text","text":"Hello."}"#, "end_turn"),
    };
    format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{block}],"stop_reason":"{reason}","stop_sequence":null,"usage":{{"input_tokens":12,"output_tokens":3}}}}"#
    )
}

fn message_events(is_call: bool) -> Vec<String> {
    let (block, delta, reason) = match is_call {
        true => (
            r#"{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}"#,
            r#"{"type":"input_json_delta","partial_json":"{\"city\":\"Turin\"}"}"#,
            "tool_use",
        ),
        false => (
            r#"{"type":"text","text":""}"#,
            r#"{"type":"text_delta","text":"Hello."}"#,
            "end_turn",
        ),
    };
    vec![
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}}"#.to_owned(),
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":3}}}}"#
        ),
        r#"{"type":"message_stop"}"#.to_owned(),
    ]
}

fn generated(is_call: bool) -> String {
    let part = match is_call {
        true => r#"{"functionCall":{"name":"weather","args":{"city":"Turin"}}}"#,
        false => r#"{"text":"Hello."}"#,
    };
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":12,"candidatesTokenCount":3,"totalTokenCount":15}},"modelVersion":"m","responseId":"r1"}}"#
    )
}

const COHERE_USAGE: &str = r#""usage":{"billed_units":{"input_tokens":2,"output_tokens":3},"tokens":{"input_tokens":12,"output_tokens":3}}"#;
const COHERE_CALL: &str = r#"{"id":"weather_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Turin\"}"}}"#;

fn cohere(is_call: bool) -> String {
    let (said, reason) = match is_call {
        true => (format!(r#""tool_calls":[{COHERE_CALL}]"#), "TOOL_CALL"),
        false => (
            r#""content":[{"type":"text","text":"Hello."}]"#.to_owned(),
            "COMPLETE",
        ),
    };
    format!(
        r#"{{"id":"c1","finish_reason":"{reason}","message":{{"role":"assistant",{said}}},{COHERE_USAGE}}}"#
    )
}

fn cohere_events(is_call: bool) -> Vec<String> {
    let (said, reason) = match is_call {
        true => (
            format!(
                r#"{{"type":"tool-call-start","index":0,"delta":{{"message":{{"tool_calls":{COHERE_CALL}}}}}}}"#
            ),
            "TOOL_CALL",
        ),
        false => (
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello."}}}}"#
                .to_owned(),
            "COMPLETE",
        ),
    };
    vec![
        r#"{"id":"c1","type":"message-start","delta":{"message":{"role":"assistant","content":[]}}}"#
            .to_owned(),
        said,
        format!(
            r#"{{"type":"message-end","delta":{{"finish_reason":"{reason}",{COHERE_USAGE}}}}}"#
        ),
    ]
}

const CONVERSE_USAGE: &str =
    r#""usage":{"inputTokens":12,"outputTokens":3,"totalTokens":15},"metrics":{"latencyMs":5}"#;

fn converse(is_call: bool) -> String {
    let (block, reason) = match is_call {
        true => (
            r#"{"toolUse":{"toolUseId":"t1","name":"weather","input":{"city":"Turin"}}}"#,
            "tool_use",
        ),
        false => (r#"{"text":"Hello."}"#, "end_turn"),
    };
    format!(
        r#"{{"output":{{"message":{{"role":"assistant","content":[{block}]}}}},"stopReason":"{reason}",{CONVERSE_USAGE}}}"#
    )
}

fn frames(is_call: bool) -> Vec<u8> {
    let begun = match is_call {
        true => event(
            "contentBlockStart",
            r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"weather"}}}"#,
        ),
        false => Vec::new(),
    };
    let (delta, reason) = match is_call {
        true => (
            r#"{"toolUse":{"input":"{\"city\":\"Turin\"}"}}"#,
            "tool_use",
        ),
        false => (r#"{"text":"Hello."}"#, "end_turn"),
    };
    let body = [
        event("messageStart", r#"{"role":"assistant"}"#),
        begun,
        event(
            "contentBlockDelta",
            &format!(r#"{{"contentBlockIndex":0,"delta":{delta}}}"#),
        ),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", &format!(r#"{{"stopReason":"{reason}"}}"#)),
        event("metadata", &format!("{{{CONVERSE_USAGE}}}")),
    ]
    .concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nx-amzn-requestid: 7f3a\r\ntransfer-encoding: chunked\r\n\r\n";
    [head.as_bytes(), &chunk(&body), LAST_CHUNK].concat()
}

/// Documents that are ranked, as who bills units of search tells it.
pub(super) fn ranked() -> Vec<u8> {
    let body = br#"{"id":"r1","results":[{"index":1,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}"#;
    whole(200, "application/json", body)
}
