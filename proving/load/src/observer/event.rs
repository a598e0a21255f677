//! What one event says, by tests on its bytes.
//!
//! A JSON text holds no unescaped quotation mark, so `"content"` with both of its marks is a name or a value and never a
//! part of one; a name is followed by a colon. An event of a chat or a plain completion has visible text where `"content"`,
//! `"text"` or `"refusal"` is followed by a text that is not empty, outside of what is reasoning; reasoning where
//! `"reasoning_content"`, `"reasoning"` or `"thinking"` is, or in an array behind `"reasoning_details"` or `"thinking"`; a call
//! of a tool where `"tool_calls"` is followed by an array that is not empty, or `"function_call"` by an object.
//! Invariant: no JSON is decoded here; white space between name, colon and value changes nothing.
//! Not here: other dialects' names for the same, whose events count as events without output.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

/// What an event generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Text that a person sees.
    Visible,
    /// Text that a model says to itself.
    Reasoning,
    /// A part of a call of a tool.
    Tool,
}

/// Why generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Finish {
    /// By itself.
    Stop,
    /// Its cap.
    Length,
    /// It calls a tool.
    ToolCalls,
    /// What it would have said is withheld.
    ContentFilter,
    /// Another reason.
    Other,
}

impl Finish {
    /// As an event has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }

    fn of(value: &[u8]) -> Self {
        let known = [
            Self::Stop,
            Self::Length,
            Self::ToolCalls,
            Self::ContentFilter,
        ];
        let is = |finish: &Self| {
            let behind = value.strip_prefix(b"\"");
            let behind = behind.and_then(|value| value.strip_prefix(finish.word().as_bytes()));
            behind.is_some_and(|behind| behind.starts_with(b"\""))
        };
        known.into_iter().find(is).unwrap_or(Self::Other)
    }
}

/// What was found in one event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meaning {
    /// Whether it generates anything, and what a person sees first of it.
    pub output: Option<Output>,
    /// Why generation ended, where it says so.
    pub finish: Option<Finish>,
    /// It is the end mark: `[DONE]`, or Anthropic's `message_stop`.
    pub is_done: bool,
    /// It tells of an error.
    pub is_error: bool,
    /// Where in it a usage object begins.
    pub usage: Option<usize>,
}

struct Names {
    content: Finder<'static>,
    text: Finder<'static>,
    refusal: Finder<'static>,
    reasoning_details: Finder<'static>,
    thinking: Finder<'static>,
    reasoning_content: Finder<'static>,
    reasoning: Finder<'static>,
    tool_calls: Finder<'static>,
    function_call: Finder<'static>,
    finish_reason: Finder<'static>,
    error: Finder<'static>,
    object: Finder<'static>,
    event_line: Finder<'static>,
    usage: Finder<'static>,
    kind: Finder<'static>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
    content: Finder::new("\"content\""),
    text: Finder::new("\"text\""),
    refusal: Finder::new("\"refusal\""),
    reasoning_details: Finder::new("\"reasoning_details\""),
    thinking: Finder::new("\"thinking\""),
    reasoning_content: Finder::new("\"reasoning_content\""),
    reasoning: Finder::new("\"reasoning\""),
    tool_calls: Finder::new("\"tool_calls\""),
    function_call: Finder::new("\"function_call\""),
    finish_reason: Finder::new("\"finish_reason\""),
    error: Finder::new("\"error\""),
    object: Finder::new("\"object\""),
    event_line: Finder::new("\nevent:"),
    usage: Finder::new("\"usage\""),
    kind: Finder::new("\"type\""),
});

impl Meaning {
    /// What `event` says: its lines without the empty one behind them.
    #[must_use]
    pub fn of(event: &[u8]) -> Self {
        let names = &*NAMES;
        let event = event.trim_ascii_end();
        let is_done =
            event.ends_with(b"[DONE]") && event.len() <= "event: done\r\ndata: [DONE]".len();
        if is_done || event.len() <= STOP_BYTES_MAX && is_stop(event) {
            return Self {
                is_done: true,
                ..Self::default()
            };
        }
        Self {
            output: names.output(event),
            finish: finish(event),
            is_done: false,
            is_error: is_error(event),
            usage: usage(event),
        }
    }
}

/// A `message_stop` is not longer: it says nothing else.
const STOP_BYTES_MAX: usize = 128;

fn is_stop(event: &[u8]) -> bool {
    values(event, &NAMES.kind).any(|value| value.starts_with(b"\"message_stop\""))
}

