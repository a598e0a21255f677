//! Trajectories of SWE-agent: rows whose messages have `text` for content, `ai` for the assistant, and the system's
//! text in a member of its own.
//!
//! Not here: tools, which SWE-agent has in its texts.

use super::chat::{MAX_MESSAGES, linear, role};
use super::rows::{Rows, said};
use super::{Fault, Tally};
use crate::conversation::{Content, Conversation, Message, Role};
use crate::json::Json;

pub(super) const READER: Rows = Rows {
    name: "swe-agent",
    columns: &["instance_id", "model_name", "trajectory"],
    passed: &["target", "exit_status", "generated_patch", "eval_logs"],
    names: &["instance_id"],
    // An instance has several rows, so that the column alone names none.
    name_of: |row, fallback| match said(row, &["instance_id"]) {
        Some(instance) => format!("{instance}@{fallback}"),
        None => fallback.to_owned(),
    },
    session: |row, name, tally| vec![session(row, name, tally)],
};

const KNOWN: &[&str] = &["cutoff_date", "mask", "role", "system_prompt", "text"];

fn session(mut row: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    let Some(Json::Array(all)) = row.take("trajectory") else {
        return Err(Fault::broken("no_messages", "its trajectory is no list"));
    };
    if all.len() > MAX_MESSAGES {
        let says = format!("has {} messages, at most 20,000 are read", all.len());
        return Err(Fault::broken("too_many_messages", says));
    }
    let messages: Result<Vec<_>, _> = all.into_iter().map(|one| message(one, tally)).collect();
    linear(name.to_owned(), Vec::new(), messages?, &[])
}

fn message(mut value: Json, tally: &mut Tally) -> Result<Message, Fault> {
    tally.unknown_members("trajectory", &value, KNOWN);
    let speaker = value.take("role").unwrap_or_default();
    let role = speaker.as_str().and_then(role).ok_or_else(|| {
        Fault::broken("unknown_role", format!("a message has the role {speaker}"))
    })?;
    let mut text = |name: &str| match value.take(name) {
        Some(Json::String(text)) => Some(text),
        _ => None,
    };
    let content = text("text").filter(|text| role != Role::System || !text.is_empty());
    let content = content.or_else(|| text("system_prompt").filter(|_| role == Role::System));
    Ok(Message {
        role,
        content: content.map(Content::Text),
        ..Message::default()
    })
}
