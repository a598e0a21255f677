//! What an answer holds in an event beyond the texts that have a known name: arguments that are objects, code and what it printed,
//! reasoning that is sealed, pictures and sound.
//!
//! Invariant: whatever stands where an answer does and is not known to be about it counts by its bytes, so that no dialect's new member
//! is free; what is cut off counts as far as it came.
//! Not here: texts with a known name, and which events are looked at (`text`).

use memchr::memmem;

use super::text::{FRAME_BYTES, named_bytes, string};

/// Members of an event below which an answer stands.
const PLACES: [&[u8]; 4] = [b"choices", b"candidates", b"delta", b"content_block"];
/// What stands around parts of an answer, and is none itself.
const AROUND: [&[u8]; 14] = [
    b"choices",
    b"candidates",
    b"delta",
    b"content_block",
    b"message",
    b"content",
    b"parts",
    b"tool_calls",
    b"function",
    b"function_call",
    b"custom",
    b"reasoning_details",
    b"reasoningContent",
    b"toolUse",
];
/// What is said about an answer, or was found for it (pages, which are of its prompt), and costs none of its tokens.
const ABOUT: [&[u8]; 25] = [
    b"annotations",
    b"avgLogprobs",
    b"citation",
    b"citationMetadata",
    b"citations",
    b"content_filter_results",
    b"encrypted_content",
    b"finishReason",
    b"finish_reason",
    b"format",
    b"groundingMetadata",
    b"id",
    b"index",
    b"logprobs",
    b"logprobsResult",
    b"mimeType",
    b"native_finish_reason",
    b"object",
    b"role",
    b"safetyRatings",
    b"stop_reason",
    b"token_ids",
    b"tool_use_id",
    b"type",
    b"urlContextMetadata",
];
const PICTURES: [&[u8]; 2] = [b"images", b"image_url"];
/// Pictures and sound of Google's, by both spellings.
const MEDIA: [&[u8]; 2] = [b"inlineData", b"inline_data"];
/// Bytes of text that have as many tokens as most pictures: about a thousand.
const PICTURE_BYTES: u64 = 4096;
/// So many written bytes of a picture or a sound come to one of text: a second of sound has about as many tokens, a large picture twice
/// those of a small one.
const MEDIA_BYTES: u64 = 512;
/// Deeper parts count by their bytes.
const DEPTH_MAX: u32 = 12;

/// Bytes of answer in a line of an event's data, or in the beginning of one.
#[cold]
#[inline(never)]
pub(super) fn answer_bytes(data: &[u8]) -> u64 {
    let members = Members::of(data).filter_map(|(name, value)| {
        let name = name.filter(|name| PLACES.contains(name))?;
        // A text that stands there has a known name.
        (value.first() != Some(&b'"')).then(|| held(name, value, 0))
    });
    members.sum()
}

/// Whether an event holds more of an answer than this much text that was read of it, which some engines write in two members. A
/// signature is of what was read.
pub(crate) fn holds_more(data: &[u8], text: u64) -> bool {
    let most = text.saturating_mul(2) + FRAME_BYTES;
    data.len() as u64 > most && answer_bytes(data) > most && !is_signature(data)
}

fn is_signature(data: &[u8]) -> bool {
    let delta = Members::of(data).find(|(name, _)| *name == Some(b"delta"));
    delta.is_some_and(|(_, delta)| Members::of(delta).any(|(name, _)| name == Some(b"signature")))
}

fn held(name: &[u8], value: &[u8], depth: u32) -> u64 {
    let is_around = AROUND.contains(&name) && depth < DEPTH_MAX;
    let of_all = || {
        Members::of(value)
            .map(|(inner, value)| held(inner.unwrap_or(name), value, depth + 1))
            .sum()
    };
    let as_media = value.len() as u64 / MEDIA_BYTES;
    match value.first() {
        _ if ABOUT.contains(&name) => 0,
        Some(b'[') if depth < DEPTH_MAX && PICTURES.contains(&name) => of_all(),
        _ if PICTURES.contains(&name) => PICTURE_BYTES + as_media,
        _ if MEDIA.contains(&name) => match memmem::find(value, b"image/") {
            Some(_) => PICTURE_BYTES + as_media,
            None => as_media,
        },
        _ if name == b"audio" => named_bytes(value, false) + as_media,
        Some(b'{' | b'[') if is_around => of_all(),
        Some(b'{' | b'[') => value.len() as u64,
        Some(b'"') => {
            let inside = value.get(1..).unwrap_or_default();
            string(inside).map_or(inside.len() as u64, |(_, length, _)| length)
        }
        _ => 0,
    }
}

