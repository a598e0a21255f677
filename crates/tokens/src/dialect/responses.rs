//! The Responses API, for what a request carries with it.
//!
//! Invariant: a reference to what only the server has (`previous_response_id`, `conversation`, stored prompts and
//! items, built-in tools) refuses the body.
//! Not here: what an item is (`item`, `items`).

use std::collections::HashMap;

use super::{chat, item, items};
use crate::conversation::{Content, Conversation, Tool};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// For messages that the model goes on with.
const NO: &Tree<'static> = &Tree::Bool(false);

pub(super) fn read<'t>(
    body: &'t Tree<'t>,
    for_template: bool,
) -> Result<Conversation<'t>, Uncountable> {
    for member in ["previous_response_id", "conversation", "prompt"] {
        if body.get(member).is_some() {
            return Err(Uncountable::ServerState(member));
        }
    }
    let mut conversation = Conversation {
        instructions: body.get_text("instructions"),
        tools: tools(body)?,
        effort: body
            .get("reasoning")
            .and_then(|reasoning| reasoning.get_text("effort")),
        template_arguments: chat::template_arguments(body),
        adds_special_tokens: true,
        ..Conversation::default()
    };
    match body.get("input") {
        Some(Tree::Text(text)) => conversation.turns.push(item::user(Content::of(&**text))),
        Some(Tree::List(list)) if for_template => {
            for one in list {
                items::add(one, &mut conversation.turns)?;
            }
            if items::is_unfinished(list) {
                conversation.continues = true;
                let prompt = ("add_generation_prompt", NO);
                conversation.template_arguments.push(prompt);
            }
        }
        Some(Tree::List(list)) => {
            let mut names = HashMap::new();
            for one in list {
                conversation.turns.extend(item::turn(one, &mut names)?);
            }
        }
        _ => return Err(wrong("input", "a string or a list")),
    }
    Ok(conversation)
}

fn tools<'t>(body: &'t Tree<'t>) -> Result<Vec<Tool<'t>>, Uncountable> {
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
