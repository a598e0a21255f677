//! Items of the Responses API as vLLM puts them together for a chat template: what the assistant thought, said and
//! called in a row is one message.
//!
//! Invariant: an item joins the assistant's message before it where that has no such member yet; calls always join.
//! Not here: Harmony, where every item is a message of its own (`item`).

use std::collections::HashMap;

use super::{Reader, item, parts};
use crate::conversation::{Call, Content, Part, Turn};
use crate::tree::Tree;
use crate::uncountable::Uncountable;

/// Adds an item to the turns before it.
pub(super) fn add(added: &Tree, turns: &mut Vec<Turn>, reader: Reader) -> Result<(), Uncountable> {
    let is_assistant = added.get_text("role") == Some("assistant");
    match added.get_text("type").unwrap_or("message") {
        "reasoning" => think(first_thought(added)?, turns),
        "message" if is_assistant => {
            say(parts::read(added.get("content"), Reader::Overhead)?, turns)
        }
        "function_call" => call(item::call(added), turns),
        "custom_tool_call" => call(item::custom_call(added), turns),
        "function_call_output" | "custom_tool_call_output" => turns.push(item::answer(added)?),
        _ => turns.extend(item::turn(added, &mut HashMap::new(), reader)?),
    }
    Ok(())
}

/// Whether the last item is a message that the model is to go on with.
pub(super) fn is_unfinished(items: &[Tree]) -> bool {
    items.last().is_some_and(|item| {
        matches!(item.get_text("type"), None | Some("message" | "reasoning"))
            && matches!(item.get_text("status"), Some("in_progress" | "incomplete"))
    })
}

/// Of several parts the engine reads the first, and a summary where there is none.
fn first_thought(item: &Tree) -> Result<String, Uncountable> {
    let read = |name| parts::read(item.get(name), Reader::Overhead);
    let mut texts = read("content")?.parts;
    if texts.is_empty() {
        texts = read("summary")?.parts;
    }
    Ok(texts.into_iter().next().unwrap_or_else(Part::default).text)
}

fn think(text: String, turns: &mut Vec<Turn>) {
    match turns.last_mut() {
        Some(Turn::Assistant {
            reasoning: free @ None,
            ..
        }) => *free = Some(text),
        _ => turns.push(assistant(Content::default(), Some(text), Vec::new())),
    }
}

fn say(mut said: Content, turns: &mut Vec<Turn>) {
    said.parts.truncate(1);
    match turns.last_mut() {
        Some(Turn::Assistant { content, .. })
            if content.parts.is_empty() && !said.parts.is_empty() =>
        {
            *content = said;
        }
        _ => turns.push(assistant(said, None, Vec::new())),
    }
}

fn call(call: Call, turns: &mut Vec<Turn>) {
    match turns.last_mut() {
        Some(Turn::Assistant { calls, .. }) => calls.push(call),
        _ => turns.push(assistant(Content::default(), None, vec![call])),
    }
}

fn assistant(content: Content, reasoning: Option<String>, calls: Vec<Call>) -> Turn {
    Turn::Assistant {
        content,
        reasoning,
        calls,
        name: None,
    }
}
