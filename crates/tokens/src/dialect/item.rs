//! One item of the Responses API as the turn that it is in Harmony, where every item is a message of its own.
//!
//! Invariant: an item that only the server has refuses the body.
//! Not here: items that a template sees as one message (`items`), the body around them (`responses`).

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Reader, parts};
use prompts::RENDERED_LIMIT_BYTES;
use prompts::Word;
use prompts::conversation::{Call, CallForm, CallId, Content, Turn};
use prompts::tree::{PythonJson, Tree, python_json};
use prompts::{Uncountable, wrong};

/// The turn of one item; reasoning without its text leaves none. Calls are noted by id for their answers.
pub(super) fn turn<'t>(
    item: &'t Tree<'t>,
    names: &mut HashMap<&'t str, &'t str>,
    reader: Reader,
) -> Result<Option<Turn<'t>>, Uncountable> {
    let kind = item.get_text("type").unwrap_or("message");
    match kind {
        "message" => message(item, reader).map(Some),
        "reasoning" => {
            let content = parts::read(item.get("content"), Reader::Overhead)?;
            Ok((!content.parts.is_empty()).then(|| Turn::Assistant {
                content: Content::default(),
                reasoning: Some(content.into_joined("\n")),
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
                *of = Some(called);
            }
            Ok(Some(turn))
        }
        "item_reference" => Err(Uncountable::ServerState("item_reference")),
        other => Err(Uncountable::Part(other.chars().take(40).collect())),
    }
}

pub(super) fn call<'t>(item: &'t Tree<'t>) -> Call<'t> {
    let text = |name| item.get_text(name).unwrap_or_default();
    let call = |name| Call {
        id: text("call_id"),
        name,
        arguments: Cow::Borrowed(text("arguments")),
        form: CallForm::Item,
    };
    match item.get_text("namespace") {
        Some(space) if !space.is_empty() => call(format!("{space}__{}", text("name")).into()),
        _ => call(text("name").into()),
    }
}

/// The call of a tool that takes free text: a function of one string, as `dialect::responses` shows it.
pub(super) fn custom_call<'t>(item: &'t Tree<'t>) -> Result<Call<'t>, Uncountable> {
    let text = |name| item.get_text(name).unwrap_or_default();
    let input = Tree::map([("input", text("input").into())]);
    let arguments = python_json(&input, &PythonJson::default());
    Ok(Call {
        id: text("call_id"),
        name: text("name").into(),
        arguments: arguments
            .ok_or(Uncountable::TooLong(RENDERED_LIMIT_BYTES + 1))?
            .into(),
        form: CallForm::Item,
    })
}

pub(super) fn answer<'t>(item: &'t Tree<'t>) -> Result<Turn<'t>, Uncountable> {
    Ok(Turn::Answer {
        content: parts::read(item.get("output"), Reader::Overhead)?,
        call_id: item.get_text("call_id").map_or(CallId::Null, CallId::Of),
        name: None,
        of: None,
    })
}

fn message<'t>(item: &'t Tree<'t>, reader: Reader) -> Result<Turn<'t>, Uncountable> {
    let content = parts::read(item.get("content"), reader)?;
    let instructions = |role, content| Turn::Instructions {
        role,
        content,
        name: None,
        tools: None,
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
