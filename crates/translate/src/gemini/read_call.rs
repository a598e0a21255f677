//! Reads a request of `generateContent`; model and manner stand in its path.
//!
//! Not here: what is said in a conversation (`read_contents`), schemas in Google's own form (`schema`).

use std::borrow::Cow;
use std::collections::HashSet;

use super::members::{Members, items, unknown};
use super::read_contents;
use super::schema::Schemas;
use crate::call::{Call, Format, Left, Message, Names, Other, Part, Role, Said, Tool, ToolChoice};
use crate::fault::{Fault, Result};
use crate::raw::Raw;

const NAMES: Names = Names {
    messages: "contents",
    parts: "parts",
    format: "generationConfig.responseMimeType",
    effort: "generationConfig.thinkingConfig.thinkingLevel",
    parallel: "toolConfig",
};

/// Members that are of Google's own, and whether an answer can be used without them.
const OTHERS: [(&str, bool); 4] = [
    ("cachedContent", false),
    ("labels", true),
    ("serviceTier", true),
    ("store", true),
];

/// The same in `generationConfig`.
const OF_CONFIG: [(&str, &str, bool); 12] = [
    ("seed", "generationConfig.seed", true),
    ("presencePenalty", "generationConfig.presencePenalty", false),
    (
        "frequencyPenalty",
        "generationConfig.frequencyPenalty",
        false,
    ),
    ("candidateCount", "generationConfig.candidateCount", false),
    (
        "responseModalities",
        "generationConfig.responseModalities",
        false,
    ),
    (
        "responseLogprobs",
        "generationConfig.responseLogprobs",
        false,
    ),
    ("logprobs", "generationConfig.logprobs", false),
    ("mediaResolution", "generationConfig.mediaResolution", true),
    ("speechConfig", "generationConfig.speechConfig", false),
    ("imageConfig", "generationConfig.imageConfig", false),
    ("audioTimestamp", "generationConfig.audioTimestamp", false),
    (
        "enableEnhancedCivicAnswers",
        "generationConfig.enableEnhancedCivicAnswers",
        false,
    ),
];

/// Values that ask for what is done anyway.
fn asks_nothing(name: &str, value: Raw<'_>) -> bool {
    match name {
        "candidateCount" => value.json() == "1",
        "presencePenalty" | "frequencyPenalty" => matches!(value.json(), "0" | "0.0"),
        "responseLogprobs" | "audioTimestamp" | "enableEnhancedCivicAnswers" => {
            value.json() == "false"
        }
        "responseModalities" => {
            let bare = value.json().replace([' ', '\n'], "");
            matches!(&*bare.to_ascii_lowercase(), "[]" | r#"["text"]"#)
        }
        _ => false,
    }
}

/// Of a body of `countTokens`, the call whose prompt is to be counted: in a member, or the body itself.
pub(crate) fn prompt_asked(body: Raw<'_>) -> Option<Raw<'_>> {
    let inner = Members::of(body)
        .ok()?
        .take("generateContentRequest")
        .ok()?;
    Some(inner.map_or(body, |(_, inner)| inner))
}

/// Reads a call of this model.
pub(crate) fn read<'a>(
    body: Raw<'a>,
    model: &'a str,
    is_streamed: bool,
    schemas: &'a Schemas,
) -> Result<Call<'a>> {
    let mut body = Members::of(body)?;
    let left = Left::default();
    let mut call = Call {
        model: model.into(),
        is_streamed,
        // Its streams always tell it.
        wants_usage: true,
        names: NAMES,
        ..Call::default()
    };
    if let Some(parts) = body.read("systemInstruction", system)? {
        call.messages.push(Message {
            role: Role::System,
            nth: 0,
            parts,
        });
    }
    body.need("contents", |contents| {
        read_contents::read(contents, &left, &mut call.messages)
    })?;
    let mut made = schemas.functions.iter();
    let mut next = || made.next().and_then(Option::as_deref);
    let tools = body.read("tools", |tools| self::tools(tools, &mut next, &left))?;
    call.tools = tools.unwrap_or_default();
    body.read("toolConfig", |config| tool_config(config, &mut call))?;
    body.read("safetySettings", |settings| safety(settings, &mut call))?;
    body.read("generationConfig", |config| {
        generation(config, schemas, &mut call)
    })?;
    for (name, may_be_dropped) in OTHERS {
        if let Some((_, value)) = body.take(name)? {
            call.others.push(Other {
                name,
                value,
                may_be_dropped,
            });
        }
    }
    body.nothing_more()?;
    call.dropped.extend(left.names());
    Ok(call)
}

