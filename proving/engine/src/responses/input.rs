//! Input items of the Responses API: their shape, and the chat that vLLM 0.32.0 makes of them for a template.
//!
//! Invariant: an item that passes is a message, a call, a call's output or reasoning, with what it requires. What several
//! items of an assistant say is one message where the earlier ones leave room for it.
//! Not here: the rest of the request, how items become a prompt of Harmony (`render::turns`).

use crate::error::Refusal;
use crate::json::{Json, object};

/// The items of `input`; of a text a user's message. Each is one that can be read.
pub(super) fn items(input: &Json) -> Result<Vec<Json>, Refusal> {
    match input {
        Json::String(_) => Ok(vec![object([
            ("role", Json::from("user")),
            ("content", input.clone()),
        ])]),
        Json::Array(items) if !items.is_empty() => {
            for (i, one) in items.iter().enumerate() {
                check(one).map_err(|why| fault(format!("input[{i}]: {why}")))?;
            }
            Ok(items.clone())
        }
        _ => Err(fault(
            "input must be a string or a list of items".to_owned(),
        )),
    }
}

fn kind(item: &Json) -> Option<&str> {
    item.get("type").map_or(Some("message"), Json::as_str)
}

fn check(item: &Json) -> Result<(), String> {
    let text = |member: &str| match item.get(member) {
        Some(Json::String(_)) => Ok(()),
        _ => Err(format!("needs a string member {member}")),
    };
    match kind(item) {
        Some("message") => {
            text("role")?;
            let role = item.get("role").and_then(Json::as_str).unwrap_or_default();
            if !["system", "developer", "user", "assistant"].contains(&role) {
                return Err(format!("Unknown role: {role}"));
            }
            match item.get("content") {
                Some(Json::String(_) | Json::Array(_)) => Ok(()),
                _ => Err("content must be a string or a list of parts".to_owned()),
            }
        }
        Some("function_call") => ["call_id", "name", "arguments"]
            .into_iter()
            .try_for_each(text),
        Some("custom_tool_call") => ["call_id", "name"].into_iter().try_for_each(text),
        Some("function_call_output" | "custom_tool_call_output") => text("call_id"),
        Some("reasoning") => Ok(()),
        other => Err(format!(
            "Unknown item type: {}",
            other.unwrap_or("not a string")
        )),
    }
}

/// The chat that items are to a template.
pub(super) fn chat(instructions: Option<&str>, items: &[Json]) -> Vec<Json> {
    let mut chat = Vec::new();
    if let Some(text) = instructions.filter(|text| !text.is_empty()) {
        chat.push(object([
            ("role", Json::from("system")),
            ("content", Json::from(text)),
        ]));
    }
    for item in items {
        add(item, &mut chat);
    }
    chat
}

fn add(item: &Json, chat: &mut Vec<Json>) {
    let member = |name: &str| item.get(name).cloned().unwrap_or_default();
    match kind(item) {
        Some(of @ ("function_call" | "custom_tool_call")) => {
            let name = item.get("name").and_then(Json::as_str).unwrap_or_default();
            let name = match item.get("namespace").and_then(Json::as_str) {
                Some(space) if !space.is_empty() => format!("{space}__{name}"),
                _ => name.to_owned(),
            };
            let arguments = match of {
                "function_call" => member("arguments"),
                _ => {
                    let input = item
                        .get("input")
                        .cloned()
                        .filter(|input| *input != Json::Null);
                    let input = input.unwrap_or_else(|| Json::from(""));
                    Json::String(object([("input", input)]).dumps(false))
                }
            };
            let function = object([("name", Json::String(name)), ("arguments", arguments)]);
            let call = object([
                ("id", member("call_id")),
                ("function", function),
                ("type", Json::from("function")),
            ]);
            match assistant(chat).map(|members| position(members, "tool_calls")) {
                Some(Some(Json::Array(calls))) => calls.push(call),
                Some(_) => put(chat, "tool_calls", Json::Array(vec![call])),
                None => chat.push(object([
                    ("role", Json::from("assistant")),
                    ("tool_calls", Json::Array(vec![call])),
                ])),
            }
        }
        Some("reasoning") => {
            let of = |name: &str| match item.get(name) {
                Some(Json::Array(parts)) => {
                    parts.first().and_then(|part| part.get("text")).cloned()
                }
                _ => None,
            };
            let said = of("content")
                .or_else(|| of("summary"))
                .unwrap_or_else(|| Json::from(""));
            say(chat, "reasoning", said);
        }
        Some("function_call_output" | "custom_tool_call_output") => chat.push(object([
            ("role", Json::from("tool")),
            ("content", member("output")),
            ("tool_call_id", member("call_id")),
        ])),
        _ if item.get("role").and_then(Json::as_str) == Some("assistant") => {
            let said = match item.get("content") {
                Some(Json::Array(parts)) => {
                    parts.first().and_then(|part| part.get("text")).cloned()
                }
                content => content.cloned(),
            };
            match said {
                Some(said) => say(chat, "content", said),
                None => chat.push(item.clone()),
            }
        }
        _ => chat.push(item.clone()),
    }
}

/// The members of the last message, if it is an assistant's.
fn assistant(chat: &mut [Json]) -> Option<&mut Vec<(String, Json)>> {
    match chat.last_mut() {
        Some(Json::Object(members))
            if members
                .iter()
                .any(|(name, value)| name == "role" && value.as_str() == Some("assistant")) =>
        {
            Some(members)
        }
        _ => None,
    }
}

fn position<'m>(members: &'m mut [(String, Json)], name: &str) -> Option<&'m mut Json> {
    let member = members
        .iter_mut()
        .find(|(known, value)| known == name && *value != Json::Null);
    member.map(|(_, value)| value)
}

fn put(chat: &mut [Json], name: &str, value: Json) {
    if let Some(members) = assistant(chat) {
        members.retain(|(known, _)| known != name);
        members.push((name.to_owned(), value));
    }
}

/// Says it in the assistant's message that is the last, if that says nothing of it yet.
fn say(chat: &mut Vec<Json>, name: &'static str, value: Json) {
    let has_room = assistant(chat).is_some_and(|members| position(members, name).is_none());
    if has_room {
        put(chat, name, value);
    } else {
        chat.push(object([("role", Json::from("assistant")), (name, value)]));
    }
}

/// Whether the last item is to be gone on with.
pub(super) fn continues(items: &[Json]) -> bool {
    items.last().is_some_and(|last| {
        let status = last.get("status").and_then(Json::as_str);
        matches!(kind(last), Some("message" | "reasoning"))
            && matches!(status, Some("in_progress" | "incomplete"))
    })
}

fn fault(why: String) -> Refusal {
    Refusal::bad_request(why).about("input")
}