/// Why generation ended, by an event or a body.
pub(super) fn finish(bytes: &[u8]) -> Option<Finish> {
    values(bytes, &NAMES.finish_reason)
        .find(|value| is_text(value))
        .map(Finish::of)
}

/// What an event or a body generates.
pub(super) fn output(bytes: &[u8]) -> Option<Output> {
    NAMES.output(bytes)
}

/// Where a usage object begins, in an event or in a body; the last one where there are several.
pub(super) fn usage(bytes: &[u8]) -> Option<usize> {
    let objects = values(bytes, &NAMES.usage).filter(|value| value.first() == Some(&b'{'));
    objects.last().map(|value| bytes.len() - value.len())
}

impl Names {
    fn output(&self, event: &[u8]) -> Option<Output> {
        // Parts of reasoning are texts, too, by the names that visible ones have.
        let inner = [&self.reasoning_details, &self.thinking];
        let inner = inner.into_iter().flat_map(|name| values(event, name));
        let inner: Vec<&[u8]> = inner.filter_map(array).collect();
        let is_inside = |value: &[u8]| {
            let ranges = inner.iter().map(|array| array.as_ptr_range());
            ranges
                .into_iter()
                .any(|range| range.contains(&value.as_ptr()))
        };
        let says = |name: &Finder<'_>| values(event, name).any(is_text);
        let shows = |name: &Finder<'_>| {
            values(event, name).any(|value| is_text(value) && !is_inside(value))
        };
        if shows(&self.content) || shows(&self.text) || says(&self.refusal) {
            return Some(Output::Visible);
        }
        let within = inner
            .iter()
            .any(|array| values(array, &self.text).any(is_text));
        if within || says(&self.reasoning_content) || says(&self.reasoning) || says(&self.thinking)
        {
            return Some(Output::Reasoning);
        }
        let calls = values(event, &self.tool_calls).any(is_filled_array);
        let is_object = |value: &[u8]| value.first() == Some(&b'{');
        let is_call = calls || values(event, &self.function_call).any(is_object);
        is_call.then_some(Output::Tool)
    }
}

/// What stands behind each use of `name` as a name, from its first byte to the end of the event.
fn values<'a>(event: &'a [u8], name: &Finder<'_>) -> impl Iterator<Item = &'a [u8]> {
    let length = name.needle().len();
    name.find_iter(event).filter_map(move |at| {
        let behind = event[at + length..].trim_ascii_start();
        Some(behind.strip_prefix(b":")?.trim_ascii_start())
    })
}

/// The array that begins here, to its end or to that of the event.
fn array(value: &[u8]) -> Option<&[u8]> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    if value.first() != Some(&b'[') {
        return None;
    }
    for (at, byte) in value.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'[' if !is_quoted => depth += 1,
            b']' if !is_quoted => {
                depth -= 1;
                if depth == 0 {
                    return value.get(..=at);
                }
            }
            _ => {}
        }
    }
    Some(value)
}

/// A text that is not empty.
fn is_text(value: &[u8]) -> bool {
    matches!(value, [b'"', first, ..] if *first != b'"')
}

fn is_filled_array(value: &[u8]) -> bool {
    let inside = value.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| !inside.starts_with(b"]"))
}

/// Whether an event or a body tells of an error: a line names it so, a member `error` says something, the `object` is one,
/// or generation ended with one.
pub(super) fn is_error(bytes: &[u8]) -> bool {
    let names = &*NAMES;
    let named = |line: &[u8]| {
        let name = line.strip_prefix(b"event:").map(<[u8]>::trim_ascii_start);
        name.is_some_and(|name| name.starts_with(b"error"))
    };
    let is_said = |value: &[u8]| value.first() == Some(&b'{') || is_text(value);
    let is_finish = |value: &[u8]| value.starts_with(b"\"error\"");
    values(bytes, &names.error).any(is_said)
        || values(bytes, &names.finish_reason).any(is_finish)
        || values(bytes, &names.object).any(is_finish)
        || (bytes.starts_with(b"event:") || names.event_line.find(bytes).is_some())
            && bytes.split(|&byte| byte == b'\n').any(named)
}

#[cfg(test)]
mod tests {
    //! Events of engines as they are sent.

    use super::{Finish, Meaning, Output};

    fn output(data: &str) -> Option<Output> {
        Meaning::of(format!("data: {data}\n").as_bytes()).output
    }

