//! Anthropic messages, as vLLM turns them into chat messages.
//!
//! A user message that holds tool results becomes the results, then the user's own text; thinking becomes
//! reasoning; `redacted_thinking` has no text that an open model could have written and is left out, as are empty
//! texts.
//! Not here: Claude itself, whose template and tokenizer are not public (`overhead`).

use super::{chat, parts};
use crate::RENDERED_LIMIT_BYTES;
use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Tool, Turn};
use crate::tree::{PythonJson, Tree, python_json};
use crate::uncountable::{Uncountable, wrong};

pub(super) fn read(body: &Tree) -> Result<Conversation, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body
            .get("output_config")
            .and_then(|config| config.get_text("effort"))
            .map(str::to_owned),
        template_arguments: chat::template_arguments(body),
        ..Conversation::default()
    };
    if body.get("thinking").and_then(|it| it.get_text("type")) == Some("disabled") {
        conversation.disables_thinking = true;
        // What an engine asks for that cannot switch it off, as Harmony.
        conversation.effort = Some("low".to_owned());
    }
    let system = match body.get("system") {
        // Only blocks lose the billing line here; a template's text loses it later.
        Some(Tree::Text(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        blocks => system(blocks)?,
    };
    conversation.turns.extend(system.map(instructions));
    for message in messages {
        turns(message, &mut conversation.turns)?;
    }
    Ok(conversation)
}

fn tools(body: &Tree) -> Result<Vec<Tool>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    let custom = tools.iter().map(|tool| match tool.get_text("type") {
        None | Some("custom") => Tool::read(tool, "input_schema"),
        Some(_) => Err(Uncountable::ServerState("tools")),
    });
    custom.collect()
}

fn system(content: Option<&Tree>) -> Result<Option<String>, Uncountable> {
    let mut content = parts::read(content)?;
    content
        .parts
        .retain(|part| !part.is_empty() && !part.starts_with(BILLING_LINE));
    Ok(content.flat())
}

fn instructions(text: String) -> Turn {
    Turn::Instructions {
        role: "system",
        content: Content { parts: vec![text] },
        name: None,
    }
}

fn turns(message: &Tree, turns: &mut Vec<Turn>) -> Result<(), Uncountable> {
    match message.get_text("role") {
        Some("user") => user(message.get("content"), turns),
        Some("assistant") => {
            turns.push(assistant(message.get("content"))?);
            Ok(())
        }
        Some("system") => {
            turns.extend(system(message.get("content"))?.map(instructions));
            Ok(())
        }
        _ => Err(wrong("role", "user, assistant or system")),
    }
}

fn user(content: Option<&Tree>, turns: &mut Vec<Turn>) -> Result<(), Uncountable> {
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
            turns.push(Turn::Answer {
                content: Content::of(&parts::read(block.get("content"))?.parts.join("\n")),
                call_id: block.get_text("tool_use_id").unwrap_or_default().to_owned(),
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

fn assistant(content: Option<&Tree>) -> Result<Turn, Uncountable> {
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
            Some("thinking") => reasoning
                .get_or_insert_with(String::new)
                .push_str(&parts::text_of(block)?),
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

fn text(block: &Tree) -> Result<Option<String>, Uncountable> {
    parts::text_of(block).map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// The input goes back to text as Python writes JSON, which is what vLLM renders.
fn call(block: &Tree) -> Result<Call, Uncountable> {
    let form = PythonJson {
        ascii: true,
        ..PythonJson::default()
    };
    let arguments = match block.get("input") {
        None => "{}".to_owned(),
        Some(input) => {
            python_json(input, &form).ok_or(Uncountable::TooLong(RENDERED_LIMIT_BYTES + 1))?
        }
    };
    let id = block.get_text("id").unwrap_or_default();
    let name = block.get_text("name").unwrap_or_default();
    Ok(Call::new(id, name, arguments))
}
