//! The functions that a request offers.
//!
//! Invariant: each tool is `{"type":"function","function":{…}}` with a name that is offered once.
//! Not here: calls (`messages`).

use std::collections::HashSet;

use super::Repairs;
use super::messages::rename;
use crate::conversation::Conversation;
use crate::json::Json;

/// The function by which ToolBench's sessions end; some of its forms leave it out of their lists.
const FINISH: &str = "Finish";

/// Repairs the tools of a session whose messages are repaired.
pub(super) fn repair(session: &mut Conversation, repairs: &mut Repairs) {
    let mut names = HashSet::new();
    let mut kept = Vec::with_capacity(session.tools.len());
    for tool in session.tools.drain(..) {
        let Some((name, tool)) = self::tool(tool, repairs) else {
            repairs.count("tool_dropped");
            continue;
        };
        if names.insert(name) {
            kept.push(tool);
        } else {
            repairs.count("tool_twice_dropped");
        }
    }
    let mut calls = session.messages.iter().flat_map(|m| &m.tool_calls);
    let finishes = calls.any(|call| call.function.name == FINISH);
    if finishes && !kept.is_empty() && !names.contains(FINISH) {
        repairs.count("finish_tool_added");
        kept.push(finish());
    }
    session.tools = kept;
}

fn tool(mut tool: Json, repairs: &mut Repairs) -> Option<(String, Json)> {
    let kind = tool.take("type").filter(|kind| !kind.is_null());
    if kind
        .as_ref()
        .is_some_and(|k| k.as_str() != Some("function"))
    {
        return None;
    }
    let function = match tool.take("function") {
        Some(function) => {
            if kind.is_none() {
                repairs.count("tool_type_added");
            }
            function
        }
        None => {
            repairs.count("function_to_tool");
            tool
        }
    };
    let mut name = function.text("name")?.to_owned();
    rename(&mut name, repairs);
    let Json::Object(mut members) = function else {
        return None;
    };
    members.retain(|(member, value)| match member.as_str() {
        "name" => true,
        "description" => kept(value.as_str().is_some(), repairs),
        "parameters" => kept(value.is_object(), repairs),
        "strict" => kept(value.as_bool().is_some(), repairs),
        _ => kept(false, repairs),
    });
    for (member, value) in &mut members {
        match member.as_str() {
            "name" => *value = Json::from(name.as_str()),
            "parameters" => schema(value, repairs),
            _ => {}
        }
    }
    let tool = Json::object([
        ("type", Json::from("function")),
        ("function", Json::Object(members)),
    ]);
    Some((name, tool))
}

fn kept(keep: bool, repairs: &mut Repairs) -> bool {
    if !keep {
        repairs.count("tool_member_dropped");
    }
    keep
}

/// Drops what ToolBench writes into schemas beside JSON Schema. A property may have any of these names.
fn schema(value: &mut Json, repairs: &mut Repairs) {
    let Json::Object(members) = value else {
        return;
    };
    let before = members.len();
    members.retain(|(name, value)| match name.as_str() {
        "optional" => !matches!(value, Json::Array(_)),
        "example_value" => false,
        _ => true,
    });
    repairs.add("schema_member_dropped", (before - members.len()) as u64);
    for (name, value) in members {
        match (name.as_str(), value) {
            ("properties", Json::Object(properties)) => {
                properties
                    .iter_mut()
                    .for_each(|(_, one)| schema(one, repairs));
            }
            ("items", items) => schema(items, repairs),
            _ => {}
        }
    }
}

fn finish() -> Json {
    let text = |words: &str| Json::from(words);
    let kinds = vec![text("give_answer"), text("give_up_and_restart")];
    let return_type = Json::object([("type", text("string")), ("enum", Json::Array(kinds))]);
    let answer = Json::object([("type", text("string"))]);
    let properties = Json::object([("return_type", return_type), ("final_answer", answer)]);
    let parameters = Json::object([
        ("type", text("object")),
        ("properties", properties),
        ("required", Json::Array(vec![text("return_type")])),
    ]);
    let says = "Ends the task: with the final answer, or to give up and start again.";
    let function = Json::object([
        ("name", text(FINISH)),
        ("description", text(says)),
        ("parameters", parameters),
    ]);
    Json::object([("type", text("function")), ("function", function)])
}
