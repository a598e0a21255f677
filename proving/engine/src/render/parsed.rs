//! Messages as vLLM 0.32.0 hands them to a template: the chat dialect's objects, read again.
//!
//! Invariant: content is one text or a list of parts, as the template takes it; arguments of calls are objects.
//! Not here: which messages a body may have (`validate`), how a template takes content (`form`).

use crate::json::Json;

/// What Claude Code puts before a system prompt; it changes with every call.
const BILLING_HEADER: &str = "x-anthropic-billing-header";
/// Members of parts that vLLM knows and does not hand on.
const KNOWN_MEMBERS: &[&str] = &[
    "type",
    "text",
    "refusal",
    "thinking",
    "closed",
    "name",
    "image_url",
    "input_audio",
    "audio_url",
    "video_url",
    "file",
    "image_embeds",
    "audio_embeds",
    "video_embeds",
    "data",
    "image_pil",
    "uuid",
    "prompt_cache_breakpoint",
];

/// All messages. Says what is wrong with one that no template could be given.
pub(super) fn messages(all: &[Json], takes_parts: bool) -> Result<Vec<Json>, String> {
    all.iter().map(|one| message(one, takes_parts)).collect()
}

fn message(message: &Json, takes_parts: bool) -> Result<Json, String> {
    let role = message
        .get("role")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let mut parts = Vec::new();
    for one in given_parts(role, message.get("content")) {
        parts.extend(part(&one, takes_parts)?);
    }
    let content = match (takes_parts, role) {
        (true, "tool") if parts.iter().all(is_text) => Json::String(joined(&parts)),
        (true, _) => Json::Array(parts),
        (false, _) => Json::String(joined(&parts)),
    };
    let mut seen = vec![
        ("role".to_owned(), Json::from(role)),
        ("content".to_owned(), content),
    ];
    let mut show = |name: &str, value: Json| seen.push((name.to_owned(), value));
    let given = |name: &str| message.get(name).filter(|value| **value != Json::Null);
    if role == "assistant" {
        if let Some(calls) = given("tool_calls")
            .and_then(Json::as_array)
            .filter(|calls| !calls.is_empty())
        {
            show("tool_calls", Json::Array(calls.iter().map(call).collect()));
        }
        if let Some(reasoning) = given("reasoning") {
            show("reasoning", reasoning.clone());
            show("reasoning_content", reasoning.clone());
        }
    }
    if let ("tool", Some(id)) = (role, message.get("tool_call_id")) {
        show("tool_call_id", id.clone());
    }
    for name in ["name", "task"] {
        if let Some(value @ Json::String(_)) = message.get(name) {
            show(name, value.clone());
        }
    }
    if role == "developer" {
        show("tools", message.get("tools").cloned().unwrap_or_default());
    }
    Ok(Json::Object(seen))
}

/// The parts of content, be it a text; of a system message without the billing header's line.
fn given_parts(role: &str, content: Option<&Json>) -> Vec<Json> {
    let parts = match content {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(parts)) => parts.clone(),
        Some(text) => vec![text.clone()],
    };
    if role != "system" {
        return parts;
    }
    let without = |part: Json| {
        let text = part
            .get("text")
            .unwrap_or(&part)
            .as_str()
            .unwrap_or_default();
        if !text.starts_with(BILLING_HEADER) {
            return Some(part);
        }
        let rest = text
            .split_once('\n')
            .map_or("", |(_, rest)| rest)
            .to_owned();
        let rest = Some(rest).filter(|rest| !rest.is_empty())?;
        Some(match part {
            Json::Object(mut members) => {
                for (name, value) in &mut members {
                    if name == "text" {
                        *value = Json::String(rest.clone());
                    }
                }
                Json::Object(members)
            }
            _ => Json::String(rest),
        })
    };
    parts.into_iter().filter_map(without).collect()
}

