//! Reads a chat completion's request.

mod quick;

use std::borrow::Cow;

use crate::call::{
    Call, Format, Left, Media, Message, Names, Other, Part, Role, Said, Signature, Tool, ToolCall,
    ToolChoice, ToolResult,
};
use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

const NAMES: Names = Names {
    messages: "messages",
    parts: "content",
    format: "response_format.type",
    effort: "reasoning_effort",
    parallel: "parallel_tool_calls",
};

/// Members of OpenAI's own, and whether an answer can be used without them: what is kept with the provider, hints of caching,
/// tiers and safety, and what is documented as best effort.
const OTHERS: [(&str, bool); 25] = [
    ("audio", false),
    ("chat_template_kwargs", false),
    ("extra_body", false),
    ("frequency_penalty", false),
    ("function_call", false),
    ("functions", false),
    ("logit_bias", false),
    ("logprobs", false),
    ("metadata", true),
    ("min_p", false),
    ("modalities", false),
    ("n", false),
    ("prediction", true),
    ("presence_penalty", false),
    ("prompt_cache_key", true),
    ("prompt_cache_retention", true),
    ("repetition_penalty", false),
    ("safety_identifier", true),
    ("seed", true),
    ("service_tier", true),
    ("store", true),
    ("top_logprobs", false),
    ("user", true),
    ("verbosity", true),
    ("web_search_options", false),
];

/// Values that ask for what is done anyway.
fn asks_nothing(name: &str, value: Raw<'_>) -> bool {
    match name {
        "n" => value.json() == "1",
        "frequency_penalty" | "presence_penalty" => matches!(value.json(), "0" | "0.0" | "0.00"),
        "repetition_penalty" => matches!(value.json(), "1" | "1.0"),
        "logprobs" => value.json() == "false",
        "top_logprobs" => value.json() == "0",
        "modalities" => value.json().replace([' ', '\n'], "") == r#"["text"]"#,
        "logit_bias" => value.json() == "{}",
        _ => false,
    }
}

pub(crate) fn read(body: Raw<'_>) -> Result<Call<'_>> {
    let mut left = Left::default();
    let (mut body, messages) = match quick::read(body, &left) {
        Some((members, messages)) => (members, Some(messages)),
        None => {
            left = Left::default();
            (body.object()?, None)
        }
    };
    let mut call = Call {
        model: body.need("model", Raw::text)?,
        is_streamed: body.read("stream", Raw::flag)?.unwrap_or(false),
        messages: match messages {
            Some(messages) => messages,
            None => body.need("messages", |messages| {
                messages.each_object(|nth, item| message(nth, item, &left))
            })?,
        },
        temperature: body.read("temperature", Raw::number)?,
        names: NAMES,
        ..Call::default()
    };
    let earlier = body.read("max_tokens", Raw::number)?;
    call.max_tokens = body.read("max_completion_tokens", Raw::number)?.or(earlier);
    if body.has_more() {
        read_more(&mut call, body, &left)?;
    }
    call.dropped.extend(left.names());
    Ok(call)
}

/// Members that fewer calls have.
fn read_more<'a>(call: &mut Call<'a>, mut body: Object<'a>, left: &Left) -> Result<()> {
    call.wants_usage = body.read("stream_options", wants_usage)?.unwrap_or(false);
    let tools = body.read("tools", |list| tools(list, left))?;
    call.tools = tools.unwrap_or_default();
    call.tool_choice = body.read("tool_choice", tool_choice)?;
    call.parallel_calls = body.read("parallel_tool_calls", Raw::flag)?;
    call.top_p = body.read("top_p", Raw::number)?;
    call.top_k = body.read("top_k", Raw::whole_number)?;
    call.stops = body.read("stop", stops)?.unwrap_or_default();
    call.effort = body.text("reasoning_effort")?;
    call.user = body.text("user")?;
    if let Some(format) = body.read("response_format", format)? {
        call.format = format;
    }
    for (name, value) in body.rest() {
        let Some((name, may_be_dropped)) = OTHERS.iter().find(|(known, _)| *known == name) else {
            let says = "is a member that this gate cannot tell a backend of another dialect";
            return Err(Fault::new(says).within(&name));
        };
        if !asks_nothing(name, value) {
            call.others.push(Other {
                name,
                value,
                may_be_dropped: *may_be_dropped,
            });
        }
    }
    Ok(())
}

