//! Tools: which function a call forces, and arguments that satisfy its schema.
//!
//! Invariant: forced arguments are valid JSON with every required member of the declared type.
//! Not here: choosing a tool by itself (`auto` always answers with text), the bytes of a tool call.

use serde_json::{Map, Value, json};

use crate::error::Refusal;
use crate::json::Json;
use crate::render::Tool;

/// A function call that the answer must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// By its name, and not by `required`: vLLM then finishes with `stop`.
    pub(crate) named: bool,
}

/// Tools of the chat or the responses dialect, as a prompt shows them.
pub(crate) fn offered(tools: Option<&[Json]>) -> Result<Vec<Tool>, Refusal> {
    let mut offered = Vec::new();
    for tool in tools.unwrap_or_default() {
        let kind = tool.get("type").and_then(Json::as_str);
        match function(tool) {
            Some(inner) if kind.is_none_or(|k| k == "function") => offered.push(Tool {
                name: name(inner).unwrap_or_default().to_owned(),
                description: inner
                    .get("description")
                    .and_then(Json::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                parameters: inner
                    .get("parameters")
                    .filter(|p| **p != Json::Null)
                    .cloned(),
                whole: tool.clone(),
            }),
            _ if kind.is_none_or(|k| k == "function") => {
                return Err(fault("a tool needs a type, and a function tool a name").about("tools"));
            }
            // Built-in tools (web search and the like) are not simulated and show the model nothing.
            _ => {}
        }
    }
    Ok(offered)
}

/// The call that `tool_choice` forces.
pub(crate) fn forced(tools: &[Tool], choice: Option<&Json>) -> Result<Option<Forced>, Refusal> {
    match choice {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(mode)) => match mode.as_str() {
            "auto" | "none" => Ok(None),
            "required" => tools
                .first()
                .map(|tool| Some(call(tool, false)))
                .ok_or_else(|| fault("tool_choice is required but no tool is given")),
            other => Err(fault(&format!("unknown tool_choice {other:?}"))),
        },
        Some(choice) => {
            let name = function(choice)
                .and_then(name)
                .ok_or_else(|| fault("tool_choice must name a function"))?;
            let found = tools.iter().find(|tool| tool.name == name);
            found
                .map(|tool| Some(call(tool, true)))
                .ok_or_else(|| fault(&format!("tool_choice names {name:?}, not in tools")))
        }
    }
}

/// The function of a tool: nested in chat, flat in responses.
fn function(tool: &Json) -> Option<&Json> {
    let inner = tool.get("function").unwrap_or(tool);
    name(inner).map(|_| inner)
}

fn name(function: &Json) -> Option<&str> {
    function.get("name").and_then(Json::as_str)
}

fn call(tool: &Tool, named: bool) -> Forced {
    let schema = tool.parameters.as_ref().map(Json::to_value);
    let arguments = schema.map_or_else(|| json!({}), |schema| placeholder(&schema, 8));
    let arguments = if arguments.is_object() {
        arguments
    } else {
        json!({})
    };
    Forced {
        name: tool.name.clone(),
        arguments: arguments.to_string(),
        named,
    }
}

/// A value that satisfies the common part of JSON Schema; `depth` bounds recursion.
pub(crate) fn placeholder(schema: &Value, depth: usize) -> Value {
    if let Some(first) = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|all| all.first())
    {
        return first.clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    match kind(schema) {
        "object" => object(schema, depth),
        "array" => {
            let least = schema
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(16);
            let item = schema.get("items").filter(|_| depth > 0);
            Value::Array(
                (0..least)
                    .map(|_| item.map_or(json!("string"), |i| placeholder(i, depth - 1)))
                    .collect(),
            )
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => json!("string"),
    }
}

fn kind(schema: &Value) -> &str {
    let declared = match schema.get("type") {
        Some(Value::Array(several)) => several.first().and_then(Value::as_str),
        Some(one) => one.as_str(),
        None => None,
    };
    declared.unwrap_or(if schema.get("properties").is_some() {
        "object"
    } else {
        "string"
    })
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut members = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for member in required.into_iter().flatten().filter_map(Value::as_str) {
        let inner = schema
            .get("properties")
            .and_then(|p| p.get(member))
            .filter(|_| depth > 0);
        members.insert(
            member.to_owned(),
            inner.map_or(json!("string"), |s| placeholder(s, depth - 1)),
        );
    }
    Value::Object(members)
}

fn fault(why: &str) -> Refusal {
    Refusal::bad_request(why).about("tool_choice")
}

#[cfg(test)]
mod tests;
