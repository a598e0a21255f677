//! The quick way through what most events of a stream are, and most answers.
//!
//! Invariant: what it gives is what is read by name and kind (`Document`); where it gives nothing, that reads.

use super::{Block, Delta, Document};
use crate::raw::{Members, Seen};

/// A document, or an event's data.
pub(super) fn read(json: &[u8]) -> Option<Document<'_>> {
    Members::of(std::str::from_utf8(json).ok()?).whole(document)
}

fn document<'a>(members: &mut Members<'a>) -> Option<Document<'a>> {
    let (mut read, mut seen) = (Document::default(), Seen::default());
    let mut more = members.reader.open()?;
    while more {
        match members.name()? {
            "type" => seen.text(0, &mut read.kind, members.value()?)?,
            "index" => {
                seen.once(1)?;
                read.index = members.value()?.json().parse().ok()?;
            }
            "delta" => {
                seen.once(2)?;
                read.delta = Some(delta(members)?);
            }
            "id" => seen.text(3, &mut read.id, members.value()?)?,
            "model" => seen.text(4, &mut read.model, members.value()?)?,
            "stop_reason" => seen.text(5, &mut read.stop_reason, members.value()?)?,
            "stop_sequence" => seen.text(6, &mut read.stop_sequence, members.value()?)?,
            "content" => {
                seen.once(7)?;
                read.content = Some(blocks(members)?);
            }
            "usage" => {
                seen.once(8)?;
                read.usage = serde_json::from_str(members.value()?.json()).ok()?;
            }
            "message" | "content_block" | "error" => return None,
            _ => {
                members.reader.pass()?;
            }
        }
        more = members.reader.more()?;
    }
    Some(read)
}

fn delta<'a>(members: &mut Members<'a>) -> Option<Delta<'a>> {
    let (mut read, mut seen) = (Delta::default(), Seen::default());
    let mut more = members.reader.open()?;
    while more {
        match members.name()? {
            "text" => seen.text(0, &mut read.text, members.value()?)?,
            "thinking" => seen.text(1, &mut read.thinking, members.value()?)?,
            "signature" => seen.text(2, &mut read.signature, members.value()?)?,
            "partial_json" => seen.text(3, &mut read.partial_json, members.value()?)?,
            "stop_reason" => seen.text(4, &mut read.stop_reason, members.value()?)?,
            "stop_sequence" => seen.text(5, &mut read.stop_sequence, members.value()?)?,
            _ => members.reader.pass()?,
        }
        more = members.reader.more()?;
    }
    Some(read)
}

/// Blocks of text; others are rare.
fn blocks<'a>(members: &mut Members<'a>) -> Option<Vec<Block<'a>>> {
    let mut blocks = Vec::new();
    let mut more = members.reader.open_list()?;
    while more {
        let (mut block, mut seen) = (Block::default(), Seen::default());
        let mut more_of_it = members.reader.open()?;
        while more_of_it {
            match members.name()? {
                "type" => seen.text(0, &mut block.kind, members.value()?)?,
                "text" => seen.text(1, &mut block.text, members.value()?)?,
                "thinking" | "signature" | "data" | "id" | "name" | "input" => return None,
                _ => members.reader.pass()?,
            }
            more_of_it = members.reader.more()?;
        }
        blocks.push(block);
        more = members.reader.more_items()?;
    }
    Some(blocks)
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
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"a \"b\"\n"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":198}}"#,
            r#"{"type":"message_stop"}"#,
            r#"{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"Hi"},{"type":"text","text":null,"citations":[]}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":2,"cache_creation":{"ephemeral_1h_input_tokens":1}},"more":{"a":[1]}}"#,
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
            r#"{"type":"message_start","message":{"id":"msg_1"}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            r#"{"content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]}"#,
            r#"{"type":"ping","type":"ping"}"#,
            r#"{"t\u0079pe":"ping"}"#,
            r#"{"index":null}"#,
            r#"{"delta":null}"#,
            r#"{"type":1}"#,
            r#"[]"#,
            r#"{"type":"ping"} {}"#,
        ];
        for json in rare {
            assert!(!reads(json), "{json}");
        }
    }
}
