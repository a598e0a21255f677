//! Anthropic messages, as vLLM turns them into chat messages.
//!
//! A user message that holds tool results becomes the results, then the user's own text; thinking becomes
//! reasoning; `redacted_thinking` has no text that an open model could have written and is left out, as are empty
//! texts.
//! Not here: Claude itself, whose template and tokenizer are not public (`overhead`).

use super::{Reader, chat, parts};
use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Part, Tool, Turn};
use crate::tree::{PythonJson, Tree, python_json};
use crate::uncountable::{Uncountable, wrong};

pub(super) fn read(body: &Tree, reader: Reader) -> Result<Conversation, Uncountable> {
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
        own_arguments: chat::own_arguments(body, reader)?,
        said_arguments: vec![("add_generation_prompt", Tree::Bool(true))],
        ..Conversation::default()
    };
    if body.get("thinking").and_then(|it| it.get_text("type")) == Some("disabled") {
        conversation.disables_thinking = true;
        // What an engine asks for that cannot switch it off, as Harmony.
        conversation.effort = Some("low".to_owned());
    }
    let mut leading = match body.get("system") {
        // Only blocks lose the billing line here; a template's text loses it later.
        Some(Tree::Text(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        blocks => system(blocks)?,
    };
    let merges = match reader {
        Reader::Template { merges_system } => merges_system,
        Reader::Harmony => true,
        Reader::Overhead => false,
    };
    let is_system = |message: &Tree| message.get_text("role") == Some("system");
    if merges {
        for message in messages.iter().filter(|message| is_system(message)) {
            if let Some(text) = inline_system(message)? {
                leading.get_or_insert_default().push_str(&text);
            }
        }
    }
    conversation.turns.extend(leading.map(instructions));
    for message in messages {
        if !(merges && is_system(message)) {
            turns(message, &mut conversation.turns)?;
        }
    }
    Ok(conversation)
}

/// The system's text between other messages; one that begins with the billing line is none.
fn inline_system(message: &Tree) -> Result<Option<String>, Uncountable> {
    let text = system(message.get("content"))?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn tools(body: &Tree) -> Result<Option<Vec<Tool>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(None);
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    let custom = tools.iter().map(|tool| match tool.get_text("type") {
        None | Some("custom") => {
            let mut read = Tool::read(tool, "input_schema")?;
            if let Some(Tree::Map(schema)) = &mut read.parameters
                && !schema.iter().any(|(name, _)| name == "type")
            {
                schema.push(("type".to_owned(), "object".into()));
            }
            Ok(read)
        }
        Some(_) => Err(Uncountable::ServerState("tools")),
    });
    custom.collect::<Result<_, _>>().map(Some)
}

fn system(content: Option<&Tree>) -> Result<Option<String>, Uncountable> {
    let mut content = parts::read(content, Reader::Overhead)?;
    content
        .parts
        .retain(|part| !part.text.is_empty() && !part.text.starts_with(BILLING_LINE));
    Ok(content.flat())
}

fn instructions(text: String) -> Turn {
    Turn::Instructions {
        role: "system",
        content: Content::of(text),
        name: None,
        tools: None,
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
            turns.extend(inline_system(message)?.map(instructions));
            Ok(())
        }
        _ => Err(wrong("role", "user, assistant or system")),
    }
}

fn user(content: Option<&Tree>, turns: &mut Vec<Turn>) -> Result<(), Uncountable> {
    let Some(Tree::List(blocks)) = content else {
        turns.push(Turn::User {
            content: parts::read(content, Reader::Overhead)?,
            name: None,
        });
        return Ok(());
    };
    let mut texts = Vec::new();
    for block in blocks {
        if block.get_text("type") == Some("tool_result") {
            turns.push(Turn::Answer {
                content: Content::of(
                    parts::read(block.get("content"), Reader::Overhead)?.joined("\n"),
                ),
                call_id: block.get_text("tool_use_id").unwrap_or_default().to_owned(),
                name: None,
                of: None,
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
            content: parts::read(content, Reader::Overhead)?,
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
            Some("tool_use") => calls.push(call(block)),
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

fn text(block: &Tree) -> Result<Option<Part>, Uncountable> {
    parts::text_of(block).map(|text| Some(text).filter(|text| !text.is_empty()).map(Part::from))
}

/// The input goes back to text as Python writes JSON, which is what vLLM renders.
fn call(block: &Tree) -> Call {
    let form = PythonJson {
        ascii: true,
        ..PythonJson::default()
    };
    let arguments = block
        .get("input")
        .map_or_else(|| "{}".to_owned(), |input| python_json(input, &form));
    let id = block.get_text("id").unwrap_or_default();
    let name = block.get_text("name").unwrap_or_default();
    let mut call = Call::new(id, name, arguments);
    // As vLLM's own types have them in order, which a body of Responses does not go through.
    let function = Tree::map([("arguments", Tree::Null), ("name", name.into())]);
    call.tree = Tree::map([
        ("id", id.into()),
        ("function", function),
        ("type", "function".into()),
    ]);
    call
}
