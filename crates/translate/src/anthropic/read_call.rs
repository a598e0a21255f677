//! Reads a request of the Messages API.

use std::borrow::Cow;

use super::sealed;
use crate::call::{
    Call, Format, Left, Media, Message, Names, OfAnthropic, Other, Part, Role, Said, Tool,
    ToolCall, ToolChoice, ToolResult,
};
use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

const NAMES: Names = Names {
    messages: "messages",
    parts: "content",
    format: "output_config.format.type",
    effort: "output_config.effort",
    parallel: "tool_choice.disable_parallel_tool_use",
};

/// Members of Anthropic's own, and whether an answer can be used without them: what edits or caches the prompt, places and tiers.
const OTHERS: [(&str, bool); 8] = [
    ("cache_control", true),
    ("container", false),
    ("context_management", true),
    ("inference_geo", false),
    ("mcp_servers", false),
    ("service_tier", true),
    ("speed", true),
    ("betas", true),
];

pub(crate) fn read(body: Raw<'_>) -> Result<Call<'_>> {
    let mut body = body.object()?;
    let max_tokens = body.need("max_tokens", Raw::number)?;
    let mut call = read_object(body)?;
    call.max_tokens = Some(max_tokens);
    Ok(call)
}

/// Reads a call that asks what its prompt comes to, and is answered with nothing else.
pub(crate) fn read_prompt(body: Raw<'_>) -> Result<Call<'_>> {
    read_object(body.object()?)
}

#[inline]
fn read_object(mut body: Object<'_>) -> Result<Call<'_>> {
    let left = Left::default();
    let mut call = Call {
        model: body.need("model", Raw::text)?,
        is_streamed: body.read("stream", Raw::flag)?.unwrap_or(false),
        // Its streams always tell it.
        wants_usage: true,
        temperature: body.read("temperature", Raw::number)?,
        top_p: body.read("top_p", Raw::number)?,
        top_k: body.read("top_k", Raw::whole_number)?,
        names: NAMES,
        ..Call::default()
    };
    if let Some(parts) = body.read("system", |value| content(value, &left))? {
        // It stands before the messages, and no number is its own.
        call.messages.push(Message {
            role: Role::System,
            nth: 0,
            parts,
        });
    }
    call.messages.extend(body.need("messages", |messages| {
        messages.each_object(|nth, item| message(nth, item, &left))
    })?);
    call.tools = body
        .read("tools", |tools| tools.each(|_, item| tool(item, &left)))?
        .unwrap_or_default();
    let stops = body.read("stop_sequences", |stops| stops.each(|_, stop| stop.text()))?;
    call.stops = stops.unwrap_or_default();
    if let Some((choice, is_single)) = body.read("tool_choice", tool_choice)? {
        call.tool_choice = Some(choice);
        call.parallel_calls = is_single.map(|is_single| !is_single);
    }
    call.of_anthropic = Some(OfAnthropic {
        thinking: body.look("thinking"),
    });
    if let Some((budget, is_shown)) = body.read("thinking", thinking)? {
        call.thinking_budget = budget;
        call.shows_thinking = is_shown;
    }
    // The same member under its name of before it was general.
    let earlier = body.read("output_format", format)?;
    if let Some(output) = body.take("output_config") {
        let within = |fault: Fault| fault.within("output_config");
        let mut output = output.object().map_err(within)?;
        call.effort = output.text("effort").map_err(within)?;
        call.format = output.read("format", format).map_err(within)?;
        if let Some((name, _)) = output.rest().next() {
            return Err(within(unknown().within(&name)));
        }
    }
    call.format = call.format.or(earlier);
    call.dropped.extend(left.names());
    call.user = body
        .read("metadata", |metadata| metadata.object()?.text("user_id"))?
        .flatten();
    for (name, value) in body.rest() {
        let Some((name, may_be_dropped)) = OTHERS.iter().find(|(known, _)| *known == name) else {
            return Err(unknown().within(&name));
        };
        call.others.push(Other {
            name,
            value,
            may_be_dropped: *may_be_dropped,
        });
    }
    Ok(call)
}

fn unknown() -> Fault {
    Fault::new("is a member that this gate cannot tell a backend of another dialect")
}

fn message<'a>(nth: usize, mut message: Object<'a>, left: &Left) -> Result<Message<'a>> {
    let role = message.need("role", Raw::text)?;
    let role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => return Err(Fault::new(format!("{other:?} is no role")).within("role")),
    };
    let parts = message.need("content", |value| content(value, left))?;
    left.of_message(&message);
    Ok(Message { role, nth, parts })
}

/// Content: a text, or blocks.
fn content<'a>(value: Raw<'a>, left: &Left) -> Result<Vec<Part<'a>>> {
    if value.is_text() {
        return Ok(vec![Part::of(Said::Text(value.text()?))]);
    }
    value.each_object(|nth, item| block(nth, item, left))
}

