//! The quick way through what most chunks of a stream are, and most completions.
//!
//! Invariant: what it gives is what is read by name and kind (`Document`); where it gives nothing, that reads.

use super::{Choice, Document, Message};
use crate::raw::{Members, Seen};

/// A completion, or a chunk of one.
pub(super) fn read(json: &[u8]) -> Option<Document<'_>> {
    Members::of(std::str::from_utf8(json).ok()?).whole(document)
}

fn document<'a>(members: &mut Members<'a>) -> Option<Document<'a>> {
    let (mut read, mut seen) = (Document::default(), Seen::default());
    let mut more = members.reader.open()?;
    while more {
        match members.name()? {
            "id" => seen.text(0, &mut read.id, members.value()?)?,
            "model" => seen.text(1, &mut read.model, members.value()?)?,
            "choices" => {
                seen.once(2)?;
                read.choices = Some(choices(members)?);
            }
            "usage" => {
                seen.once(3)?;
                let usage = members.value()?;
                if !usage.is_null() {
                    read.usage = serde_json::from_str(usage.json()).ok()?;
                }
            }
            "error" => return None,
            _ => members.reader.pass()?,
        }
        more = members.reader.more()?;
    }
    Some(read)
}

fn choices<'a>(members: &mut Members<'a>) -> Option<Vec<Choice<'a>>> {
    let mut choices = Vec::new();
    let mut more = members.reader.open_list()?;
    while more {
        choices.push(choice(members)?);
        more = members.reader.more_items()?;
    }
    Some(choices)
}

fn choice<'a>(members: &mut Members<'a>) -> Option<Choice<'a>> {
    let (mut read, mut seen) = (Choice::default(), Seen::default());
    let mut more = members.reader.open()?;
    while more {
        match members.name()? {
            "index" => {
                seen.once(0)?;
                read.index = members.value()?.json().parse().ok()?;
            }
            "delta" | "message" => {
                seen.once(1)?;
                read.delta = Some(message(members)?);
            }
            "finish_reason" => seen.text(2, &mut read.finish_reason, members.value()?)?,
            "stop_reason" => {
                seen.once(3)?;
                members.value()?.is_null().then_some(())?;
            }
            _ => members.reader.pass()?,
        }
        more = members.reader.more()?;
    }
    Some(read)
}

/// One without calls of tools.
fn message<'a>(members: &mut Members<'a>) -> Option<Message<'a>> {
    let (mut read, mut seen) = (Message::default(), Seen::default());
    let mut more = members.reader.open()?;
    while more {
        match members.name()? {
            "content" => seen.text(0, &mut read.content, members.value()?)?,
            "refusal" => seen.text(1, &mut read.refusal, members.value()?)?,
            "reasoning_content" => seen.text(2, &mut read.reasoning_content, members.value()?)?,
            "reasoning" => seen.text(3, &mut read.reasoning, members.value()?)?,
            "tool_calls" => {
                seen.once(4)?;
                members.value()?.is_null().then_some(())?;
            }
            _ => members.reader.pass()?,
        }
        more = members.reader.more()?;
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::{Document, read};
    use crate::raw::read_json;

    /// Both ways read the same, where the quick one reads at all.
    fn reads(json: &str) -> bool {
        let quick = read(json.as_bytes());
        let slow = read_json::<Document<'_>>(json.as_bytes());
        if let Some(quick) = &quick {
            let slow = slow.unwrap_or_else(|stop| panic!("{json}: {stop:?}"));
            assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{json}");
        }
        quick.is_some()
    }

    #[test]
    fn what_is_read_the_quick_way_is_what_is_read_by_name_and_kind() {
        let usual = [
            r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"a\u00e9","tool_calls":null},"stop_reason":null}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}"#,
            r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}"#,
        ];
        for json in usual {
            assert!(reads(json), "{json}");
            let spaced = json.replace(':', ": ").replace(',', ",\n ");
            assert!(reads(&spaced), "{spaced}");
            // Cut anywhere, with a byte too many or with another one, both say the same of it.
            for at in 0..json.len() {
                reads(&json[..at]);
                for other in ["\"", "}", "0", "null", "\\", ","] {
                    reads(&[&json[..at], other, &json[at..]].concat());
                    reads(&[&json[..at], other, &json[at + 1..]].concat());
                }
            }
        }
        let rare = [
            r#"{"error":{"message":"no"}}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"choices":[{"delta":{},"message":{}}]}"#,
            r#"{"choices":[{"stop_reason":"x"}]}"#,
            r#"{"choices":null}"#,
            r#"{"id":"a","id":"b"}"#,
            r#"{"i\u0064":"a"}"#,
            r#"{"choices":[{"index":-1}]}"#,
        ];
        for json in rare {
            assert!(!reads(json), "{json}");
        }
    }
}
