//! Chat completions.
//!
//! Not here: the older `functions` and `function_call`, which vLLM does not render; they are refused.

use std::borrow::Cow;

use super::parts;
use crate::conversation::{Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};
use crate::words::Word;

/// Members that vLLM hands to the template by name.
const TO_TEMPLATE: [&str; 2] = ["add_generation_prompt", "documents"];

pub(super) fn read<'t>(body: &'t Tree<'t>) -> Result<Conversation<'t>, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    if body.get("functions").is_some() {
        return Err(wrong("functions", "given as `tools`"));
    }
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body.get_text("reasoning_effort"),
        continues: is_true(body, "continue_final_message"),
        adds_special_tokens: is_true(body, "add_special_tokens"),
        template_arguments: template_arguments(body),
        ..Conversation::default()
    };
    for message in messages {
        conversation.turns.push(turn(message)?);
    }
    Ok(conversation)
}

fn is_true(body: &Tree<'_>, name: &str) -> bool {
    matches!(body.get(name), Some(Tree::Bool(true)))
}

/// What the body asks to be passed to the template.
pub(super) fn template_arguments<'t>(body: &'t Tree<'t>) -> Vec<(&'t str, &'t Tree<'t>)> {
    let mut arguments: Vec<(&str, _)> = match body.get("chat_template_kwargs") {
        Some(Tree::Map(members)) => members.iter().map(|(name, tree)| (&**name, tree)).collect(),
        _ => Vec::new(),
    };
    for name in TO_TEMPLATE {
        if let Some(value) = body.get(name) {
            arguments.push((name, value));
        }
    }
    arguments
}

fn tools<'t>(body: &'t Tree<'t>) -> Result<Vec<Tool<'t>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    tools.iter().map(tool).collect()
}

pub(crate) fn tool<'t>(tool: &'t Tree<'t>) -> Result<Tool<'t>, Uncountable> {
    let function = tool
        .get("function")
        .ok_or(wrong("tools", "a list of functions"))?;
    Tool::read(function, "parameters")
}

pub(crate) fn turn<'t>(message: &'t Tree<'t>) -> Result<Turn<'t>, Uncountable> {
    let content = parts::read(message.get("content"))?;
    let name = message.get_text("name");
    match message.get_text("role") {
        Some("system") => Ok(instructions(Word::System, content, name)),
        Some("developer") => Ok(instructions(Word::Developer, content, name)),
        Some("user") => Ok(Turn::User { content, name }),
        Some("assistant") => Ok(Turn::Assistant {
            content,
            reasoning: message
                .get_text("reasoning")
                .or_else(|| message.get_text("reasoning_content"))
                .map(Cow::Borrowed),
            calls: calls(message)?,
            name,
        }),
        Some("tool") => Ok(Turn::Answer {
            content,
            call_id: message.get_text("tool_call_id").unwrap_or_default(),
            name,
        }),
        _ => Err(wrong("role", "system, developer, user, assistant or tool")),
    }
}

const fn instructions<'t>(role: Word, content: Content<'t>, name: Option<&'t str>) -> Turn<'t> {
    Turn::Instructions {
        role,
        content,
        name,
    }
}

fn calls<'t>(message: &'t Tree<'t>) -> Result<Vec<Call<'t>>, Uncountable> {
    let Some(calls) = message.get("tool_calls") else {
        return Ok(Vec::new());
    };
    let calls = calls.list().ok_or(wrong("tool_calls", "a list"))?;
    let read = |call: &'t Tree<'t>| {
        let function = call
            .get("function")
            .ok_or(wrong("tool_calls", "calls of functions"))?;
        let arguments = match function.get("arguments") {
            None => "",
            Some(Tree::Text(text)) => text,
            Some(_) => return Err(wrong("arguments", "a string")),
        };
        Ok(Call {
            id: call.get_text("id").unwrap_or_default(),
            name: function.get_text("name").unwrap_or_default(),
            arguments: Cow::Borrowed(arguments),
            tree: Some(call),
        })
    };
    calls.iter().map(read).collect()
}