fn block<'a>(nth: usize, mut block: Object<'a>, left: &Left) -> Result<Part<'a>> {
    let kind = block.need("type", Raw::text)?;
    let said = match &*kind {
        "text" => Said::Text(block.need("text", Raw::text)?),
        "image" => Said::Image(block.need("source", source)?),
        "document" => {
            let media = block.need("source", document)?;
            match media {
                Document::Media(media) => Said::File(media, block.text("title")?),
                Document::Text(text) => Said::Text(text),
            }
        }
        "thinking" => {
            let text = block.need("thinking", Raw::text)?;
            let signature = block.text("signature")?.filter(|text| !text.is_empty());
            sealed::open_thinking(text, signature)
        }
        "redacted_thinking" => sealed::open_redacted(block.need("data", Raw::text)?),
        "tool_use" => {
            let (id, signature) = sealed::open_id(block.need("id", Raw::text)?);
            Said::Call(ToolCall {
                id,
                name: block.need("name", Raw::text)?,
                arguments: Cow::Borrowed(block.need("input", an_object)?.json()),
                signature,
            })
        }
        "tool_result" => Said::Result(ToolResult {
            id: sealed::open_id(block.need("tool_use_id", Raw::text)?).0,
            is_error: block.read("is_error", Raw::flag)?.unwrap_or(false),
            parts: block
                .read("content", |value| content(value, left))?
                .unwrap_or_default(),
        }),
        other => {
            let says = format!("{other:?} is a block that a backend of another dialect has not");
            return Err(Fault::new(says).within("type"));
        }
    };
    let cache = block.take("cache_control");
    left.of_message(&block);
    Ok(Part {
        nth: Some(nth),
        said,
        cache,
    })
}

fn an_object(value: Raw<'_>) -> Result<Raw<'_>> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Fault::new("is no object")),
    }
}

fn source(value: Raw<'_>) -> Result<Media<'_>> {
    let mut source = value.object()?;
    let kind = source.need("type", Raw::text)?;
    match &*kind {
        "base64" => {
            let media_type = source.need("media_type", Raw::text)?;
            Ok(Media::Data(media_type, source.need("data", Raw::text)?))
        }
        "url" => Ok(Media::Url(source.need("url", Raw::text)?)),
        other => {
            let says = format!("{other:?} is a source that another provider does not have");
            Err(Fault::new(says).within("type"))
        }
    }
}

enum Document<'a> {
    Media(Media<'a>),
    Text(Cow<'a, str>),
}

fn document(value: Raw<'_>) -> Result<Document<'_>> {
    let mut again = value.object()?;
    match again.need("type", Raw::text)?.as_ref() {
        "text" => Ok(Document::Text(again.need("data", Raw::text)?)),
        _ => Ok(Document::Media(source(value)?)),
    }
}

fn tool<'a>(value: Raw<'a>, left: &Left) -> Result<Tool<'a>> {
    let mut tool = value.object()?;
    if let Some(kind) = tool.text("type")?
        && kind != "custom"
    {
        let says = format!("{kind:?} is a tool of the provider's own, which another has not");
        return Err(Fault::new(says).within("type"));
    }
    let read = Tool {
        name: tool.need("name", Raw::text)?,
        description: tool.text("description")?,
        schema: tool.read("input_schema", an_object)?,
        is_strict: tool.read("strict", Raw::flag)?.unwrap_or(false),
        cache: tool.take("cache_control"),
    };
    left.of_tool(&tool);
    Ok(read)
}

/// The choice, and whether one call at a time is asked for.
fn tool_choice(value: Raw<'_>) -> Result<(ToolChoice<'_>, Option<bool>)> {
    let mut choice = value.object()?;
    let kind = choice.need("type", Raw::text)?;
    let is_single = choice.read("disable_parallel_tool_use", Raw::flag)?;
    let choice = match &*kind {
        "none" => ToolChoice::None,
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Any,
        "tool" => ToolChoice::Named(choice.need("name", Raw::text)?),
        other => {
            return Err(Fault::new(format!("{other:?} is no choice of tools")).within("type"));
        }
    };
    Ok((choice, is_single))
}

/// The tokens that it may think for, none where the model decides, and whether what it thinks is shown.
fn thinking(value: Raw<'_>) -> Result<(Option<u64>, bool)> {
    let mut thinking = value.object()?;
    let is_shown = thinking.text("display")?.as_deref() != Some("omitted");
    match thinking.need("type", Raw::text)?.as_ref() {
        "disabled" => Ok((Some(0), false)),
        "enabled" => {
            let budget = thinking.need("budget_tokens", Raw::whole)?;
            Ok((Some(budget), is_shown))
        }
        _ => Ok((None, is_shown)),
    }
}

fn format(value: Raw<'_>) -> Result<Format<'_>> {
    let mut format = value.object()?;
    let kind = format.need("type", Raw::text)?;
    if kind != "json_schema" {
        return Err(Fault::new(format!("{kind:?} is no format")).within("type"));
    }
    Ok(Format::Schema {
        name: None,
        description: None,
        schema: format.need("schema", an_object)?,
        is_strict: None,
    })
}
