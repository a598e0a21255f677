//! Anthropic messages, as vLLM turns them into chat messages.
//!
//! A user message that holds tool results becomes the results, then the user's own text; thinking becomes
//! reasoning; `redacted_thinking` has no text that an open model could have written and is left out, as are empty
//! texts.
//! Not here: Claude itself, whose template and tokenizer are not public (`overhead`).

use std::borrow::Cow;

use super::{Reader, chat, parts};
use prompts::RENDERED_LIMIT_BYTES;
use prompts::Word;
use prompts::conversation::{
    BILLING_LINE, Call, CallForm, CallId, Content, Conversation, Part, Schema, Tool, Turn,
};
use prompts::tree::{PythonJson, Tree, python_json};
use prompts::{Uncountable, wrong};

pub(super) fn read<'t>(
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Conversation<'t>, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body
            .get("output_config")
            .and_then(|config| config.get_text("effort")),
        own_arguments: chat::own_arguments(body, reader)?,
        said_arguments: vec![("add_generation_prompt", Tree::Bool(true))],
        ..Conversation::default()
    };
    if body.get("thinking").and_then(|it| it.get_text("type")) == Some("disabled") {
        conversation.disables_thinking = true;
        // What an engine asks for that cannot switch it off, as Harmony.
        conversation.effort = Some("low");
    }
    let mut leading = leading_system(body.get("system"))?;
    let merges = match reader {
        Reader::Template { merges_system } => merges_system,
        Reader::Harmony => true,
        Reader::Overhead => false,
    };
    let is_system = |message: &Tree<'_>| message.get_text("role") == Some("system");
    if merges {
        for message in messages.iter().filter(|message| is_system(message)) {
            if let Some(text) = inline_system(message)? {
                conversation.merged_system = true;
                match &mut leading {
                    None => leading = Some(text),
                    Some(before) => before.to_mut().push_str(&text),
                }
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

/// The turn of the `system` member.
pub(crate) fn system_prompt<'t>(
    system: Option<&'t Tree<'t>>,
) -> Result<Option<Turn<'t>>, Uncountable> {
    Ok(leading_system(system)?.map(instructions))
}

fn leading_system<'t>(system: Option<&'t Tree<'t>>) -> Result<Option<Cow<'t, str>>, Uncountable> {
    match system {
        // Only blocks lose the billing line here; a template's text loses it later.
        Some(Tree::Text(text)) if text.is_empty() => Ok(None),
        Some(Tree::Text(text)) => Ok(Some(Cow::Borrowed(text))),
        blocks => of_system(blocks),
    }
}

/// The system's text between other messages; one that begins with the billing line is none.
fn inline_system<'t>(message: &'t Tree<'t>) -> Result<Option<Cow<'t, str>>, Uncountable> {
    let text = of_system(message.get("content"))?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn tools<'t>(body: &'t Tree<'t>) -> Result<Option<Vec<Tool<'t>>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(None);
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    tools.iter().map(tool).collect::<Result<_, _>>().map(Some)
}

pub(crate) fn tool<'t>(tool: &'t Tree<'t>) -> Result<Tool<'t>, Uncountable> {
    match tool.get_text("type") {
        None | Some("custom") => {
            let mut read = Tool::read(tool, "input_schema")?;
            if let Some(Schema::Given(Tree::Map(given))) = read.parameters
                && !given.iter().any(|(name, _)| name == "type")
            {
                let mut schema = given.clone();
                schema.push((Cow::Borrowed("type"), "object".into()));
                read.parameters = Some(Schema::Made(Tree::Map(schema)));
            }
            Ok(read)
        }
        Some(_) => Err(Uncountable::ServerState("tools")),
    }
}

fn of_system<'t>(content: Option<&'t Tree<'t>>) -> Result<Option<Cow<'t, str>>, Uncountable> {
    let mut content = parts::read(content, Reader::Overhead)?;
    content
        .parts
        .retain(|part| !part.text.is_empty() && !part.text.starts_with(BILLING_LINE));
    Ok(content.into_flat())
}

fn instructions(text: Cow<'_, str>) -> Turn<'_> {
    Turn::Instructions {
        role: Word::System,
        content: Content::of(text),
        name: None,
        tools: None,
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
            turns.extend(inline_system(message)?.map(instructions));
            Ok(())
        }
        _ => Err(wrong("role", "user, assistant or system")),
    }
}

fn user<'t>(content: Option<&'t Tree<'t>>, turns: &mut Vec<Turn<'t>>) -> Result<(), Uncountable> {
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
                    parts::read(block.get("content"), Reader::Overhead)?.into_joined("\n"),
                ),
                call_id: CallId::Of(block.get_text("tool_use_id").unwrap_or_default()),
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

fn assistant<'t>(content: Option<&'t Tree<'t>>) -> Result<Turn<'t>, Uncountable> {
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

fn text<'t>(block: &'t Tree<'t>) -> Result<Option<Part<'t>>, Uncountable> {
    let text = parts::text_of(block)?;
    Ok((!text.is_empty()).then(|| Part::from(text)))
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
        name: block.get_text("name").unwrap_or_default().into(),
        arguments,
        form: CallForm::Block,
    })
}