fn system(value: Raw<'_>) -> Result<Vec<Part<'_>>> {
    if value.is_text() {
        return Ok(vec![Part::of(Said::Text(value.text()?))]);
    }
    let mut content = Members::of(value)?;
    let _role = content.take("role")?;
    let parts = content.need("parts", |parts| {
        let texts = items(parts)?.into_iter().enumerate().map(|(nth, part)| {
            let text = || {
                let mut part = Members::of(part)?;
                let text = part.need("text", Raw::text)?;
                part.nothing_more()?;
                Ok(text)
            };
            let text: Result<Cow<'_, str>> = text();
            Ok(Part {
                nth: Some(nth),
                said: Said::Text(text.map_err(|fault| fault.item(nth))?),
                cache: None,
            })
        });
        texts.collect::<Result<Vec<_>>>()
    })?;
    content.nothing_more()?;
    Ok(parts)
}

fn tools<'a>(
    value: Raw<'a>,
    made: &mut dyn FnMut() -> Option<&'a [u8]>,
    left: &Left,
) -> Result<Vec<Tool<'a>>> {
    let mut tools = Vec::new();
    for (nth, tool) in items(value)?.into_iter().enumerate() {
        let mut read = || {
            let mut tool = Members::of(tool)?;
            tool.read("functionDeclarations", |functions| {
                for (nth, function) in items(functions)?.into_iter().enumerate() {
                    let read = self::function(function, made(), left);
                    tools.push(read.map_err(|fault| fault.item(nth))?);
                }
                Ok(())
            })?;
            match tool.into_object().rest().next() {
                None => Ok(()),
                Some((name, _)) => {
                    let says = "is a tool of the provider's own, which another has not";
                    Err(Fault::new(says).within(&name))
                }
            }
        };
        read().map_err(|fault| fault.item(nth))?;
    }
    Ok(tools)
}

fn function<'a>(value: Raw<'a>, made: Option<&'a [u8]>, left: &Left) -> Result<Tool<'a>> {
    let mut function = Members::of(value)?;
    let name = function.need("name", Raw::text)?;
    let description = function.text("description")?;
    // What it gives is described for Google's models alone, and whether it is waited for is of live sessions.
    for hint in ["response", "responseJsonSchema", "behavior"] {
        let _hint = function.take(hint)?;
    }
    let own = function.take("parameters")?.and(made).and_then(Raw::read);
    let schema = function.read("parametersJsonSchema", an_object)?;
    left.of_tool(&function.into_object());
    Ok(Tool {
        name,
        description,
        schema: schema.or(own),
        is_strict: false,
        cache: None,
    })
}

fn an_object(value: Raw<'_>) -> Result<Raw<'_>> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Fault::new("is no object")),
    }
}

fn tool_config<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut config = Members::of(value)?;
    config.read("functionCallingConfig", |config| calling(config, call))?;
    let is_server_side = config.read("includeServerSideToolInvocations", Raw::flag)?;
    if is_server_side == Some(true) {
        return Err(unknown().within("includeServerSideToolInvocations"));
    }
    config.nothing_more()
}

fn calling<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut config = Members::of(value)?;
    let mode = config.text("mode")?.unwrap_or_default();
    let allowed = config.read("allowedFunctionNames", |names| {
        names.each(|_, name| name.text())
    })?;
    let allowed = allowed.unwrap_or_default();
    config.nothing_more()?;
    let choice = match &*mode.to_ascii_uppercase() {
        "" | "MODE_UNSPECIFIED" | "AUTO" => ToolChoice::Auto,
        "ANY" => ToolChoice::Any,
        "NONE" => ToolChoice::None,
        "VALIDATED" => {
            call.tools.iter_mut().for_each(|tool| tool.is_strict = true);
            ToolChoice::Auto
        }
        other => {
            let says = format!("{other:?} is no way to choose tools");
            return Err(Fault::new(says).within("mode"));
        }
    };
    let choice = match (choice, &allowed[..]) {
        (choice, []) => choice,
        (ToolChoice::Any, [one]) => ToolChoice::Named(one.clone()),
        (choice, names) => {
            // The others may not be called, and nothing says that but that they are not there.
            let names: HashSet<&str> = names.iter().map(|name| &**name).collect();
            call.tools.retain(|tool| names.contains(&*tool.name));
            choice
        }
    };
    call.tool_choice = Some(choice);
    Ok(())
}

