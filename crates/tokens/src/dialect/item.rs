//! One item of the Responses API as the turn that it is in Harmony, where every item is a message of its own.
//!
//! Invariant: an item that only the server has refuses the body.
//! Not here: items that a template sees as one message (`items`), the body around them (`responses`).

use std::collections::HashMap;

use super::{Reader, parts};
use crate::conversation::{Call, Content, Turn};
use crate::tree::{PythonJson, Tree, python_json};
use crate::uncountable::{Uncountable, wrong};

/// The turn of one item; reasoning without its text leaves none. Calls are noted by id for their answers.
pub(super) fn turn<'a>(
    item: &'a Tree,
    names: &mut HashMap<&'a str, &'a str>,
    reader: Reader,
) -> Result<Option<Turn>, Uncountable> {
    let kind = item.get_text("type").unwrap_or("message");
    match kind {
        "message" => message(item, reader).map(Some),
        "reasoning" => {
            let content = parts::read(item.get("content"), Reader::Overhead)?;
            Ok((!content.parts.is_empty()).then(|| Turn::Assistant {
                content: Content::default(),
                reasoning: Some(content.joined("\n")),
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
            let Some(&called) = names.get(id) else {
                return Err(wrong("call_id", "that of a call before it"));
            };
            let mut turn = answer(item)?;
            if let Turn::Answer { of, .. } = &mut turn {
                *of = Some(called.to_owned());
            }
            Ok(Some(turn))
        }
        "item_reference" => Err(Uncountable::ServerState("item_reference")),
        other => Err(Uncountable::Part(other.chars().take(40).collect())),
    }
}

pub(super) fn call(item: &Tree) -> Call {
    let text = |name| item.get_text(name).unwrap_or_default();
    let arguments = text("arguments").to_owned();
    match item.get_text("namespace") {
        Some(space) if !space.is_empty() => {
            let name = format!("{space}__{}", text("name"));
            Call::new(text("call_id"), &name, arguments)
        }
        _ => Call::new(text("call_id"), text("name"), arguments),
    }
}

/// The call of a tool that takes free text: a function of one string, as `dialect::responses` shows it.
pub(super) fn custom_call(item: &Tree) -> Call {
    let text = |name| item.get_text(name).unwrap_or_default();
    let input = Tree::map([("input", text("input").into())]);
    let arguments = python_json(&input, &PythonJson::default());
    Call::new(text("call_id"), text("name"), arguments)
}

pub(super) fn answer(item: &Tree) -> Result<Turn, Uncountable> {
    Ok(Turn::Answer {
        content: parts::read(item.get("output"), Reader::Overhead)?,
        call_id: item.get_text("call_id").unwrap_or_default().to_owned(),
        name: None,
        of: None,
    })
}

fn message(item: &Tree, reader: Reader) -> Result<Turn, Uncountable> {
    let content = parts::read(item.get("content"), reader)?;
    let instructions = |role, content| Turn::Instructions {
        role,
        content,
        name: None,
        tools: None,
    };
    match item.get_text("role") {
        Some("system") => Ok(instructions("system", content)),
        Some("developer") => Ok(instructions("developer", content)),
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

pub(super) fn user(content: Content) -> Turn {
    Turn::User {
        content,
        name: None,
    }
}
