//! One item of the Responses API as the turn that it is in Harmony, where every item is a message of its own.
//!
//! Invariant: an item that only the server has refuses the body.
//! Not here: items that a template sees as one message (`items`), the body around them (`responses`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::parts;
use crate::conversation::{Call, Content, Turn};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};
use crate::words::Word;

/// The turn of one item; reasoning without its text leaves none. Calls are noted by id for their answers.
pub(super) fn turn<'t>(
    item: &'t Tree<'t>,
    names: &mut HashMap<&'t str, &'t str>,
) -> Result<Option<Turn<'t>>, Uncountable> {
    let kind = item.get_text("type").unwrap_or("message");
    match kind {
        "message" => message(item).map(Some),
        "reasoning" => {
            let content = parts::read(item.get("content"))?;
            Ok((!content.parts.is_empty()).then(|| Turn::Assistant {
                content: Content::default(),
                reasoning: Some(content.parts.join("\n").into()),
                calls: Vec::new(),
                name: None,
            }))
        }
        "function_call" => {
            let (id, name) = (
                item.get_text("call_id").unwrap_or_default(),
                item.get_text("name").unwrap_or_default(),
            );
            names.insert(id, name);
            Ok(Some(Turn::Assistant {
                content: Content::default(),
                reasoning: None,
                calls: vec![call(item)],
                name: None,
            }))
        }
        "function_call_output" => {
            let id = item.get_text("call_id").unwrap_or_default();
            if !names.contains_key(id) {
                return Err(wrong("call_id", "that of a call before it"));
            }
            answer(item).map(Some)
        }
        "item_reference" => Err(Uncountable::ServerState("item_reference")),
        other => Err(Uncountable::Part(other.chars().take(40).collect())),
    }
}

pub(super) fn call<'t>(item: &'t Tree<'t>) -> Call<'t> {
    let text = |name| item.get_text(name).unwrap_or_default();
    Call {
        id: text("call_id"),
        name: text("name"),
        arguments: Cow::Borrowed(text("arguments")),
        tree: None,
    }
}

pub(super) fn answer<'t>(item: &'t Tree<'t>) -> Result<Turn<'t>, Uncountable> {
    Ok(Turn::Answer {
        content: parts::read(item.get("output"))?,
        call_id: item.get_text("call_id").unwrap_or_default(),
        name: None,
    })
}

fn message<'t>(item: &'t Tree<'t>) -> Result<Turn<'t>, Uncountable> {
    let content = parts::read(item.get("content"))?;
    let instructions = |role, content| Turn::Instructions {
        role,
        content,
        name: None,
    };
    match item.get_text("role") {
        Some("system") => Ok(instructions(Word::System, content)),
        Some("developer") => Ok(instructions(Word::Developer, content)),
        Some("user") => Ok(user(content)),
        Some("assistant") => Ok(Turn::Assistant {
            content,
            reasoning: None,
            calls: Vec::new(),
            name: None,
        }),
        _ => Err(wrong("role", "system, developer, user or assistant")),
    }
}

pub(super) const fn user(content: Content<'_>) -> Turn<'_> {
    Turn::User {
        content,
        name: None,
    }
}
