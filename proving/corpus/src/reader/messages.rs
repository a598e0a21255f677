//! Anyone's own logs: lines of JSON with `messages` in the form of OpenAI's API.
//!
//! A line is a session, in which every message of the assistant is a decision, or the body of one request (it has a
//! `model`, and does not end in an answer), which is one decision. Members that are understood: `messages`, `tools` or
//! `functions`, `id`, `license`, `timestamp` of each message (ISO 8601, or seconds or milliseconds since 1970): that
//! of an answer says when it was complete, that of any other when it was known; and `usage.completion_tokens` of an answer.
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
    let (messages, beside) = messages(row.take("messages").unwrap_or_default(), tally)?;
    let mut session = if is_body(&row, &messages) {
        Conversation {
            id: name.to_owned(),
            tools: offered,
            decisions: vec![decision(messages.len(), None, None, &beside)],
            messages,
            ..Conversation::default()
        }
    } else {
        linear(name.to_owned(), offered, messages, &beside)?
    };
    session.licence = row.text("license").map(str::to_owned);
    Ok(session)
}

fn is_body(row: &Json, messages: &[Message]) -> bool {
    let last = messages.last();
    row.present("model").is_some() && last.is_some_and(|last| last.role != Role::Assistant)
}

#[cfg(test)]
mod tests {
    //! What a message carries beside what it says.

    use std::ops::ControlFlow;

    use super::super::{Reader as _, Sink};
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_engine_reported_where_the_log_says_it() {
        let line = r#"{"id":"a","messages":[{"role":"user","content":"x","timestamp":1.5},
            {"role":"assistant","content":"y","timestamp":3.25,"usage":{"prompt_tokens":9,"completion_tokens":41}},
            {"role":"user","content":"z","timestamp":4.25},{"role":"assistant","content":"w","timestamp":5}]}"#;
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("log.jsonl");
        std::fs::write(&file, line.replace('\n', " ")).expect("a file");
        let mut all = Vec::new();
        let mut take = |_, session: Result<Conversation, Fault>| {
            all.push(session.expect("a session"));
            ControlFlow::Continue(())
        };
        for unit in READER.units(&[file]).expect("a unit") {
            let read = READER.read(&unit, &mut Sink::new(&mut take));
            read.expect("a log");
        }
        let decisions = all.iter().flat_map(|session| &session.decisions);
        let said: Vec<_> = decisions
            .map(|one| (one.answer_tokens, one.think))
            .collect();
        let second = std::time::Duration::from_secs(1);
        assert_eq!(said, [(Some(41), None), (None, Some(second))]);
    }
}
