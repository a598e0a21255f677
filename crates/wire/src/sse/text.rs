//! How much text an event brings, by the names that the dialects have for it.
//!
//! Invariant: reads each byte once, builds nothing, and of what is no JSON tells nothing.
//! Not here: the text itself, in order and by lanes ([`crate::answer`]), what else an answer holds (`beyond`).

use memchr::{memchr, memchr2};

use super::beyond::answer_bytes;

/// Members whose texts are what an engine made, in any dialect.
const MADE: [&[u8]; 11] = [
    b"content",
    b"text",
    b"reasoning",
    b"reasoning_content",
    b"thinking",
    b"refusal",
    b"arguments",
    b"input",
    b"partial_json",
    b"delta",
    b"transcript",
];
/// Events of the Responses API, of which those alone that end so bring text that no other one does.
const RESPONSES: &[u8] = b"response.";
const DELTA: &[u8] = b".delta";
/// An event that has more bytes beside its text may hold what has none of those names; nearly all have fewer.
pub(super) const FRAME_BYTES: u64 = 384;

/// Bytes of text in a line of an event's data.
pub(super) fn text_bytes(data: &[u8]) -> u64 {
    or_beyond(data, named_bytes(data, false))
}

/// Bytes of text in the beginning of a line, with those of a text that goes on behind it.
pub(super) fn text_of_beginning(data: &[u8]) -> u64 {
    or_beyond(data, named_bytes(data, true))
}

#[inline]
fn or_beyond(data: &[u8], text: u64) -> u64 {
    if (data.len() as u64).saturating_sub(text) > FRAME_BYTES {
        text.max(answer_bytes(data))
    } else {
        text
    }
}

/// Bytes of the texts that have a known name.
pub(super) fn named_bytes(data: &[u8], is_beginning: bool) -> u64 {
    let (mut rest, mut member, mut bytes) = (data, &b""[..], 0);
    while let Some(at) = memchr(b'"', rest) {
        let from = rest.get(at + 1..).unwrap_or_default();
        let Some((text, length, after)) = string(from) else {
            // As it is written: of what is not whole nobody knows where its escapes end.
            let is_counted = is_beginning && MADE.contains(&member);
            return bytes + if is_counted { from.len() as u64 } else { 0 };
        };
        rest = after.trim_ascii_start();
        if rest.first() == Some(&b':') {
            member = text;
            continue;
        }
        if MADE.contains(&member) {
            bytes += length;
        } else if member == b"type" && text.starts_with(RESPONSES) && !text.ends_with(DELTA) {
            return 0;
        }
    }
    bytes
}

/// The string that begins here as it is written, how many bytes it reads as, and what is behind its closing quote.
pub(super) fn string(from: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let (mut at, mut escaped) = (0, 0);
    loop {
        at += memchr2(b'"', b'\\', from.get(at..)?)?;
        if from.get(at) == Some(&b'"') {
            let text = from.get(..at)?;
            let length = (text.len() as u64).saturating_sub(escaped);
            return Some((text, length, from.get(at + 1..)?));
        }
        // A unit of UTF-16 in six bytes is three of text at most, any other escape one in two.
        let is_unit = from.get(at + 1) == Some(&b'u');
        escaped += if is_unit { 3 } else { 1 };
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::text_bytes;

    #[test]
    fn what_an_engine_made_is_measured_in_every_dialect_and_nothing_else_is() {
        for (data, bytes) in [
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":"lorem"}}]}"#,
                5,
            ),
            (
                r#"{"choices":[{"delta":{"reasoning_content":"ab","content":"c"},"logprobs":{"content":[{"token":"c"}]}}]}"#,
                3,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}"#,
                7,
            ),
            (r#"{"choices":[{"text":"a\u4f60\n"}]}"#, 5),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
                5,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                2,
            ),
            (
                r#"{"type":"response.output_text.delta","delta":"Hello"}"#,
                5,
            ),
            (r#"{"type":"response.output_text.done","text":"Hello"}"#, 0),
            (
                r#"{"type":"response.completed","response":{"output":[{"content":[{"text":"Hello"}]}]}}"#,
                0,
            ),
            (
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"},{"text":"!"}]}}]}"#,
                6,
            ),
            (r#"{"content":"a","x":"b"}"#, 1),
            (r#"{"content":null,"x":1}"#, 0),
            ("hello", 0),
            (r#"{"content":"cut"#, 0),
            (r#"{"content":"\"#, 0),
            ("", 0),
        ] {
            assert_eq!(text_bytes(data.as_bytes()), bytes, "{data}");
        }
    }
}
