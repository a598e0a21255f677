//! The Responses API, for what a request carries with it.
//!
//! Invariant: a reference to what only the server has (`previous_response_id`, `conversation`, stored prompts and
//! items, built-in tools) refuses the body.
//! Not here: how the items are rendered.

use std::collections::HashMap;

use super::{Call, Content, Conversation, Tool, Turn, chat, items, owned, parts};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

pub(super) fn read(body: &Tree, for_template: bool) -> Result<Conversation, Uncountable> {
    for member in ["previous_response_id", "conversation", "prompt"] {
        if body.get(member).is_some() {
            return Err(Uncountable::ServerState(member));
        }
    }
    let mut conversation = Conversation {
        instructions: owned(body.get_text("instructions")),
        tools: tools(body)?,
        effort: owned(
            body.get("reasoning")
                .and_then(|reasoning| reasoning.get_text("effort")),
        ),
        template_arguments: chat::template_arguments(body),
        adds_special_tokens: true,
        ..Conversation::default()
    };
    match body.get("input") {
        Some(Tree::Text(text)) => conversation.turns.push(user(Content::of(text))),
        Some(Tree::List(list)) if for_template => {
            for item in list {
                items::add(item, &mut conversation.turns)?;
            }
            if items::is_unfinished(list) {
                conversation.continues = true;
                let prompt = ("add_generation_prompt".to_owned(), Tree::Bool(false));
                conversation.template_arguments.push(prompt);
            }
        }
        Some(Tree::List(items)) => {
            let mut names = HashMap::new();
            for item in items {
                conversation.turns.extend(turn(item, &mut names)?);
            }
        }
        _ => return Err(wrong("input", "a string or a list")),
    }
    Ok(conversation)
}

fn tools(body: &Tree) -> Result<Vec<Tool>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    let functions = tools.iter().map(|tool| match tool.get_text("type") {
        Some("function") => Tool::read(tool, "parameters"),
        _ => Err(Uncountable::ServerState("tools")),
    });
    functions.collect()
}

/// The turn of one item; reasoning without its text leaves none. Calls are noted by id for their answers.
pub(super) fn turn<'a>(
    item: &'a Tree,
    names: &mut HashMap<&'a str, &'a str>,
) -> Result<Option<Turn>, Uncountable> {
    let kind = item.get_text("type").unwrap_or("message");
    match kind {
        "message" => message(item).map(Some),
        "reasoning" => {
            let content = parts::read(item.get("content"))?;
            Ok((!content.parts.is_empty()).then(|| Turn::Assistant {
                content: Content::default(),
                reasoning: Some(content.parts.join("\n")),
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

pub(super) fn call(item: &Tree) -> Call {
    let text = |name| item.get_text(name).unwrap_or_default();
    Call::new(text("call_id"), text("name"), text("arguments").to_owned())
}

pub(super) fn answer(item: &Tree) -> Result<Turn, Uncountable> {
    Ok(Turn::Answer {
        content: parts::read(item.get("output"))?,
        call_id: item.get_text("call_id").unwrap_or_default().to_owned(),
        name: None,
    })
}

fn message(item: &Tree) -> Result<Turn, Uncountable> {
    let content = parts::read(item.get("content"))?;
    let instructions = |role, content| Turn::Instructions {
        role,
        content,
        name: None,
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

fn user(content: Content) -> Turn {
    Turn::User {
        content,
        name: None,
    }
}
