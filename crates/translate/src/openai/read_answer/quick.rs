//! The quick way through what most chunks of a stream are, and most completions.
//!
//! Invariant: what it gives is what is read by name and kind (`Document`); where it gives nothing, that reads.

use super::{Choice, CompletionDetails, Counts, Document, Message, PromptDetails};
use crate::raw::{Members, Seen};

/// A completion, or a chunk of one, which goes to its place, as it is large. Where it gives nothing, what is there means nothing.
pub(super) fn read<'a>(json: &'a str, into: &mut Document<'a>) -> Option<()> {
    Members::of(json).whole(|members| document(members, into))
}

fn document<'a>(members: &mut Members<'a>, read: &mut Document<'a>) -> Option<()> {
    let mut seen = Seen::default();
    members.each(|members, name| match name {
        "id" => seen.text(0, &mut read.id, members),
        "model" => seen.text(1, &mut read.model, members),
        "choices" => {
            read.choices = Some(members.list(1, choice)?);
            seen.once(2)
        }
        "usage" => seen.told(3, &mut read.usage, members, counts),
        "error" => None,
        _ => members.reader.pass(),
    })
}

fn choice<'a>(members: &mut Members<'a>) -> Option<Choice<'a>> {
    let (mut read, mut seen) = (Choice::default(), Seen::default());
    members.each(|members, name| match name {
        "index" => {
            read.index = members.number()?;
            seen.once(0)
        }
        "delta" | "message" => {
            read.delta = Some(message(members)?);
            seen.once(1)
        }
        "finish_reason" => seen.text(2, &mut read.finish_reason, members),
        "stop_reason" => seen.null(3, members.value()?),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

/// One without calls of tools.
fn message<'a>(members: &mut Members<'a>) -> Option<Message<'a>> {
    let (mut read, mut seen) = (Message::default(), Seen::default());
    members.each(|members, name| match name {
        "content" => seen.text(0, &mut read.content, members),
        "refusal" => seen.text(1, &mut read.refusal, members),
        "reasoning_content" => seen.text(2, &mut read.reasoning_content, members),
        "reasoning" => seen.text(3, &mut read.reasoning, members),
        "tool_calls" => seen.null(4, members.value()?),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

fn counts(members: &mut Members<'_>) -> Option<Counts> {
    let (mut read, mut seen) = (Counts::default(), Seen::default());
    members.each(|members, name| match name {
        "prompt_tokens" => seen.count(0, &mut read.prompt_tokens, members),
        "completion_tokens" => seen.count(1, &mut read.completion_tokens, members),
        "prompt_tokens_details" => {
            seen.told(2, &mut read.prompt_tokens_details, members, of_prompt)
        }
        "completion_tokens_details" => seen.told(
            3,
            &mut read.completion_tokens_details,
            members,
            of_completion,
        ),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

fn of_prompt(members: &mut Members<'_>) -> Option<PromptDetails> {
    let (mut read, mut seen) = (PromptDetails::default(), Seen::default());
    members.each(|members, name| match name {
        "cached_tokens" => seen.count(0, &mut read.cached_tokens, members),
        "cache_write_tokens" => seen.count(1, &mut read.cache_write_tokens, members),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

fn of_completion(members: &mut Members<'_>) -> Option<CompletionDetails> {
    let (mut read, mut seen) = (CompletionDetails::default(), Seen::default());
    members.each(|members, name| match name {
        "reasoning_tokens" => seen.count(0, &mut read.reasoning_tokens, members),
        _ => members.reader.pass(),
    })?;
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::{Document, read};
    use crate::raw::{alike, read_json};

    #[test]
    fn what_is_read_the_quick_way_is_what_is_read_by_name_and_kind() {
        alike::check(
            |json| {
                let mut document = Document::default();
                read(json, &mut document)?;
                Some(format!("{document:?}"))
            },
            |json| {
                let read = read_json::<Document<'_>>(json.as_bytes());
                Some(format!("{:?}", read.ok()?))
            },
            &[
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"a\u00e9","tool_calls":null},"stop_reason":null}]}"#,
                r#"{ "id": "c", "choices": [ {"index": 0, "message": {"content": "a"} } ] , "usage": null }"#,
                r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}"#,
                r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":12345678901,"completion_tokens":null,"total_tokens":9,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":2}}}"#,
            ],
            &[
                r#"{"error":{"message":"no"}}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
                r#"{"choices":[{"delta":{},"message":{}}]}"#,
                r#"{"choices":[{"stop_reason":"x"}]}"#,
                r#"{"choices":null}"#,
                r#"{"id":"a","id":"b"}"#,
                r#"{"i\u0064":"a"}"#,
                r#"{"choices":[{"index":-1}]}"#,
                r#"{"usage":{"prompt_tokens":5.0}}"#,
                r#"{"usage":{"prompt_tokens":-5}}"#,
                r#"{"usage":{"completion_tokens":"5"}}"#,
                r#"{"usage":[1]}"#,
                r#"{"usage":{"completion_tokens":1,"completion_tokens":1}}"#,
            ],
        );
    }
}
