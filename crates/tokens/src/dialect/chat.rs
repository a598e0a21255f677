//! Chat completions.
//!
//! The older `functions` and `function_call` are not rendered by vLLM; where a provider's own template would render
//! them, they are refused.

use std::borrow::Cow;

use super::{Reader, flag, parts};
use prompts::Word;
use prompts::conversation::{Call, CallForm, CallId, Content, Conversation, Tool, Turn};
use prompts::tree::{Member, Tree};
use prompts::{Uncountable, wrong};

/// Arguments that are the renderer's and not the template's: what the engine makes of them is not known here.
const OF_THE_RENDERER: [&str; 4] = ["chat_template", "tokenize", "messages", "conversation"];

pub(super) fn read<'t>(
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Conversation<'t>, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    own_template_is_absent(body, reader)?;
    if reader == Reader::Overhead && body.get("functions").is_some() {
        return Err(wrong("functions", "given as `tools`"));
    }
    let given = |name| (name, body.get(name).cloned().unwrap_or(Tree::Null));
    let prompt = said(body, "add_generation_prompt", true, reader)?;
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body.get_text("reasoning_effort"),
        continues: said(body, "continue_final_message", false, reader)?,
        adds_special_tokens: said(body, "add_special_tokens", false, reader)?,
        own_arguments: own_arguments(body, reader)?,
        said_arguments: vec![
            ("add_generation_prompt", Tree::Bool(prompt)),
            given("documents"),
        ],
        ..Conversation::default()
    };
    for message in messages {
        conversation.turns.push(turn(message, reader)?);
    }
    Ok(conversation)
}

/// A flag for the engine's renderer; a provider whose template is not public knows none.
pub(super) fn said(
    body: &Tree<'_>,
    name: &'static str,
    default: bool,
    reader: Reader,
) -> Result<bool, Uncountable> {
    match reader {
        Reader::Overhead => Ok(flag(body, name, default).unwrap_or(default)),
        Reader::Template { .. } | Reader::Harmony => flag(body, name, default),
    }
}

/// An engine refuses a body's own template unless it was started to trust it.
pub(super) fn own_template_is_absent(body: &Tree<'_>, reader: Reader) -> Result<(), Uncountable> {
    match reader {
        Reader::Template { .. } if body.get("chat_template").is_some() => Err(wrong(
            "chat_template",
            "absent: only the model's own is known",
        )),
        _ => Ok(()),
    }
}

/// What the body asks to be passed to the template.
pub(super) fn own_arguments<'t>(
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<&'t [Member<'t>], Uncountable> {
    match body.get("chat_template_kwargs") {
        Some(arguments @ Tree::Map(members)) if matches!(reader, Reader::Template { .. }) => {
            if OF_THE_RENDERER
                .iter()
                .any(|name| arguments.member(name).is_some())
            {
                return Err(wrong(
                    "chat_template_kwargs",
                    "arguments of the template alone",
                ));
            }
            Ok(members)
        }
        _ => Ok(&[]),
    }
}

/// vLLM takes no empty list here.
fn tools<'t>(body: &'t Tree<'t>) -> Result<Option<Vec<Tool<'t>>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(None);
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    if tools.is_empty() {
        return Ok(None);
    }
    tools
        .iter()
        .map(Tool::of_chat)
        .collect::<Result<_, _>>()
        .map(Some)
}

pub(crate) fn turn<'t>(message: &'t Tree<'t>, reader: Reader) -> Result<Turn<'t>, Uncountable> {
    let content = parts::read(message.get("content"), reader)?;
    if matches!(reader, Reader::Template { .. }) && message.get_text("task").is_some() {
        return Err(wrong("task", "absent: only some templates know it"));
    }
    let name = message.get_text("name");
    match message.get_text("role") {
        Some("system") => Ok(instructions(Word::System, content, name)),
        Some("developer") => Ok(Turn::Instructions {
            role: Word::Developer,
            content,
            name,
            tools: message.get("tools"),
        }),
        Some("user") => Ok(Turn::User { content, name }),
        Some("assistant") => Ok(Turn::Assistant {
            content,
            reasoning: reasoning(message, reader)?.map(Cow::Borrowed),
            calls: calls(message)?,
            name,
        }),
        Some("tool") => Ok(Turn::Answer {
            content,
            call_id: CallId::read(message.member("tool_call_id")),
            name,
            of: None,
        }),
        Some(role) if matches!(reader, Reader::Template { .. }) => Ok(Turn::Other {
            role,
            content,
            name,
        }),
        _ => Err(wrong("role", "system, developer, user, assistant or tool")),
    }
}

/// The engine hands on to a template whatever stands here, if only it is not null.
fn reasoning<'t>(message: &'t Tree<'t>, reader: Reader) -> Result<Option<&'t str>, Uncountable> {
    let given = ["reasoning", "reasoning_content"].map(|name| message.get(name));
    if reader == Reader::Overhead {
        return Ok(given.into_iter().flatten().find_map(Tree::text));
    }
    let said = given.into_iter().flatten().next();
    let text = |it: &'t Tree<'t>| it.text().ok_or(wrong("reasoning", "text"));
    said.map(text).transpose()
}

const fn instructions<'t>(role: Word, content: Content<'t>, name: Option<&'t str>) -> Turn<'t> {
    Turn::Instructions {
        role,
        content,
        name,
        tools: None,
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
            name: function.get_text("name").unwrap_or_default().into(),
            arguments: Cow::Borrowed(arguments),
            form: CallForm::Chat(call),
        })
    };
    calls.iter().map(read).collect()
}
