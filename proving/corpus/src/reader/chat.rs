//! Messages in the form of OpenAI's API, and a chat as one session.
//!
//! Invariant: what a message says is kept; members of a message that the API does not have are counted.
//! Not here: rows and lines (`rows`), what engines refuse (`repair`).

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime};

use super::{Fault, Tally};
use crate::conversation::{
    Arguments, Content, Conversation, Decision, FunctionCall, Message, Role, ToolCall,
};
use crate::json::Json;

/// Messages of one record.
pub(super) const MAX_MESSAGES: usize = 20_000;

const KNOWN: &[&str] = &[
    "role",
    "content",
    "name",
    "reasoning",
    "reasoning_content",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "timestamp",
    "usage",
    "valid",
    "refusal",
];

/// A role by any of the names that datasets have for it.
pub(super) fn role(name: &str) -> Option<Role> {
    Some(match name {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "gpt" | "model" | "agent" => Role::Assistant,
        "tool" => Role::Tool,
        "function" => Role::Function,
        _ => return None,
    })
}

/// One message; members that are `null` are as those that are not there.
pub(super) fn message(mut value: Json, tally: &mut Tally) -> Result<Message, Fault> {
    let Some(name) = value.text("role") else {
        return Err(Fault::broken("no_role", "a message has no role"));
    };
    let role = role(name)
        .ok_or_else(|| Fault::broken("unknown_role", format!("a message has the role {name:?}")))?;
    tally.unknown_members("message", &value, KNOWN);
    let content = value
        .take("content")
        .and_then(|value| content(value, tally));
    let calls = match value.take("tool_calls") {
        Some(Json::Array(all)) => all.into_iter().filter_map(|one| call(one, tally)).collect(),
        Some(Json::Null) | None => Vec::new(),
        Some(_) => {
            tally.note("tool_calls_unreadable");
            Vec::new()
        }
    };
    let function_call = value.take("function_call").filter(|call| !call.is_null());
    let text = |name: &str| value.text(name).map(str::to_owned);
    Ok(Message {
        role,
        content,
        name: text("name"),
        reasoning: text("reasoning").or_else(|| text("reasoning_content")),
        tool_calls: calls,
        function_call: function_call.and_then(|call| function(call, tally)),
        tool_call_id: text("tool_call_id"),
    })
}

/// What a message says: text, or parts.
pub(super) fn content(value: Json, tally: &mut Tally) -> Option<Content> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(Content::Text(text)),
        Json::Array(parts) => {
            let part = |part| match part {
                Json::String(text) => {
                    Json::object([("type", Json::from("text")), ("text", Json::String(text))])
                }
                other => other,
            };
            Some(Content::Parts(parts.into_iter().map(part).collect()))
        }
        other => {
            tally.note("content_not_text");
            Some(Content::Text(other.to_string()))
        }
    }
}

fn call(mut value: Json, tally: &mut Tally) -> Option<ToolCall> {
    let id = value.text("id").map(str::to_owned);
    let inner = value.take("function").filter(Json::is_object);
    // Some logs have the function's members beside the id.
    let function = function(inner.unwrap_or(value), tally)?;
    Some(ToolCall { id, function })
}

fn function(mut value: Json, tally: &mut Tally) -> Option<FunctionCall> {
    let Some(name) = value.text("name").map(str::to_owned) else {
        tally.note("call_without_name");
        return None;
    };
    let arguments = value.take("arguments").unwrap_or_default();
    let arguments = arguments_of(arguments);
    Some(FunctionCall { name, arguments })
}

/// Arguments in the form that they have.
pub(super) fn arguments_of(value: Json) -> Arguments {
    match value {
        Json::Null => Arguments::Text(String::new()),
        Json::String(text) => Arguments::Text(text),
        other => Arguments::Object(other),
    }
}

/// What was recorded beside a message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Beside {
    /// When an answer was complete, or anything else was known, in seconds.
    pub(super) at: Option<f64>,
    /// Tokens of an answer, as its engine reported them.
    pub(super) tokens: Option<u32>,
}

