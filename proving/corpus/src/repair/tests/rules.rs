//! What a strict engine asks of a request, written without a look at how repair goes about it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::conversation::{Arguments, Content, Conversation, Message, Role};
use crate::json::Json;
use crate::repair::Media;

/// Everything that an engine would refuse.
pub(super) fn faults(session: &Conversation, media: Media, merged: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut say = |what: String| faults.push(what);
    tools(&session.tools, &mut say);
    for (k, decision) in session.decisions.iter().enumerate() {
        let places: BTreeSet<_> = decision.prompt.iter().collect();
        if places.len() != decision.prompt.len() {
            say(format!("{k}: a place stands twice"));
        }
        let prompt: Option<Vec<&Message>> = decision
            .prompt
            .iter()
            .map(|place| session.messages.get(*place))
            .collect();
        let Some(prompt) = prompt else {
            say(format!("{k}: no such message"));
            continue;
        };
        if prompt.is_empty() {
            say(format!("{k}: at least one message is required"));
        }
        let answer = decision.answer.map(|place| session.messages[place].role);
        if answer.is_some_and(|role| role != Role::Assistant) {
            say(format!("{k}: answered by {answer:?}"));
        }
        prompt
            .iter()
            .for_each(|message| alone(message, media, &mut say));
        in_order(&prompt, &mut say);
        if merged {
            for pair in prompt.windows(2) {
                if pair[0].role == pair[1].role && pair[0].role != Role::Tool {
                    say(format!("{k}: {:?} twice in a row", pair[0].role));
                }
            }
        }
    }
    faults
}

fn in_order(prompt: &[&Message], say: &mut dyn FnMut(String)) {
    let mut open: BTreeMap<&str, ()> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for message in prompt {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            if open.remove(id).is_none() {
                say(format!("{id:?} is answered, but not open"));
            }
            continue;
        }
        if !open.is_empty() {
            say(format!("{:?} before {open:?} are answered", message.role));
        }
        open.clear();
        for call in &message.tool_calls {
            let id = call.id.as_deref().unwrap_or_default();
            if id.is_empty() || !ids.insert(id) {
                say(format!("the id {id:?} is missing or taken"));
            }
            open.insert(id, ());
        }
    }
    if !open.is_empty() {
        say(format!("{open:?} are not answered"));
    }
}

fn alone(message: &Message, media: Media, say: &mut dyn FnMut(String)) {
    let calls = !message.tool_calls.is_empty();
    match message.role {
        Role::Function => say("Unknown role: function".to_owned()),
        Role::Assistant => {}
        role if calls => say(format!("{role:?} calls")),
        _ => {}
    }
    if message.function_call.is_some() {
        say("function_call".to_owned());
    }
    if (message.role == Role::Tool) != message.tool_call_id.is_some() {
        say(format!(
            "{:?} with tool_call_id {:?}",
            message.role, message.tool_call_id
        ));
    }
    match &message.content {
        None if message.role == Role::Assistant && calls => {}
        None => say(format!("{:?} without content", message.role)),
        Some(Content::Text(_)) => {}
        Some(Content::Parts(parts)) if parts.is_empty() => say("no parts".to_owned()),
        Some(Content::Parts(parts)) => parts.iter().for_each(|part| self::part(part, media, say)),
    }
    message.name.iter().for_each(|name| self::name(name, say));
    for call in &message.tool_calls {
        name(&call.function.name, say);
        let Arguments::Text(text) = &call.function.arguments else {
            say("arguments are no text".to_owned());
            continue;
        };
        if !serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()) {
            say(format!("arguments {text:?}"));
        }
    }
}

fn part(part: &Json, media: Media, say: &mut dyn FnMut(String)) {
    let kind = part.get("type").and_then(Json::as_str);
    let is_fine = match kind {
        Some("text") => part.get("text").and_then(Json::as_str).is_some(),
        Some(kind @ ("image_url" | "input_audio" | "file")) => {
            media == Media::Keep && part.get(kind).is_some()
        }
        _ => false,
    };
    if !is_fine {
        say(format!("part {part}"));
    }
}

fn name(name: &str, say: &mut dyn FnMut(String)) {
    let fits = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if name.is_empty() || name.len() > 64 || !fits {
        say(format!("name {name:?}"));
    }
}

fn tools(tools: &[Json], say: &mut dyn FnMut(String)) {
    let mut names = BTreeSet::new();
    for tool in tools {
        let function = tool.get("function");
        let called = function.and_then(|f| f.get("name")).and_then(Json::as_str);
        let called = called.unwrap_or_default();
        name(called, say);
        if !names.insert(called) {
            say(format!("tool {called:?} twice"));
        }
        let parameters = function.and_then(|f| f.get("parameters"));
        if tool.get("type").and_then(Json::as_str) != Some("function")
            || parameters.is_some_and(|p| !p.is_object())
        {
            say(format!("tool {tool}"));
        }
    }
}
