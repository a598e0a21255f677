//! Reads one item of an input.

use std::borrow::Cow;

use super::read_tools::{SEARCH, name_of};
use super::sealed::{self, Opened};
use crate::call::{Media, Part, Role, Said, Signature, ToolCall, ToolResult};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::openai::read_call::media;
use crate::raw::{Object, Raw};

/// Marks of a cache as Anthropic says them, which knows five minutes and an hour.
const CACHE: Raw<'static> = Raw::literal(r#"{"type":"ephemeral"}"#);
const CACHE_LONG: Raw<'static> = Raw::literal(r#"{"type":"ephemeral","ttl":"1h"}"#);

pub(super) enum Item<'a> {
    Message(Role, Vec<Part<'a>>),
    /// What another agent says, whose name is left out.
    OfAgent(Vec<Part<'a>>),
    Thought(Said<'a>),
    /// What a provider wants to see again beside the call of this id.
    Signature(Cow<'a, str>, Signature<'a>),
    /// What cannot be told on, and what of it is dropped.
    Foreign(&'static str),
    Call(ToolCall<'a>),
    Output(ToolResult<'a>),
    /// What is told already.
    Told,
    /// More tools.
    Tools(Raw<'a>),
    /// Tools that a search found, and the id of that.
    Found(Option<Cow<'a, str>>, Raw<'a>),
}

pub(super) fn read(value: Raw<'_>) -> Result<Item<'_>> {
    let mut item = value.object()?;
    let kind = item.text("type")?;
    match kind.as_deref().unwrap_or("message") {
        "message" => message(item),
        "reasoning" => reasoning(item),
        "function_call" => {
            let arguments = item.text("arguments")?;
            let arguments = arguments.filter(|text| !text.trim().is_empty());
            Ok(Item::Call(call(item, arguments.unwrap_or("{}".into()))?))
        }
        "custom_tool_call" => {
            let input = item.need("input", Raw::text)?;
            let mut json = Json::with_capacity(input.len() + 16);
            json.object(|json| json.say("input", &input));
            let arguments = String::from_utf8(json.into_bytes());
            let arguments = arguments.map_err(|_| Fault::new("is no text").within("input"))?;
            Ok(Item::Call(call(item, arguments.into())?))
        }
        "function_call_output" | "custom_tool_call_output" => Ok(Item::Output(ToolResult {
            id: item.need("call_id", Raw::text)?,
            is_error: false,
            parts: item.need("output", output)?,
        })),
        "tool_search_call" => {
            let arguments = item.need("arguments", super::read_tools::an_object)?.json();
            match item.text("call_id")? {
                Some(id) => Ok(Item::Call(ToolCall {
                    id,
                    name: SEARCH.into(),
                    arguments: arguments.into(),
                    signature: None,
                })),
                // The provider searched.
                None => Ok(Item::Foreign("input.tool_search_call")),
            }
        }
        "tool_search_output" => {
            let id = item.text("call_id")?;
            Ok(Item::Found(id, item.need("tools", Ok)?))
        }
        // Codex's: what another of its agents says to this one.
        "agent_message" => Ok(Item::OfAgent(item.need("content", content)?)),
        "additional_tools" => Ok(Item::Tools(item.need("tools", Ok)?)),
        "item_reference" => {
            let says = "names an item that is kept, and a backend of another dialect keeps nothing; send the item again";
            Err(Fault::new(says).within("type"))
        }
        other => {
            let says = format!("{other:?} is an item that a backend of another dialect has not");
            Err(Fault::new(says).within("type"))
        }
    }
}

fn message(mut item: Object<'_>) -> Result<Item<'_>> {
    let role = item.need("role", Raw::text)?;
    let role = match &*role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => return Err(Fault::new(format!("{other:?} is no role")).within("role")),
    };
    Ok(Item::Message(role, item.need("content", content)?))
}

/// A thought: what we sealed comes back as it was, of another's hand only the words are read.
fn reasoning(mut item: Object<'_>) -> Result<Item<'_>> {
    let sealed = item.text("encrypted_content")?;
    match sealed.as_deref().and_then(sealed::open) {
        Some(Opened::Said(said)) => return Ok(Item::Thought(said)),
        Some(Opened::OfCall { id, signature }) => return Ok(Item::Signature(id, signature)),
        None => {}
    }
    let texts = |value: Raw<'_>| {
        value.each(|_, part| {
            let text = part.object()?.text("text")?;
            Ok(text.unwrap_or_default().into_owned())
        })
    };
    let content = item.read("content", texts)?.unwrap_or_default().concat();
    let summary = item
        .read("summary", texts)?
        .unwrap_or_default()
        .join("\n\n");
    let text = if content.is_empty() { summary } else { content };
    Ok(match text.is_empty() {
        true => Item::Foreign("input.encrypted_content"),
        false => Item::Thought(Said::Thinking {
            text: text.into(),
            signature: None,
        }),
    })
}

fn call<'a>(mut item: Object<'a>, arguments: Cow<'a, str>) -> Result<ToolCall<'a>> {
    let space = item.text("namespace")?;
    Ok(ToolCall {
        id: item.need("call_id", Raw::text)?,
        name: name_of(space.as_deref(), item.need("name", Raw::text)?),
        arguments,
        signature: None,
    })
}

/// What a tool gave, whose parts stand in the item itself.
fn output(value: Raw<'_>) -> Result<Vec<Part<'_>>> {
    let mut parts = content(value)?;
    parts.iter_mut().for_each(|part| part.nth = None);
    Ok(parts)
}

/// Content: a text, or parts.
pub(super) fn content(value: Raw<'_>) -> Result<Vec<Part<'_>>> {
    if value.is_text() {
        return Ok(vec![Part::of(Said::Text(value.text()?))]);
    }
    value.each(part)
}

fn part(nth: usize, value: Raw<'_>) -> Result<Part<'_>> {
    let mut part = value.object()?;
    let kind = part.need("type", Raw::text)?;
    let said = match &*kind {
        "input_text" | "output_text" | "text" => Said::Text(part.need("text", Raw::text)?),
        "refusal" => Said::Refusal(part.need("refusal", Raw::text)?),
        "input_image" => match part.text("image_url")? {
            // `detail`, how closely to look, is a hint.
            Some(url) => Said::Image(media(url)?),
            None => return Err(kept("file_id")),
        },
        "input_file" => file(&mut part)?,
        "input_audio" => part.need("input_audio", |audio| {
            let mut audio = audio.object()?;
            let data = audio.need("data", Raw::text)?;
            Ok(Said::Audio(data, audio.need("format", Raw::text)?))
        })?,
        other => {
            let says = format!("{other:?} is a kind of content that this gate does not know");
            return Err(Fault::new(says).within("type"));
        }
    };
    Ok(Part {
        nth: Some(nth),
        said,
        cache: part.read("prompt_cache_breakpoint", cache)?,
    })
}

fn kept(name: &str) -> Fault {
    Fault::new("a file of the provider's own, which another provider does not have").within(name)
}

fn file<'a>(part: &mut Object<'a>) -> Result<Said<'a>> {
    let name = part.text("filename")?;
    if let Some(data) = part.text("file_data")? {
        // Without its type it is what files are for most.
        let data = match data.starts_with("data:") {
            true => media(data)?,
            false => Media::Data("application/pdf".into(), data),
        };
        return Ok(Said::File(data, name));
    }
    match part.text("file_url")? {
        Some(url) => Ok(Said::File(Media::Url(url), name)),
        None => Err(kept("file_id")),
    }
}

fn cache(value: Raw<'_>) -> Result<Raw<'_>> {
    let ttl = value.object()?.text("ttl")?;
    Ok(match ttl.as_deref() {
        Some("12h") => CACHE_LONG,
        _ => CACHE,
    })
}
