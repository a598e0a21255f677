//! Anthropic messages, as vLLM turns them into chat messages.
//!
//! A user message that holds tool results becomes the results, then the user's own text; thinking becomes
//! reasoning; `redacted_thinking` has no text that an open model could have written and is left out, as are empty
//! texts.
//! Not here: Claude itself, whose template and tokenizer are not public (`overhead`).

use std::borrow::Cow;

use super::{chat, parts};
use crate::RENDERED_LIMIT_BYTES;
use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Tool, Turn};
use crate::tree::{PythonJson, Tree, python_json};
use crate::uncountable::{Uncountable, wrong};
use crate::words::Word;

pub(super) fn read<'t>(body: &'t Tree<'t>) -> Result<Conversation<'t>, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body
            .get("output_config")
            .and_then(|config| config.get_text("effort")),
        template_arguments: chat::template_arguments(body),
        ..Conversation::default()
    };
    if body.get("thinking").and_then(|it| it.get_text("type")) == Some("disabled") {
        conversation.disables_thinking = true;
        // What an engine asks for that cannot switch it off, as Harmony.
        conversation.effort = Some("low");
    }
    let system = system_prompt(body.get("system"))?;
    conversation.turns.extend(system);
    for message in messages {
        turns(message, &mut conversation.turns)?;
    }
    Ok(conversation)
}

/// The turn of the `system` member.
pub(crate) fn system_prompt<'t>(
    system: Option<&'t Tree<'t>>,
) -> Result<Option<Turn<'t>>, Uncountable> {
    match system {
        // Only blocks lose the billing line here; a template's text loses it later.
        Some(Tree::Text(text)) if text.is_empty() => Ok(None),
        Some(Tree::Text(text)) => Ok(Some(instructions(Cow::Borrowed(text)))),
        blocks => of_system(blocks),
    }
}

fn tools<'t>(body: &'t Tree<'t>) -> Result<Vec<Tool<'t>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    tools.iter().map(tool).collect()
}

pub(crate) fn tool<'t>(tool: &'t Tree<'t>) -> Result<Tool<'t>, Uncountable> {
    match tool.get_text("type") {
        None | Some("custom") => Tool::read(tool, "input_schema"),
        Some(_) => Err(Uncountable::ServerState("tools")),
    }
}

fn of_system<'t>(content: Option<&'t Tree<'t>>) -> Result<Option<Turn<'t>>, Uncountable> {
    let mut content = parts::read(content)?;
    content
        .parts
        .retain(|part| !part.is_empty() && !part.starts_with(BILLING_LINE));
    let text = match content.parts.len() {
        0 | 1 => content.parts.pop(),
        _ => Some(content.parts.concat().into()),
    };
    Ok(text.map(instructions))
}

fn instructions(text: Cow<'_, str>) -> Turn<'_> {
    Turn::Instructions {
        role: Word::System,
        content: Content::of(text),
        name: None,
    }
}

/// Adds the turns of one message.
pub(crate) fn turns<'t>(
    message: &'t Tree<'t>,
    turns: &mut Vec<Turn<'t>>,
) -> Result<(), Uncountable> {
    match message.get_text("role") {
        Some("user") => user(message.get("content"), turns),
        Some("assistant") => {
            turns.push(assistant(message.get("content"))?);
            Ok(())
        }
        Some("system") => {
            turns.extend(of_system(message.get("content"))?);
            Ok(())
        }
        _ => Err(wrong("role", "user, assistant or system")),
    }
}

fn user<'t>(content: Option<&'t Tree<'t>>, turns: &mut Vec<Turn<'t>>) -> Result<(), Uncountable> {
    let Some(Tree::List(blocks)) = content else {
        turns.push(Turn::User {
            content: parts::read(content)?,
            name: None,
        });
        return Ok(());
    };
    let mut texts = Vec::new();
    for block in blocks {
        if block.get_text("type") == Some("tool_result") {
            let mut results = parts::read(block.get("content"))?.parts;
            let result = match results.len() {
                0 | 1 => results.pop().unwrap_or_default(),
                _ => results.join("\n").into(),
            };
            turns.push(Turn::Answer {
                content: Content::of(result),
                call_id: block.get_text("tool_use_id").unwrap_or_default(),
                name: None,
            });
        } else {
            texts.extend(text(block)?);
        }
    }
    if !texts.is_empty() {
        turns.push(Turn::User {
            content: Content { parts: texts },
            name: None,
        });
    }
    Ok(())
}

fn assistant<'t>(content: Option<&'t Tree<'t>>) -> Result<Turn<'t>, Uncountable> {
    let Some(Tree::List(blocks)) = content else {
        return Ok(Turn::Assistant {
            content: parts::read(content)?,
            reasoning: None,
            calls: Vec::new(),
            name: None,
        });
    };
    let (mut texts, mut reasoning, mut calls) = (Vec::new(), None, Vec::new());
    for block in blocks {
        match block.get_text("type") {
            Some("thinking") => {
                let text = parts::text_of(block)?;
                match &mut reasoning {
                    None => reasoning = Some(Cow::Borrowed(text)),
                    Some(before) => before.to_mut().push_str(text),
                }
            }
            Some("redacted_thinking") => {}
            Some("tool_use") => calls.push(call(block)?),
            _ => texts.extend(text(block)?),
        }
    }
    Ok(Turn::Assistant {
        content: Content { parts: texts },
        reasoning,
        calls,
        name: None,
    })
}

fn text<'t>(block: &'t Tree<'t>) -> Result<Option<Cow<'t, str>>, Uncountable> {
    let text = parts::text_of(block)?;
    Ok((!text.is_empty()).then_some(Cow::Borrowed(text)))
}

/// The input goes back to text as Python writes JSON, which is what vLLM renders.
fn call<'t>(block: &'t Tree<'t>) -> Result<Call<'t>, Uncountable> {
    let form = PythonJson {
        ascii: true,
        ..PythonJson::default()
    };
    let arguments = match block.get("input") {
        None => Cow::Borrowed("{}"),
        Some(input) => python_json(input, &form)
            .ok_or(Uncountable::TooLong(RENDERED_LIMIT_BYTES + 1))?
            .into(),
    };
    Ok(Call {
        id: block.get_text("id").unwrap_or_default(),
        name: block.get_text("name").unwrap_or_default(),
        arguments,
        tree: None,
    })
}
