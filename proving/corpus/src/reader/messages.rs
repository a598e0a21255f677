//! Anyone's own logs: lines of JSON with `messages` in the form of OpenAI's API.
//!
//! A line is a session, in which every message of the assistant is a decision, or the body of one request (it has a
//! `model`, and does not end in an answer), which is one decision. Members that are understood: `messages`, `tools` or
//! `functions`, `id`, `license`, and `timestamp` of each message (ISO 8601, or seconds or milliseconds since 1970): that
//! of an answer says when it was complete, that of any other when it was known.
//! Not here: other APIs' bodies.

use super::chat::{decision, linear, messages, tools};
use super::rows::{Rows, said};
use super::{Fault, Tally};
use crate::conversation::{Conversation, Message, Role};
use crate::json::Json;

pub(super) const READER: Rows = Rows {
    name: "messages",
    columns: &["id", "messages", "tools", "functions", "license", "model"],
    passed: &[
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "n",
        "stop",
        "seed",
        "max_tokens",
        "max_completion_tokens",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "reasoning_effort",
        "user",
        "metadata",
        "timestamp",
    ],
    names: &["id"],
    name_of: |row, fallback| said(row, &["id"]).unwrap_or_else(|| fallback.to_owned()),
    session: |row, name, tally| vec![session(row, name, tally)],
};

fn session(mut row: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    let mut offered = tools(row.take("tools"), tally);
    offered.extend(tools(row.take("functions"), tally));
    let (messages, times) = messages(row.take("messages").unwrap_or_default(), tally)?;
    let mut session = if is_body(&row, &messages) {
        Conversation {
            id: name.to_owned(),
            tools: offered,
            decisions: vec![decision(messages.len(), None, None, &times)],
            messages,
            ..Conversation::default()
        }
    } else {
        linear(name.to_owned(), offered, messages, &times)?
    };
    session.licence = row.text("license").map(str::to_owned);
    Ok(session)
}

fn is_body(row: &Json, messages: &[Message]) -> bool {
    let last = messages.last();
    row.present("model").is_some() && last.is_some_and(|last| last.role != Role::Assistant)
}