/// What filters of Google's shall let pass: another provider has none. One that shall hold back more than nothing is asked for.
fn safety(value: Raw<'_>, call: &mut Call<'_>) -> Result<()> {
    let is_off = |threshold: &str| {
        matches!(
            threshold,
            "BLOCK_NONE" | "OFF" | "HARM_BLOCK_THRESHOLD_UNSPECIFIED"
        )
    };
    value.each(|_, setting| {
        let threshold = Members::of(setting)?.text("threshold")?.unwrap_or_default();
        match is_off(&threshold) {
            true => Ok(()),
            false => {
                let says = format!(
                    "{threshold:?} asks for a filter of Google's, which another provider has not"
                );
                Err(Fault::new(says).within("threshold"))
            }
        }
    })?;
    call.dropped.push("safetySettings");
    Ok(())
}

fn generation<'a>(value: Raw<'a>, schemas: &'a Schemas, call: &mut Call<'a>) -> Result<()> {
    let mut config = Members::of(value)?;
    call.temperature = config.read("temperature", Raw::number)?;
    call.top_p = config.read("topP", Raw::number)?;
    call.top_k = config.read("topK", Raw::whole_number)?;
    call.max_tokens = config.read("maxOutputTokens", Raw::number)?;
    let stops = config.read("stopSequences", |stops| stops.each(|_, stop| stop.text()))?;
    call.stops = stops.unwrap_or_default();
    config.read("thinkingConfig", |config| thinking(config, call))?;
    call.format = format(&mut config, schemas)?;
    for (name, whole, may_be_dropped) in OF_CONFIG {
        if let Some((_, value)) = config.take(name)?
            && !asks_nothing(name, value)
        {
            call.others.push(Other {
                name: whole,
                value,
                may_be_dropped,
            });
        }
    }
    config.nothing_more()
}

fn thinking<'a>(value: Raw<'a>, call: &mut Call<'a>) -> Result<()> {
    let mut config = Members::of(value)?;
    call.shows_thinking = config.flag("includeThoughts")?;
    let level = config.text("thinkingLevel")?;
    let level = level.filter(|level| level != "THINKING_LEVEL_UNSPECIFIED");
    call.effort = level.map(|level| Cow::Owned(level.to_ascii_lowercase()));
    let budget = config.take("thinkingBudget")?;
    // -1: it is the model's matter.
    let budget = budget.filter(|(_, budget)| budget.json() != "-1");
    if let Some((name, budget)) = budget {
        call.thinking_budget = Some(budget.whole().map_err(|fault| fault.within(&name))?);
    }
    config.nothing_more()
}

fn format<'a>(config: &mut Members<'a>, schemas: &'a Schemas) -> Result<Option<Format<'a>>> {
    let kind = config.text("responseMimeType")?;
    let own = config.take("responseSchema")?;
    let own = own.and(schemas.answer.as_deref()).and_then(Raw::read);
    let earlier = config.read("_responseJsonSchema", an_object)?;
    let schema = config.read("responseJsonSchema", an_object)?;
    match kind.as_deref() {
        None | Some("text/plain" | "") => Ok(None),
        Some("application/json") => Ok(Some(match schema.or(earlier).or(own) {
            None => Format::Json,
            Some(schema) => Format::Schema {
                name: None,
                description: None,
                schema,
                is_strict: Some(false),
            },
        })),
        Some(other) => {
            let says = format!("{other:?} is a format that a backend of another dialect has not");
            Err(Fault::new(says).within("responseMimeType"))
        }
    }
}
