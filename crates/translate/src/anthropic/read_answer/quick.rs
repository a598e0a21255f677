//! The quick way through what most events of a stream are, and most answers.
//!
//! Invariant: what it gives is what is read by name and kind (`Document`); where it gives nothing, that reads.

use super::{Block, Counts, Delta, Document, Written};
use crate::raw::{Members, Seen, Text};

/// A document, or an event's data, which goes to its place, as it is large. Where it gives nothing, what is there means nothing.
pub(super) fn read<'a>(json: &'a str, into: &mut Document<'a>) -> Option<()> {
    Members::of(json).whole(|members| document(members, into))
}

fn document<'a>(members: &mut Members<'a>, read: &mut Document<'a>) -> Option<()> {
    let mut seen = Seen::default();
    members.each(|members, name| match name {
        "type" => seen.text(0, &mut read.kind, members),
        "index" => {
            read.index = members.number()?;
            seen.once(1)
        }
        "delta" => {
            delta(members, read.delta.insert(Delta::default()))?;
            seen.once(2)
        }
        "id" => seen.text(3, &mut read.id, members),
        "model" => seen.text(4, &mut read.model, members),
        "stop_reason" => seen.text(5, &mut read.stop_reason, members),
        "stop_sequence" => seen.text(6, &mut read.stop_sequence, members),
        "content" => {
            read.content = Some(members.list(1, block)?);
            seen.once(7)
        }
        "usage" => seen.told(8, &mut read.usage, members, counts),
        "message" | "content_block" | "error" => None,
        _ => members.reader.pass(),
    })
}

fn delta<'a>(members: &mut Members<'a>, read: &mut Delta<'a>) -> Option<()> {
    let mut seen = Seen::default();
    members.each(|members, name| match name {
        "text" => seen.text(0, &mut read.text, members),
        "thinking" => seen.text(1, &mut read.thinking, members),
        "signature" => seen.text(2, &mut read.signature, members),
        "partial_json" => seen.text(3, &mut read.partial_json, members),
        "stop_reason" => seen.text(4, &mut read.stop_reason, members),
        "stop_sequence" => seen.text(5, &mut read.stop_sequence, members),
        _ => members.reader.pass(),
    })
}

/// What most events of a stream are: more of one block.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// The number of its block.
    pub(super) nth: u32,
    pub(super) of: Of,
    pub(super) text: Text<'a>,
}

/// What a piece is more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Text,
    Thinking,
    Signature,
    Arguments,
}

