//! Items of the Responses API as vLLM puts them together for a chat template: what the assistant thought, said and
//! called in a row is one message.
//!
//! Invariant: an item joins the assistant's message before it where that has no such member yet; calls always join.
//! Not here: Harmony, where every item is a message of its own (`item`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Reader, item, parts};
use prompts::Uncountable;
use prompts::conversation::{Call, Content, Turn};
use prompts::tree::Tree;

/// Adds an item to the turns before it.
pub(super) fn add<'t>(
    added: &'t Tree<'t>,
    turns: &mut Vec<Turn<'t>>,
    reader: Reader,
) -> Result<(), Uncountable> {
    let is_assistant = added.get_text("role") == Some("assistant");
    match added.get_text("type").unwrap_or("message") {
        "reasoning" => think(first_thought(added)?, turns),
        "message" if is_assistant => {
            say(parts::read(added.get("content"), Reader::Overhead)?, turns)
        }
        "function_call" => call(item::call(added), turns),
        "custom_tool_call" => call(item::custom_call(added)?, turns),
        "function_call_output" | "custom_tool_call_output" => turns.push(item::answer(added)?),
        _ => turns.extend(item::turn(added, &mut HashMap::new(), reader)?),
    }
    Ok(())
}

/// Whether the last item is a message that the model is to go on with.
pub(super) fn is_unfinished(items: &[Tree<'_>]) -> bool {
    items.last().is_some_and(|item| {
        matches!(item.get_text("type"), None | Some("message" | "reasoning"))
            && matches!(item.get_text("status"), Some("in_progress" | "incomplete"))
    })
}

/// Of several parts the engine reads the first, and a summary where there is none.
fn first_thought<'t>(item: &'t Tree<'t>) -> Result<Cow<'t, str>, Uncountable> {
    let read = |name| parts::read(item.get(name), Reader::Overhead);
    let mut texts = read("content")?.parts;
    if texts.is_empty() {
        texts = read("summary")?.parts;
    }
    Ok(texts.into_iter().next().unwrap_or_default().text)
}

fn think<'t>(text: Cow<'t, str>, turns: &mut Vec<Turn<'t>>) {
    match turns.last_mut() {
        Some(Turn::Assistant {
            reasoning: free @ None,
            ..
        }) => *free = Some(text),
        _ => turns.push(assistant(Content::default(), Some(text), Vec::new())),
    }
}

fn say<'t>(mut said: Content<'t>, turns: &mut Vec<Turn<'t>>) {
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

fn call<'t>(call: Call<'t>, turns: &mut Vec<Turn<'t>>) {
    match turns.last_mut() {
        Some(Turn::Assistant { calls, .. }) => calls.push(call),
        _ => turns.push(assistant(Content::default(), None, vec![call])),
    }
}

const fn assistant<'t>(
    content: Content<'t>,
    reasoning: Option<Cow<'t, str>>,
    calls: Vec<Call<'t>>,
) -> Turn<'t> {
    Turn::Assistant {
        content,
        reasoning,
        calls,
        name: None,
    }
}