    #[test]
    fn text_is_visible_where_it_is_not_empty_whatever_the_white_space() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices": [{"delta": {"role": "assistant", "content": "\n"}}]}"#,
            r#"{"choices":[{"text":" ","logprobs":null}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"r","content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\"content\":\"\""}}]}"#,
        ] {
            assert_eq!(output(data), Some(Output::Visible), "{data}");
        }
        for data in [
            r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{},"logprobs":{"content":[{"token":"a"}]}}]}"#,
            r#"{"choices":[{"delta":{"role":"content"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[]}}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
        ] {
            assert_eq!(output(data), None, "{data}");
        }
    }

    #[test]
    fn reasoning_and_calls_of_tools_are_told_apart_from_what_is_seen() {
        for (data, expected) in [
            (
                r#"{"choices":[{"delta":{"content":"","reasoning_content":"hm"}}]}"#,
                Output::Reasoning,
            ),
            (
                r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
                Output::Reasoning,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"content\":\"x\"}"}}]}}]}"#,
                Output::Tool,
            ),
            (
                r#"{"choices":[{"delta":{"content":null,"function_call":{"name":"f"}}}]}"#,
                Output::Tool,
            ),
        ] {
            assert_eq!(output(data), Some(expected), "{data}");
        }
    }

    #[test]
    fn a_refusal_is_text_and_parts_of_reasoning_are_not() {
        for (data, expected) in [
            (
                r#"{"choices":[{"delta":{"refusal":"I can't"}}]}"#,
                Some(Output::Visible),
            ),
            (
                r#"{"choices":[{"delta":{"content":"a","refusal":null}}]}"#,
                Some(Output::Visible),
            ),
            (
                r#"{"choices":[{"delta":{"content":null,"refusal":null}}]}"#,
                None,
            ),
            // OpenRouter.
            (
                r#"{"choices":[{"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","text":"h]m \"","index":0}]}}]}"#,
                Some(Output::Reasoning),
            ),
            (
                r#"{"choices":[{"delta":{"reasoning_details":[{"text":"hm"}],"content":"a"}}]}"#,
                Some(Output::Visible),
            ),
            // Mistral.
            (
                r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}"#,
                Some(Output::Reasoning),
            ),
            (
                r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"hm"}]},{"type":"text","text":"a"}]}}]}"#,
                Some(Output::Visible),
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                Some(Output::Reasoning),
            ),
        ] {
            assert_eq!(output(data), expected, "{data}");
        }
    }

    #[test]
    fn the_end_its_reason_errors_and_usage_are_seen() {
        let of = |event: &str| Meaning::of(event.as_bytes());
        assert!(of("data: [DONE]\n").is_done && of("data:[DONE]\r\n").is_done);
        assert!(!of(r#"data: {"content":"[DONE]"}"#).is_done);
        assert!(of("event: message_stop\ndata: {\"type\": \"message_stop\"}\n").is_done);
        assert!(!of(r#"data: {"text":"message_stop"}"#).is_done);
        let finish = of(r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
        assert!(finish.finish == Some(Finish::Stop) && finish.output.is_none());
        let of_reason = |reason: &str| {
            of(&format!(
                r#"data: {{"choices":[{{"delta":{{}},"finish_reason":{reason}}}]}}"#
            ))
            .finish
        };
        assert_eq!(of_reason("null"), None);
        assert_eq!(of_reason("\"content_filter\""), Some(Finish::ContentFilter));
        assert_eq!(of_reason("\"stop_sequence\""), Some(Finish::Other));
        for error in [
            "data: {\"error\": {\"message\": \"no\"}}",
            "data: {\"error\":\"no\"}",
            "event: error\ndata: x",
            "event: message\ndata: {\"error\":{}}",
            "data: {\"object\":\"error\",\"message\":\"no\"}",
            "id: 1\nevent: error\ndata: x",
            ": comment\ndata: {\"error\":{}}",
            "data: {\"id\":\"1\",\"error\":{\"code\":500},\"choices\":[]}",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}",
        ] {
            assert!(of(error).is_error, "{error}");
        }
        for fine in [
            r#"data: {"choices":[],"error":null}"#,
            r#"data: {"choices":[{"delta":{"content":"\"error\":{}"}}]}"#,
            r#"data: {"choices":[{"delta":{"content":"error"}}]}"#,
        ] {
            assert!(!of(fine).is_error, "{fine}");
        }
        assert!(!of(r#"data: {"error":null,"choices":[]}"#).is_error);
        let event = r#"data: {"choices":[],"usage": {"prompt_tokens":1}}"#;
        let at = of(event).usage.expect("usage");
        assert!(event[at..].starts_with("{\"prompt"));
        assert_eq!(of(r#"data: {"choices":[],"usage":null}"#).usage, None);
    }
}