/// How a piece says what it is more of, to its text.
const PIECES: [(Of, &str); 4] = [
    (Of::Text, r#""type":"text_delta","text":"#),
    (
        Of::Arguments,
        r#""type":"input_json_delta","partial_json":"#,
    ),
    (Of::Thinking, r#""type":"thinking_delta","thinking":"#),
    (Of::Signature, r#""type":"signature_delta","signature":"#),
];

/// An event that is a piece, written as the API writes it.
pub(super) fn piece(json: &str) -> Option<Piece<'_>> {
    Members::of(json).whole(|members| {
        members.reader.open()?;
        members
            .reader
            .past(r#""type":"content_block_delta","index":"#)?;
        let nth = members.number()?;
        members.reader.past(r#","delta":"#)?;
        members.reader.open()?;
        let mut pieces = PIECES.into_iter();
        let (of, _) = pieces.find(|(_, written)| members.reader.past(written).is_some())?;
        let text = members.text()??;
        let has_more = members.reader.more()? || members.reader.more()?;
        (!has_more).then_some(Piece { nth, of, text })
    })
}

/// A block of text; others are rare.
fn block<'a>(members: &mut Members<'a>) -> Option<Block<'a>> {
    let (mut read, mut seen) = (Block::default(), Seen::default());
    members.each(|members, name| match name {
        "type" => seen.text(0, &mut read.kind, members),
        "text" => seen.text(1, &mut read.text, members),
        "thinking" | "signature" | "data" | "id" | "name" | "input" => None,
        _ => members.reader.pass(),
    })?;
    Some(read)
}

fn counts(members: &mut Members<'_>) -> Option<Counts> {
    let (mut read, mut seen) = (Counts::default(), Seen::default());
    members.each(|members, name| match name {
        "input_tokens" => seen.count(0, &mut read.input_tokens, members),
        "cache_read_input_tokens" => seen.count(1, &mut read.cache_read_input_tokens, members),
        "cache_creation_input_tokens" => {
            seen.count(2, &mut read.cache_creation_input_tokens, members)
        }
        "cache_creation" => seen.told(3, &mut read.cache_creation, members, written),
        "output_tokens" => seen.count(4, &mut read.output_tokens, members),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

fn written(members: &mut Members<'_>) -> Option<Written> {
    let (mut read, mut seen) = (Written::default(), Seen::default());
    members.each(|members, name| match name {
        "ephemeral_1h_input_tokens" => seen.count(0, &mut read.ephemeral_1h_input_tokens, members),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::{Document, Of, piece, read};
    use crate::raw::{Text, alike, read_json};

    fn quick(json: &str) -> Option<String> {
        let mut document = Document::default();
        read(json, &mut document)?;
        Some(format!("{document:?}"))
    }

    /// What an event is a piece of, by name and kind.
    fn piece_by_name(json: &str) -> Option<String> {
        let event = read_json::<Document<'_>>(json.as_bytes()).ok()?;
        let is_piece = event.kind?.0 == "content_block_delta";
        let delta = event.delta.filter(|_| is_piece)?;
        let of = [
            (Of::Text, delta.text),
            (Of::Thinking, delta.thinking),
            (Of::Signature, delta.signature),
            (Of::Arguments, delta.partial_json),
        ];
        let mut said = of.into_iter().filter_map(|(of, text)| Some((of, text?)));
        let (of, text) = said.next().filter(|_| said.next().is_none())?;
        Some(shown(event.index, of, &text))
    }

    fn shown(nth: u32, of: Of, text: &Text<'_>) -> String {
        format!("{nth} {of:?} {text:?}")
    }

    #[test]
    fn a_piece_is_read_the_quick_way_as_by_name_and_kind() {
        alike::check(
            |json| {
                let piece = piece(json)?;
                Some(shown(piece.nth, piece.of, &piece.text))
            },
            piece_by_name,
            &[
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#,
                r#"{"type":"content_block_delta","index":12,"delta":{"type":"thinking_delta","thinking":"a \"b\"\n"}}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":""}}"#,
            ],
            &[
                r#"{"type":"message_stop"}"#,
                r#"{"index":0,"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"text":"a","type":"text_delta"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","thinking":"b"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"error":1}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{}}"#,
                r#"{"type":"content_block_delta","index":0}"#,
            ],
        );
    }

    #[test]
    fn what_is_read_the_quick_way_is_what_is_read_by_name_and_kind() {
        alike::check(
            quick,
            |json| {
                let read = read_json::<Document<'_>>(json.as_bytes());
                Some(format!("{:?}", read.ok()?))
            },
            &[
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#,
                r#"{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"a \"b\"\n"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":198}}"#,
                r#"{"type":"message_stop"}"#,
                r#"{ "type": "message_stop" , "usage": {"input_tokens": 3, "output_tokens": null } }"#,
                r#"{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"Hi"},{"type":"text","text":null,"citations":[]}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":2,"cache_creation":{"ephemeral_1h_input_tokens":1}},"more":{"a":[1]}}"#,
                r#"{"usage":{"input_tokens":12345678901,"cache_read_input_tokens":null,"cache_creation":null,"service_tier":"standard","output_tokens":0}}"#,
            ],
            &[
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
                r#"{"usage":{"input_tokens":5.0}}"#,
                r#"{"usage":{"input_tokens":-5}}"#,
                r#"{"usage":{"output_tokens":"5"}}"#,
                r#"{"usage":[1]}"#,
                r#"{"usage":{"output_tokens":1,"output_tokens":1}}"#,
            ],
        );
    }
}