impl Beside {
    fn of(message: &Json) -> Self {
        let usage = message.get("usage");
        let tokens = usage.and_then(|usage| usage.get("completion_tokens")?.as_u64());
        Self {
            at: message.get("timestamp").and_then(seconds),
            tokens: tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        }
    }
}

/// Messages of a list, with what they carry beside.
pub(super) fn messages(all: Json, tally: &mut Tally) -> Result<(Vec<Message>, Vec<Beside>), Fault> {
    let Json::Array(all) = all else {
        return Err(Fault::broken("no_messages", "its messages are no list"));
    };
    if all.len() > MAX_MESSAGES {
        let says = format!("has {} messages, at most 20,000 are read", all.len());
        return Err(Fault::broken("too_many_messages", says));
    }
    let beside = all.iter().map(Beside::of).collect();
    let messages: Result<Vec<_>, _> = all.into_iter().map(|one| message(one, tally)).collect();
    Ok((messages?, beside))
}

/// A list of tools, of which only objects are kept.
pub(super) fn tools(all: Option<Json>, tally: &mut Tally) -> Vec<Json> {
    match all {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(all)) => {
            let before = all.len();
            let all: Vec<_> = all.into_iter().filter(Json::is_object).collect();
            if all.len() < before {
                tally.note("tool_unreadable");
            }
            all
        }
        Some(_) => {
            tally.note("tools_unreadable");
            Vec::new()
        }
    }
}

/// One session in which every message of the assistant answers all messages before it. Where messages carry times, an
/// answer's is when it was complete, and another's is when it was known, so that a request left with its last message.
pub(super) fn linear(
    id: String,
    tools: Vec<Json>,
    messages: Vec<Message>,
    beside: &[Beside],
) -> Result<Conversation, Fault> {
    let mut decisions = Vec::new();
    let mut answered = None;
    for (place, message) in messages.iter().enumerate() {
        if message.role != Role::Assistant {
            continue;
        }
        if place > 0 {
            decisions.push(decision(place, Some(place), answered, beside));
        }
        answered = Some(place);
    }
    if decisions.is_empty() {
        return Err(Fault::skipped(
            "no_decisions",
            "the assistant says nothing in it",
        ));
    }
    Ok(Conversation {
        id,
        licence: None,
        tools,
        messages,
        decisions,
    })
}

/// The decision whose prompt are the first `length` messages.
pub(super) fn decision(
    length: usize,
    answer: Option<usize>,
    answered: Option<usize>,
    beside: &[Beside],
) -> Decision {
    let time = |place: usize| beside.get(place)?.at;
    let asked = length.checked_sub(1).filter(|last| Some(*last) != answered);
    let think = answered.and_then(time).zip(asked.and_then(time));
    Decision {
        prompt: (0..length).collect(),
        answer,
        think: think.and_then(|(from, to)| between(from, to)),
        answer_tokens: answer.and_then(|place| beside.get(place)?.tokens),
    }
}

/// From one time to another; nothing where they are in the wrong order, or years apart.
pub(super) fn between(from: f64, to: f64) -> Option<Duration> {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    let seconds = to - from;
    (0.0..YEAR_S)
        .contains(&seconds)
        .then(|| Duration::from_nanos((seconds * 1e6).round() as u64 * 1_000))
}

/// Seconds since 1970, of ISO 8601 (as UTC where it names no offset) or of a number of seconds or milliseconds.
pub(super) fn seconds(value: &Json) -> Option<f64> {
    const MILLISECONDS_FROM: f64 = 1e11;
    if let Some(number) = value.as_f64() {
        let is_ms = number >= MILLISECONDS_FROM;
        return Some(if is_ms { number / 1e3 } else { number });
    }
    let text = value.as_str()?.trim();
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.naive_utc());
    let time = time.or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"));
    let time = time.or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"));
    Some(time.ok()?.and_utc().timestamp_micros() as f64 / 1e6)
}

#[cfg(test)]
mod tests;