fn wants_usage(options: Raw<'_>) -> Result<bool> {
    let mut options = options.object()?;
    Ok(options.read("include_usage", Raw::flag)?.unwrap_or(false))
}

fn stops(value: Raw<'_>) -> Result<Vec<Cow<'_, str>>> {
    if value.is_text() {
        return Ok(vec![value.text()?]);
    }
    value.each(|_, stop| stop.text())
}

fn message<'a>(nth: usize, mut message: Object<'a>, left: &Left) -> Result<Message<'a>> {
    let content = |value| content(value, left);
    let role = message.need("role", Raw::text)?;
    // The name of one of several people in a role: no dialect but this one has it, and it says nothing that the text does not.
    let _name = message.take("name");
    let mark = message.take("cache_control");
    let (role, mut parts) = match &*role {
        "system" | "developer" => (Role::System, message.need("content", content)?),
        "user" => (Role::User, message.need("content", content)?),
        "assistant" => (Role::Assistant, of_assistant(&mut message, left)?),
        "tool" => {
            let result = ToolResult {
                id: message.need("tool_call_id", Raw::text)?,
                is_error: false,
                parts: message.need("content", content)?,
            };
            (Role::User, vec![Part::of(Said::Result(result))])
        }
        other => {
            let says = format!("{other:?} is no role that a backend of another dialect has");
            return Err(Fault::new(says).within("role"));
        }
    };
    if let (Some(mark), Some(last)) = (mark, parts.last_mut()) {
        last.cache = Some(mark);
    }
    left.of_message(&message);
    Ok(Message { role, nth, parts })
}

fn of_assistant<'a>(message: &mut Object<'a>, left: &Left) -> Result<Vec<Part<'a>>> {
    // What an answer had, and an SDK sends again: it says nothing that is to be answered.
    let _said_again = message.take("annotations");
    let mut parts = Vec::new();
    let thought = message.text("reasoning_content")?;
    let thought = thought.or(message.text("reasoning")?);
    if let Some(text) = thought.filter(|text| !text.is_empty()) {
        parts.push(Part::of(Said::Thinking {
            text,
            signature: None,
        }));
    }
    parts.extend(
        message
            .read("content", |value| content(value, left))?
            .unwrap_or_default(),
    );
    if let Some(text) = message.text("refusal")? {
        parts.push(Part::of(Said::Refusal(text)));
    }
    if message.take("function_call").is_some() || message.take("audio").is_some() {
        let says =
            "has a function_call or audio, which a backend of another dialect cannot be told";
        return Err(Fault::new(says));
    }
    let calls = message.read("tool_calls", |calls| {
        calls.each(|_, call| tool_call(call, left))
    })?;
    let calls = calls.unwrap_or_default().into_iter();
    parts.extend(calls.map(|call| Part::of(Said::Call(call))));
    Ok(parts)
}

/// A message's content: a text, or parts.
fn content<'a>(value: Raw<'a>, left: &Left) -> Result<Vec<Part<'a>>> {
    if value.is_text() {
        return Ok(vec![Part::of(Said::Text(value.text()?))]);
    }
    value.each_object(|nth, item| part(nth, item, left))
}

fn part<'a>(nth: usize, mut part: Object<'a>, left: &Left) -> Result<Part<'a>> {
    let kind = part.need("type", Raw::text)?;
    let said = match &*kind {
        "text" => Said::Text(part.need("text", Raw::text)?),
        "refusal" => Said::Refusal(part.need("refusal", Raw::text)?),
        "image_url" => Said::Image(part.need("image_url", image)?),
        "file" => part.need("file", file)?,
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
    let cache = part.take("cache_control");
    left.of_message(&part);
    Ok(Part {
        nth: Some(nth),
        said,
        cache,
    })
}

