//! Input items of the Responses API: their shape, and what they say.
//!
//! Invariant: an item that passes is a message, a call, a call's output or reasoning, with what it requires.
//! Not here: the rest of the request, how items become a prompt (`render`).

use crate::error::Refusal;
use crate::json::Json;
use crate::render::{PromptMessage, PromptToolCall};
use crate::validate::{self, ParsedMessages};

/// Reads `input`: a text or a list of items.
pub(super) fn read(
    input: &Json,
    parsed: &mut ParsedMessages,
    harmony: bool,
) -> Result<(), Refusal> {
    match input {
        Json::String(text) => parsed.messages.push(PromptMessage {
            role: "user".to_owned(),
            text: Some(text.clone()),
            ..PromptMessage::default()
        }),
        Json::Array(items) if !items.is_empty() => {
            for (i, one) in items.iter().enumerate() {
                let message = item(one, &mut parsed.media, validate::between(harmony))
                    .map_err(|why| fault(format!("input[{i}]: {why}")))?;
                parsed.messages.push(message);
            }
        }
        _ => {
            return Err(fault(
                "input must be a string or a list of items".to_owned(),
            ));
        }
    }
    Ok(())
}

fn item(item: &Json, media: &mut usize, between: &str) -> Result<PromptMessage, String> {
    let text = |member: &str| {
        let text = item.get(member).and_then(Json::as_str);
        text.map(str::to_owned)
            .ok_or_else(|| format!("needs a string member {member}"))
    };
    let mut content =
        |member: &str| validate::content(item.get(member).unwrap_or(&Json::Null), media, between);
    match item.get("type").map_or(Some("message"), Json::as_str) {
        Some("message") => {
            let role = text("role")?;
            if !["system", "developer", "user", "assistant"].contains(&role.as_str()) {
                return Err(format!("Unknown role: {role}"));
            }
            Ok(PromptMessage {
                role,
                text: Some(content("content")?),
                ..PromptMessage::default()
            })
        }
        Some("function_call") => {
            let call = PromptToolCall {
                id: text("call_id")?,
                name: text("name")?,
                arguments: text("arguments")?,
            };
            Ok(PromptMessage {
                role: "assistant".to_owned(),
                calls: vec![call],
                ..PromptMessage::default()
            })
        }
        Some("function_call_output") => Ok(PromptMessage {
            role: "tool".to_owned(),
            text: Some(content("output")?),
            call_id: Some(text("call_id")?),
            ..PromptMessage::default()
        }),
        Some("reasoning") => {
            let parts = item
                .get("content")
                .and_then(Json::as_array)
                .unwrap_or_default();
            let texts = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Json::as_str));
            Ok(PromptMessage {
                role: "assistant".to_owned(),
                reasoning: Some(texts.collect()),
                ..PromptMessage::default()
            })
        }
        other => Err(format!(
            "Unknown item type: {}",
            other.unwrap_or("not a string")
        )),
    }
}

fn fault(why: String) -> Refusal {
    Refusal::bad_request(why).about("input")
}
