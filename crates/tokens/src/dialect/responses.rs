//! The Responses API, for what a request carries with it.
//!
//! Invariant: a reference to what only the server has (`previous_response_id`, `conversation`, stored prompts and
//! items, built-in tools) refuses the body.
//! Not here: what an item is (`item`, `items`).

use std::collections::HashMap;

use super::{Reader, chat, item, items, said};
use prompts::conversation::{Content, Conversation, Schema, Tool};
use prompts::tree::Tree;
use prompts::{Uncountable, wrong};

pub(super) fn read<'t>(
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Conversation<'t>, Uncountable> {
    for member in ["previous_response_id", "conversation", "prompt"] {
        if body.get(member).is_some() {
            return Err(Uncountable::ServerState(member));
        }
    }
    let for_template = matches!(reader, Reader::Template { .. });
    let mut conversation = Conversation {
        instructions: body.get_text("instructions"),
        tools: tools(body, reader)?,
        effort: body
            .get("reasoning")
            .and_then(|reasoning| reasoning.get_text("effort")),
        own_arguments: chat::own_arguments(body, reader)?,
        keeps_unset: true,
        of_items: true,
        adds_special_tokens: true,
        ..Conversation::default()
    };
    if let Some(Tree::List(list)) = body.get("input")
        && reader != Reader::Overhead
    {
        list.iter().try_for_each(said::check)?;
    }
    match body.get("input") {
        Some(Tree::Text(text)) => conversation.turns.push(item::user(Content::of(&**text))),
        Some(Tree::List(list)) if for_template => {
            for one in list {
                items::add(one, &mut conversation.turns, reader)?;
            }
            conversation.continues = items::is_unfinished(list);
        }
        Some(Tree::List(list)) => {
            let mut names = HashMap::new();
            for one in list {
                let turn = item::turn(one, &mut names, reader)?;
                conversation.turns.extend(turn);
            }
        }
        _ => return Err(wrong("input", "a string or a list")),
    }
    let prompt = Tree::Bool(!conversation.continues);
    conversation
        .said_arguments
        .push(("add_generation_prompt", prompt));
    Ok(conversation)
}

/// The tools that the model is shown: functions, also those of a namespace, and tools that take free text. A template
/// sees no others. An empty list is none, one of which nothing is shown stays one.
fn tools<'t>(body: &'t Tree<'t>, reader: Reader) -> Result<Option<Vec<Tool<'t>>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(None);
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    if tools.is_empty() {
        return Ok(None);
    }
    let mut shown = Vec::new();
    for tool in tools {
        match tool.get_text("type") {
            Some("function") => shown.push(Tool::read(tool, "parameters")?),
            _ if !matches!(reader, Reader::Template { .. }) => {
                return Err(Uncountable::ServerState("tools"));
            }
            Some("custom") => shown.push(custom(tool)?),
            Some("namespace") => namespace(tool, &mut shown)?,
            Some(_) => {}
            None => return Err(wrong("tools", "tools that have a type")),
        }
    }
    Ok(Some(shown))
}

/// The functions of a namespace have its name in theirs.
fn namespace<'t>(tool: &'t Tree<'t>, shown: &mut Vec<Tool<'t>>) -> Result<(), Uncountable> {
    let space = tool.get_text("name").unwrap_or_default();
    let tools = tool.get("tools").and_then(Tree::list).unwrap_or_default();
    for function in tools {
        if function.get_text("type") == Some("function") {
            let mut function = Tool::read(function, "parameters")?;
            function.name = format!("{space}__{}", function.name).into();
            shown.push(function);
        }
    }
    Ok(())
}

/// A tool that takes free text is shown as a function of one string.
fn custom<'t>(tool: &'t Tree<'t>) -> Result<Tool<'t>, Uncountable> {
    let input = Tree::map([
        ("type", "string".into()),
        (
            "description",
            "The freeform text payload for this tool.".into(),
        ),
    ]);
    let parameters = Tree::map([
        ("type", "object".into()),
        ("properties", Tree::map([("input", input)])),
        ("required", Tree::List(vec!["input".into()])),
        ("additionalProperties", Tree::Bool(false)),
    ]);
    let mut shown = Tool::read(tool, "parameters")?;
    shown.parameters = Some(Schema::Made(parameters));
    shown.strict = None;
    Ok(shown)
}
