//! What each message holds by itself: content, names, calls with ids and arguments.
//!
//! Invariant: afterwards no message has `function_call`, every call has an id that no other call of its prompts
//! has (answers keep the old one until `prompts` has matched them), and content is there unless calls stand in its place.
//! Not here: which answer belongs to which call (`prompts`).

use std::collections::{HashMap, HashSet};

use super::{Media, Repairs};
use crate::conversation::{
    Arguments, Content, Conversation, FunctionCall, Message, Role, ToolCall,
};
use crate::digest::digest;
use crate::json::{Json, Oddities, parse};

/// The longest name of a function or participant.
const MAX_NAME_BYTES: usize = 64;

/// Repairs every message, but the ids of calls.
pub(super) fn repair(session: &mut Conversation, media: Media, repairs: &mut Repairs) {
    for message in &mut session.messages {
        stray_members(message, repairs);
        calls(message, repairs);
        if let Some(content) = message.content.take() {
            message.content = Some(self::content(content, media, repairs));
        }
        let may_be_null = message.role == Role::Assistant && !message.tool_calls.is_empty();
        if message.content.is_none() && !may_be_null {
            repairs.count("null_content");
            message.content = Some(Content::Text(String::new()));
        }
        message.name = message.name.take().filter(|name| !name.is_empty());
        if let Some(name) = &mut message.name {
            rename(name, repairs);
        }
    }
}

/// Ids for the calls of all messages: for each message those of its calls before, which answers may name.
pub(super) fn call_ids(
    session: &mut Conversation,
    repairs: &mut Repairs,
) -> Vec<Vec<Option<String>>> {
    let again = ids_again(session);
    let all = session.messages.iter().flat_map(|m| &m.tool_calls);
    let mut taken: HashSet<String> = all.filter_map(|call| call.id.clone()).collect();
    let short = digest(&session.id) >> 32;
    let mut turn = 0;
    let mut before = Vec::with_capacity(session.messages.len());
    for (place, message) in session.messages.iter_mut().enumerate() {
        let mut old = Vec::new();
        for (k, call) in message.tool_calls.iter_mut().enumerate() {
            old.push(call.id.clone().filter(|id| !id.is_empty()));
            match &old[k] {
                Some(_) if !again.contains(&(place, k)) => continue,
                Some(_) => repairs.count("call_id_twice"),
                None => repairs.count("call_id_added"),
            }
            let mut id = format!("call_{short:08x}_{turn}_{k}");
            while !taken.insert(id.clone()) {
                id.push('x');
            }
            call.id = Some(id);
        }
        if message.role == Role::Assistant {
            turn += 1;
        }
        before.push(old);
    }
    before
}

/// The calls, by message and place in it, whose ids an earlier call of the same prompt has. Equal ids in prompts that
/// have nothing to do with one another are no fault.
fn ids_again(session: &Conversation) -> HashSet<(usize, usize)> {
    let mut again = HashSet::new();
    for decision in &session.decisions {
        let mut seen = HashMap::new();
        for &place in &decision.prompt {
            let calls = session.messages.get(place).map(|m| m.tool_calls.as_slice());
            for (k, call) in calls.unwrap_or_default().iter().enumerate() {
                let first = *seen.entry(call.id.as_deref()).or_insert((place, k));
                if call.id.is_some() && first != (place, k) {
                    again.insert((place, k));
                }
            }
        }
    }
    again
}

/// Members that only other roles have.
fn stray_members(message: &mut Message, repairs: &mut Repairs) {
    let mut stray = 0;
    if message.role != Role::Assistant {
        stray += u64::from(message.function_call.take().is_some());
        stray += u64::from(message.reasoning.take().is_some());
        stray += message.tool_calls.drain(..).count() as u64;
    }
    if !matches!(message.role, Role::Tool | Role::Function) {
        stray += u64::from(message.tool_call_id.take().is_some());
    }
    repairs.add("stray_member_dropped", stray);
}

fn calls(message: &mut Message, repairs: &mut Repairs) {
    if let Some(function) = message.function_call.take() {
        // Some clients wrote both forms of one call.
        if message
            .tool_calls
            .iter()
            .any(|call| call.function == function)
        {
            repairs.count("function_call_beside_tool_call_dropped");
        } else {
            repairs.count("function_call_to_tool_call");
            message.tool_calls.push(ToolCall { id: None, function });
        }
    }
    for call in &mut message.tool_calls {
        let FunctionCall { name, arguments } = &mut call.function;
        rename(name, repairs);
        let read = std::mem::take(arguments);
        *arguments = Arguments::Text(self::arguments(read, repairs));
    }
}

/// Arguments as the text of a JSON object.
fn arguments(arguments: Arguments, repairs: &mut Repairs) -> String {
    let wrapped = |name: &str, value: Json| Json::object([(name, value)]).to_string();
    let text = match arguments {
        Arguments::Object(object @ Json::Object(_)) => {
            repairs.count("arguments_object_to_text");
            return object.to_string();
        }
        Arguments::Object(value) => {
            repairs.count("arguments_wrapped");
            return wrapped("value", value);
        }
        Arguments::Text(text) => text,
    };
    if text.trim().is_empty() {
        repairs.count("arguments_empty");
        return "{}".to_owned();
    }
    let mut oddities = Oddities::default();
    match parse(text.as_bytes(), &mut oddities) {
        Ok(Json::Object(_)) if oddities == Oddities::default() => text,
        Ok(object @ Json::Object(_)) => {
            repairs.count("arguments_rewritten");
            object.to_string()
        }
        Ok(Json::String(inner)) if is_object(&inner) => {
            repairs.count("arguments_unwrapped");
            self::arguments(Arguments::Text(inner), repairs)
        }
        _ => {
            repairs.count("arguments_wrapped");
            wrapped("input", Json::String(text))
        }
    }
}

fn is_object(text: &str) -> bool {
    parse(text.as_bytes(), &mut Oddities::default()).is_ok_and(|value| value.is_object())
}

fn content(content: Content, media: Media, repairs: &mut Repairs) -> Content {
    let Content::Parts(parts) = content else {
        return content;
    };
    let kept: Vec<Json> = parts
        .into_iter()
        .filter_map(|part| self::part(part, media, repairs))
        .collect();
    if kept.is_empty() {
        repairs.count("empty_parts_to_text");
        return Content::Text(String::new());
    }
    Content::Parts(kept)
}

fn part(part: Json, media: Media, repairs: &mut Repairs) -> Option<Json> {
    let kind = part.text("type").unwrap_or_default();
    match kind {
        "text" if part.text("text").is_some() => Some(part),
        "input_text" | "output_text" if part.text("text").is_some() => {
            repairs.count("part_type_changed");
            let text = Json::from(part.text("text")?);
            Some(Json::object([("type", Json::from("text")), ("text", text)]))
        }
        "image_url" | "input_audio" | "file" if part.present(kind).is_some() => match media {
            Media::Keep => Some(part),
            Media::Drop => {
                repairs.count("media_dropped");
                None
            }
        },
        _ => {
            repairs.count("part_dropped");
            None
        }
    }
}

/// Makes a name one that the API takes. The same name always becomes the same, so that calls find their tools.
pub(super) fn rename(name: &mut String, repairs: &mut Repairs) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(allowed) {
        return;
    }
    repairs.count("name_changed");
    let kept = name.chars().map(|c| if allowed(c) { c } else { '_' });
    let kept: String = kept.take(MAX_NAME_BYTES - 9).collect();
    *name = format!("{kept}_{:08x}", digest(name) >> 32);
}