fn image(value: Raw<'_>) -> Result<Media<'_>> {
    // `detail`, how closely to look, is a hint.
    media(value.object()?.need("url", Raw::text)?)
}

fn file(value: Raw<'_>) -> Result<Said<'_>> {
    let mut file = value.object()?;
    let name = file.text("filename")?;
    let Some(data) = file.text("file_data")? else {
        let says = "a file of the provider's own, which another provider does not have";
        return Err(Fault::new(says).within("file_id"));
    };
    Ok(Said::File(media(data)?, name))
}

/// What an address says: a `data:` address holds its bytes.
pub(crate) fn media(address: Cow<'_, str>) -> Result<Media<'_>> {
    let Some(data) = address.strip_prefix("data:") else {
        return Ok(Media::Url(address));
    };
    let fault = || Fault::new("is no data: address with base64");
    let (head, data) = data.split_once(',').ok_or_else(fault)?;
    let kind = head.strip_suffix(";base64").ok_or_else(fault)?;
    Ok(match &address {
        Cow::Borrowed(address) => {
            // The same text again, with the lifetime of the body.
            let (head, data) = address.split_once(',').ok_or_else(fault)?;
            let kind = head.get("data:".len()..head.len() - ";base64".len());
            Media::Data(kind.unwrap_or_default().into(), data.into())
        }
        Cow::Owned(_) => Media::Data(kind.to_owned().into(), data.to_owned().into()),
    })
}

fn tool_call<'a>(value: Raw<'a>, left: &Left) -> Result<ToolCall<'a>> {
    let mut call = value.object()?;
    let _place = call.take("index");
    let id = call.need("id", Raw::text)?;
    if let Some(kind) = call.text("type")?
        && kind != "function"
    {
        let says = format!("{kind:?} is a kind of call that a backend of another dialect has not");
        return Err(Fault::new(says).within("type"));
    }
    let signature = call.read("extra_content", |extra| {
        let mut extra = extra.object()?;
        let google = extra.read("google", |google| {
            google.object()?.text("thought_signature")
        })?;
        Ok(google.flatten())
    })?;
    let mut function = call.need("function", Raw::object)?;
    left.of_message(&call);
    let arguments = function
        .text("arguments")
        .map_err(|f| f.within("function"))?;
    Ok(ToolCall {
        id,
        name: function
            .need("name", Raw::text)
            .map_err(|f| f.within("function"))?,
        arguments: arguments
            .filter(|text| !text.trim().is_empty())
            .unwrap_or("{}".into()),
        signature: signature.flatten().map(|text| Signature { by: None, text }),
    })
}

fn tools<'a>(value: Raw<'a>, left: &Left) -> Result<Vec<Tool<'a>>> {
    value.each(|_, tool| {
        let mut tool = tool.object()?;
        let kind = tool.need("type", Raw::text)?;
        if kind != "function" {
            let says = format!("{kind:?} is a tool that a backend of another dialect has not");
            return Err(Fault::new(says).within("type"));
        }
        let cache = tool.take("cache_control");
        let mut read = tool.need("function", |function| {
            let mut function = function.object()?;
            let read = Tool {
                name: function.need("name", Raw::text)?,
                description: function.text("description")?,
                schema: function.read("parameters", an_object)?,
                is_strict: function.read("strict", Raw::flag)?.unwrap_or(false),
                cache: function.take("cache_control"),
            };
            left.of_tool(&function);
            Ok(read)
        })?;
        left.of_tool(&tool);
        read.cache = cache.or(read.cache);
        Ok(read)
    })
}

fn an_object(value: Raw<'_>) -> Result<Raw<'_>> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Fault::new("is no object")),
    }
}

fn tool_choice(value: Raw<'_>) -> Result<ToolChoice<'_>> {
    if value.is_text() {
        let choice = value.text()?;
        return match &*choice {
            "none" => Ok(ToolChoice::None),
            "auto" => Ok(ToolChoice::Auto),
            "required" => Ok(ToolChoice::Any),
            other => Err(Fault::new(format!("{other:?} is no choice of tools"))),
        };
    }
    let mut choice = value.object()?;
    let kind = choice.need("type", Raw::text)?;
    if kind != "function" {
        let says = format!("{kind:?} is a choice that a backend of another dialect has not");
        return Err(Fault::new(says).within("type"));
    }
    let name = choice.need("function", |function| {
        function.object()?.need("name", Raw::text)
    })?;
    Ok(ToolChoice::Named(name))
}

fn format(value: Raw<'_>) -> Result<Option<Format<'_>>> {
    let mut format = value.object()?;
    let kind = format.need("type", Raw::text)?;
    match &*kind {
        "text" => Ok(None),
        "json_object" => Ok(Some(Format::Json)),
        "json_schema" => format.need("json_schema", |schema| {
            let mut schema = schema.object()?;
            Ok(Some(Format::Schema {
                name: schema.text("name")?,
                description: schema.text("description")?,
                schema: schema.need("schema", an_object)?,
                is_strict: schema.read("strict", Raw::flag)?,
            }))
        }),
        other => {
            let says = format!("{other:?} is a format that a backend of another dialect has not");
            Err(Fault::new(says).within("type"))
        }
    }
}
