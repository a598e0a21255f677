//! Chat completions.
//!
//! Not here: the older `functions` and `function_call`, which vLLM does not render; they are refused.

use super::parts;
use crate::conversation::{Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// Members that vLLM hands to the template by name.
const TO_TEMPLATE: [&str; 2] = ["add_generation_prompt", "documents"];

pub(super) fn read(body: &Tree) -> Result<Conversation, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    if body.get("functions").is_some() {
        return Err(wrong("functions", "given as `tools`"));
    }
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body.get_text("reasoning_effort").map(str::to_owned),
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

fn is_true(body: &Tree, name: &str) -> bool {
    matches!(body.get(name), Some(Tree::Bool(true)))
}

/// What the body asks to be passed to the template.
pub(super) fn template_arguments(body: &Tree) -> Vec<(String, Tree)> {
    let mut arguments = match body.get("chat_template_kwargs") {
        Some(Tree::Map(members)) => members.clone(),
        _ => Vec::new(),
    };
    for name in TO_TEMPLATE {
        if let Some(value) = body.get(name) {
            arguments.push((name.to_owned(), value.clone()));
        }
    }
    arguments
}

fn tools(body: &Tree) -> Result<Vec<Tool>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    let functions = tools.iter().map(|tool| {
        let function = tool
            .get("function")
            .ok_or(wrong("tools", "a list of functions"))?;
        Tool::read(function, "parameters")
    });
    functions.collect()
}

fn turn(message: &Tree) -> Result<Turn, Uncountable> {
    let content = parts::read(message.get("content"))?;
    let name = message.get_text("name").map(str::to_owned);
    match message.get_text("role") {
        Some("system") => Ok(instructions("system", content, name)),
        Some("developer") => Ok(instructions("developer", content, name)),
        Some("user") => Ok(Turn::User { content, name }),
        Some("assistant") => Ok(Turn::Assistant {
            content,
            reasoning: message
                .get_text("reasoning")
                .or_else(|| message.get_text("reasoning_content"))
                .map(str::to_owned),
            calls: calls(message)?,
            name,
        }),
        Some("tool") => Ok(Turn::Answer {
            content,
            call_id: message
                .get_text("tool_call_id")
                .unwrap_or_default()
                .to_owned(),
            name,
        }),
        _ => Err(wrong("role", "system, developer, user, assistant or tool")),
    }
}

fn instructions(role: &'static str, content: Content, name: Option<String>) -> Turn {
    Turn::Instructions {
        role,
        content,
        name,
    }
}

fn calls(message: &Tree) -> Result<Vec<Call>, Uncountable> {
    let Some(calls) = message.get("tool_calls") else {
        return Ok(Vec::new());
    };
    let calls = calls.list().ok_or(wrong("tool_calls", "a list"))?;
    let read = |call: &Tree| {
        let function = call
            .get("function")
            .ok_or(wrong("tool_calls", "calls of functions"))?;
        let arguments = match function.get("arguments") {
            None => String::new(),
            Some(Tree::Text(text)) => text.clone(),
            Some(_) => return Err(wrong("arguments", "a string")),
        };
        Ok(Call {
            id: call.get_text("id").unwrap_or_default().to_owned(),
            name: function.get_text("name").unwrap_or_default().to_owned(),
            arguments,
            tree: call.clone(),
        })
    };
    calls.iter().map(read).collect()
}
