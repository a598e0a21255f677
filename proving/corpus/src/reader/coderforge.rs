//! CoderForge: rows whose messages and tools are JSON in strings, each row under the licence of its repository.
//!
//! The split `filtered_reward1` has rows of the others once more; whoever takes both has them twice, under equal ids.
//! Not here: answers of tools in another order than their calls, which engines take as they are.

use super::chat::{linear, messages, tools};
use super::rows::{Rows, inner_json, said};
use super::{Fault, Tally};
use crate::conversation::Conversation;
use crate::json::Json;

pub(super) const READER: Rows = Rows {
    name: "coderforge",
    columns: &["trajectory_id", "messages", "tools", "license"],
    passed: &["finish_reason", "image", "reward"],
    names: &["trajectory_id"],
    name_of: |row, fallback| said(row, &["trajectory_id"]).unwrap_or_else(|| fallback.to_owned()),
    session: |row, name, tally| vec![session(row, name, tally)],
};

fn session(mut row: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    let tools_text = inner_json(row.take("tools"), "tools", tally)?;
    let tools = tools(Some(tools_text), tally);
    let all = inner_json(row.take("messages"), "messages", tally)?;
    let (messages, beside) = messages(all, tally)?;
    let mut session = linear(name.to_owned(), tools, messages, &beside)?;
    session.licence = row.text("license").map(str::to_owned);
    Ok(session)
}