/// The members of the object that begins here with their names, or the elements of the list, as they are written.
struct Members<'a> {
    rest: &'a [u8],
    is_object: bool,
}

impl<'a> Members<'a> {
    fn of(value: &'a [u8]) -> Self {
        let value = value.trim_ascii_start();
        Self {
            is_object: value.first() == Some(&b'{'),
            rest: value.get(1..).unwrap_or_default(),
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Option<&'a [u8]>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.trim_ascii_start();
        let mut from = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        let mut name = None;
        if self.is_object {
            let (told, _, after) = string(from.strip_prefix(b"\"")?)?;
            let after = after.trim_ascii_start().strip_prefix(b":")?;
            (name, from) = (Some(told), after.trim_ascii_start());
        }
        let (value, rest) = from.split_at_checked(value_bytes(from))?;
        self.rest = rest;
        (!value.is_empty()).then_some((name, value))
    }
}

/// How long the value is that begins here; all of it where its end is cut off.
fn value_bytes(from: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
    let end = match from.first() {
        Some(b'"' | b'{' | b'[') => after_value(from).map(|after| from.len() - after.len()),
        _ => from.iter().position(ends),
    };
    end.unwrap_or(from.len())
}

/// What is behind the text, the object or the list that begins here.
fn after_value(from: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut depth) = (from, 0_usize);
    loop {
        let at = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'))?;
        let (byte, after) = rest.get(at..)?.split_first()?;
        rest = after;
        match byte {
            b'"' => (_, _, rest) = string(after)?,
            b'{' | b'[' => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        if depth == 0 {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::answer_bytes;

    #[test]
    fn what_an_answer_holds_is_measured_whatever_its_member_is_called() {
        for (data, bytes) in [
            (
                r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"ab\n","role":"assistant"},"logprobs":{"content":[{"token":"ab"}]}}]}"#,
                3,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"call_1","type":"custom","custom":{"name":"f","input":"abc"}}]}}],"citations":["https://example.com"]}"#,
                4,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"x":[1,2]}}},{"text":"ab"}],"role":"model"},"safetyRatings":[{"category":"x"}]}],"modelVersion":"m"}"#,
                22,
            ),
            (
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":"}"}}}"#,
                10,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{"cited_text":"abc"}}}"#,
                0,
            ),
            (
                r#"{"choices":[{"delta":{"images":[{"image_url":{"url":"https://example.com"}},{"image_url":{}}]}}]}"#,
                8192,
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"QUFB"}},{"inlineData":{"mimeType":"audio/pcm","data":"QUFB"}}]}}]}"#,
                4096,
            ),
            (
                r#"{"choices":[{"delta":{"audio":{"data":"QUFB","transcript":"abc"}}}]}"#,
                3,
            ),
            (r#"{"content_block":{"data":"abc"#, 3),
            (r#"{"content_block":{"input":{"a":"bc"#, 8),
            (r#"{"content_block":{"input"#, 0),
            (
                r#"{"type":"response.completed","response":{"output":[]},"delta":{}}"#,
                0,
            ),
            ("", 0),
            ("[[[", 0),
            ("hello", 0),
        ] {
            assert_eq!(answer_bytes(data.as_bytes()), bytes, "{data}");
        }
        let deep = r#"{"choices":[{"audio":"#.repeat(10_000);
        assert_eq!(answer_bytes(deep.as_bytes()), deep.len() as u64 / 512);
        let deep = r#"{"choices":"#.to_owned() + &"[".repeat(100_000);
        assert!(answer_bytes(deep.as_bytes()) > 99_000);
    }
}
