//! The shape of chat messages: who may speak, and what a message must hold.
//!
//! Invariant: a message that passes has a role and readable content, what its role requires, and its calls have their
//! members in the order in which vLLM holds them.
//! Not here: the rest of a chat request (`chat`), how messages become a prompt (`render`).

use crate::error::Refusal;
use crate::json::Json;

/// What a part that is no text (image, sound, file) counts, in place of what a vision model would make of it.
pub(crate) const MEDIA_TOKENS: usize = 256;

/// The messages of a prompt, as objects of the chat dialect, and how many of their parts were no text.
#[derive(Debug, Default)]
pub(crate) struct ParsedMessages {
    pub(crate) messages: Vec<Json>,
    pub(crate) media: usize,
}

/// Checks the messages that responses are read as, whose calls are in order.
pub(crate) fn of_responses(messages: Vec<Json>) -> Result<ParsedMessages, Refusal> {
    let mut parsed = ParsedMessages::default();
    for (i, message) in messages.into_iter().enumerate() {
        let why = |why: String| fault(i, &why).about("input");
        let message = one(message, &mut parsed.media, Calls::AsTheyAre).map_err(why)?;
        parsed.messages.push(message);
    }
    Ok(parsed)
}

/// What becomes of the members of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Ordered,
    AsTheyAre,
}

/// Checks all messages. Harmony has five roles and passes over what is no text; a template is given any role.
pub(crate) fn messages(messages: Vec<Json>, harmony: bool) -> Result<ParsedMessages, Refusal> {
    if messages.is_empty() {
        return Err(fault(0, "at least one message is required"));
    }
    let mut parsed = ParsedMessages::default();
    for (i, message) in messages.into_iter().enumerate() {
        let message =
            one(message, &mut parsed.media, Calls::Ordered).map_err(|why| fault(i, &why))?;
        let role = message
            .get("role")
            .and_then(Json::as_str)
            .unwrap_or_default();
        if harmony && !["system", "developer", "user", "assistant", "tool"].contains(&role) {
            return Err(fault(i, &format!("Unknown role: {role}")));
        }
        parsed.messages.push(message);
    }
    if harmony {
        parsed.media = 0;
    }
    Ok(parsed)
}

fn one(message: Json, media: &mut usize, order: Calls) -> Result<Json, String> {
    let Json::Object(mut members) = message else {
        return Err("a message must be an object".to_owned());
    };
    let position = |members: &[(String, Json)], name: &str| {
        members.iter().position(|(known, _)| known == name)
    };
    if let Some(at) = position(&members, "reasoning_content")
        && members
            .iter()
            .all(|(name, value)| name != "reasoning" || *value == Json::Null)
    {
        members.retain(|(name, _)| name != "reasoning");
        let at = at.min(position(&members, "reasoning_content").unwrap_or(at));
        "reasoning".clone_into(&mut members[at].0);
    }
    let role = match members.iter().find(|(name, _)| name == "role") {
        Some((_, Json::String(role))) => role.clone(),
        Some(_) => return Err("role must be a string".to_owned()),
        None => return Err("needs a role".to_owned()),
    };
    for (name, value) in &mut members {
        let is_text = matches!(value, Json::String(_) | Json::Null);
        match name.as_str() {
            "content" => check(value, media)?,
            "reasoning" | "tool_call_id" if !is_text => {
                return Err(format!("{name} must be a string"));
            }
            "tool_calls" if role == "assistant" && order == Calls::Ordered => calls(value)?,
            _ => {}
        }
    }
    Ok(Json::Object(members))
}

/// Whether content is a text, parts, or nothing.
fn check(content: &Json, media: &mut usize) -> Result<(), String> {
    match content {
        Json::Null | Json::String(_) => Ok(()),
        Json::Array(parts) => parts
            .iter()
            .try_for_each(|part| text_of(part, media).map(drop)),
        _ => Err("content must be a string or a list of parts".to_owned()),
    }
}

/// Puts the members of calls into vLLM's order, and refuses what is no call.
fn calls(calls: &mut Json) -> Result<(), String> {
    let calls = match calls {
        Json::Array(calls) => calls,
        Json::Null => return Ok(()),
        _ => return Err("tool_calls must be a list".to_owned()),
    };
    for call in calls {
        let Json::Object(members) = call else {
            return Err("a tool call must be an object".to_owned());
        };
        ordered(members, &["id", "function", "type"]);
        let function = members.iter_mut().find(|(name, _)| name == "function");
        let Some((_, Json::Object(function))) = function else {
            return Err("a tool call needs a function".to_owned());
        };
        ordered(function, &["arguments", "name"]);
        for (name, value) in
            ["name", "arguments"].map(|name| (name, function.iter().find(|(n, _)| n == name)))
        {
            if !matches!(value, Some((_, Json::String(_)))) {
                return Err(format!(
                    "the function of a tool call needs a string member {name}"
                ));
            }
        }
        if !matches!(members.first(), Some((id, Json::String(_))) if id == "id") {
            return Err("a tool call needs a string member id".to_owned());
        }
    }
    Ok(())
}

/// The named members first, in this order.
fn ordered(members: &mut [(String, Json)], first: &[&str]) {
    members.sort_by_key(|(name, _)| {
        first
            .iter()
            .position(|known| known == name)
            .unwrap_or(first.len())
    });
}

/// The text of content that is a text or a list of parts, and in `media` how many are none; says what is wrong with
/// any other. Empty parts are left out.
pub(crate) fn content(value: &Json, media: &mut usize, between: &str) -> Result<String, String> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Array(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                texts.extend(text_of(part, media)?.filter(|text| !text.is_empty()));
            }
            Ok(texts.join(between))
        }
        _ => Err("content must be a string or a list of parts".to_owned()),
    }
}

/// The text of a part; none of one that is another medium, which is counted.
fn text_of<'j>(part: &'j Json, media: &mut usize) -> Result<Option<&'j str>, String> {
    if let Json::String(text) = part {
        return Ok(Some(text));
    }
    let kind = part
        .get("type")
        .and_then(Json::as_str)
        .ok_or("a content part needs a type")?;
    match kind {
        "text" | "input_text" | "output_text" | "refusal" | "thinking" => {
            let member = if matches!(kind, "refusal" | "thinking") {
                kind
            } else {
                "text"
            };
            match part.get(member) {
                Some(Json::String(text)) => Ok(Some(text)),
                _ => Err(format!("a {kind} part needs a string member {member}")),
            }
        }
        "image_url" | "input_audio" | "audio_url" | "video_url" | "file" => {
            part.get(kind)
                .ok_or_else(|| format!("a {kind} part needs a member {kind}"))?;
            *media += 1;
            Ok(None)
        }
        "input_image" | "input_file" => {
            *media += 1;
            Ok(None)
        }
        "tool_reference" => Ok(None),
        other => Err(format!("Unknown part type: {other}")),
    }
}

fn fault(i: usize, why: &str) -> Refusal {
    Refusal::bad_request(format!("messages[{i}]: {why}")).about("messages")
}

#[cfg(test)]
mod tests;