/// A part as a template gets it, or none where it says nothing.
fn part(part: &Json, takes_parts: bool) -> Result<Option<Json>, String> {
    let wrapped = |text: &str| {
        let members = [("type", Json::from("text")), ("text", Json::from(text))];
        members
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    };
    if let Json::String(text) = part {
        return Ok(match takes_parts {
            true => Some(Json::Object(wrapped(text))),
            false => Some(part.clone()).filter(|_| !text.is_empty()),
        });
    }
    let kind = part
        .get("type")
        .and_then(Json::as_str)
        .ok_or("a content part needs a type")?;
    let others = || {
        let members = part.as_object().unwrap_or_default().iter();
        members
            .filter(|(name, _)| !KNOWN_MEMBERS.contains(&name.as_str()))
            .cloned()
    };
    let medium = |name: &str| {
        let mut members = vec![("type".to_owned(), Json::from(name))];
        members.extend(others());
        takes_parts.then_some(Json::Object(members))
    };
    let member = match kind {
        "text" | "input_text" | "output_text" => "text",
        "refusal" | "thinking" => kind,
        "image_url" | "input_image" => return Ok(medium("image")),
        "input_audio" | "audio_url" => return Ok(medium("audio")),
        "video_url" => return Ok(medium("video")),
        "file" | "input_file" => return Ok(None),
        "tool_reference" => {
            let name = part.get("name").cloned().unwrap_or_default();
            let whole = [
                ("type".to_owned(), Json::from(kind)),
                ("name".to_owned(), name.clone()),
            ];
            return Ok(Some(if takes_parts {
                Json::Object(whole.into())
            } else {
                name
            }));
        }
        other => return Err(format!("Unknown part type: {other}")),
    };
    match part.get(member) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) if takes_parts => {
            let mut members = wrapped(text);
            members.extend(others());
            Ok(Some(Json::Object(members)))
        }
        Some(Json::String(text)) => {
            Ok(Some(Json::from(text.as_str())).filter(|_| !text.is_empty()))
        }
        Some(_) => Err(format!("a {kind} part needs a string member {member}")),
    }
}

fn is_text(part: &Json) -> bool {
    part.get("type").and_then(Json::as_str) == Some("text")
}

/// The texts of parts as lines.
fn joined(parts: &[Json]) -> String {
    let text = |part| Json::get(part, "text").unwrap_or(part).as_str();
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// A call, with its arguments as an object.
fn call(call: &Json) -> Json {
    let object = |value: &Json| match value {
        Json::Object(_) => value.clone(),
        Json::String(text) => match serde_json::from_str(text) {
            Ok(object @ Json::Object(_)) => object,
            _ => Json::Object(Vec::new()),
        },
        _ => Json::Object(Vec::new()),
    };
    let mut call = call.clone();
    if let Json::Object(members) = &mut call {
        for (_, function) in members.iter_mut().filter(|(name, _)| name == "function") {
            if let Json::Object(members) = function {
                match members.iter_mut().find(|(name, _)| name == "arguments") {
                    Some((_, arguments)) => *arguments = object(arguments),
                    None => members.push(("arguments".to_owned(), Json::Object(Vec::new()))),
                }
            }
        }
    }
    call
}

/// Makes system messages of a developer's, and where one stands behind the first place one of all, at the beginning.
pub(super) fn with_system_alone(messages: Vec<Json>) -> Vec<Json> {
    let is = |message: &Json, role: &str| message.get("role").and_then(Json::as_str) == Some(role);
    let renamed = |message: Json| {
        let is_developer = is(&message, "developer");
        match message {
            Json::Object(mut members) if is_developer => {
                members.retain(|(name, _)| name != "tools");
                for (_, role) in members.iter_mut().filter(|(name, _)| name == "role") {
                    *role = Json::from("system");
                }
                Json::Object(members)
            }
            other => other,
        }
    };
    let messages: Vec<Json> = messages.into_iter().map(renamed).collect();
    if !messages.iter().skip(1).any(|message| is(message, "system")) {
        return messages;
    }
    let (system, others): (Vec<Json>, Vec<Json>) = messages
        .into_iter()
        .partition(|message| is(message, "system"));
    let texts = system.iter().map(|message| match message.get("content") {
        Some(Json::Array(parts)) => joined(parts),
        Some(Json::String(text)) => text.clone(),
        _ => String::new(),
    });
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    let merged = [
        ("role", Json::from("system")),
        ("content", Json::String(texts.join("\n\n"))),
    ];
    let merged = Json::Object(merged.map(|(name, value)| (name.to_owned(), value)).into());
    std::iter::once(merged).chain(others).collect()
}
