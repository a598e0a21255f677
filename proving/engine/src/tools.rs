//! Tools: which function a call forces, and arguments that satisfy its schema.
//!
//! Invariant: forced arguments are valid JSON with every required member of the declared type.
//! Not here: choosing a tool by itself (`auto` always answers with text), the bytes of a tool call.

use serde_json::{Map, Value, json};

use crate::error::Refusal;
use crate::text::Tally;

/// A function call that the answer must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// By its name, and not by `required`: vLLM then finishes with `stop`.
    pub(crate) named: bool,
}

/// Reads `tools` and `tool_choice` of the chat or the responses dialect, and counts them into `prompt`.
pub(crate) fn forced(
    tools: Option<&Vec<Value>>,
    choice: Option<&Value>,
    prompt: &mut Tally,
) -> Result<Option<Forced>, Refusal> {
    let tools = tools.map(Vec::as_slice).unwrap_or_default();
    for tool in tools {
        if function(tool).is_none()
            && tool
                .get("type")
                .and_then(Value::as_str)
                .is_none_or(|t| t == "function")
        {
            return Err(fault("a tool needs a type, and a function tool a name").about("tools"));
        }
        prompt.add(&tool.to_string());
    }
    match choice {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(mode)) => match mode.as_str() {
            "auto" | "none" => Ok(None),
            "required" => {
                let first = tools.iter().find_map(function);
                first
                    .map(|f| Some(call(f, false)))
                    .ok_or_else(|| fault("tool_choice is required but no tool is given"))
            }
            other => Err(fault(&format!("unknown tool_choice {other:?}"))),
        },
        Some(choice) => {
            let name = function(choice)
                .and_then(name)
                .ok_or_else(|| fault("tool_choice must name a function"))?;
            let found = tools
                .iter()
                .filter_map(function)
                .find(|f| self::name(f) == Some(name));
            found
                .map(|f| Some(call(f, true)))
                .ok_or_else(|| fault(&format!("tool_choice names {name:?}, not in tools")))
        }
    }
}

/// The function of a tool: nested in chat, flat in responses.
fn function(tool: &Value) -> Option<&Value> {
    let inner = tool.get("function").unwrap_or(tool);
    name(inner).map(|_| inner)
}

fn name(function: &Value) -> Option<&str> {
    function.get("name").and_then(Value::as_str)
}

fn call(function: &Value, named: bool) -> Forced {
    let arguments = function
        .get("parameters")
        .map_or_else(|| json!({}), |schema| placeholder(schema, 8));
    let arguments = if arguments.is_object() {
        arguments
    } else {
        json!({})
    };
    Forced {
        name: name(function).unwrap_or_default().to_owned(),
        arguments: arguments.to_string(),
        named,
    }
}

/// A value that satisfies the common part of JSON Schema; `depth` bounds recursion.
fn placeholder(schema: &Value, depth: usize) -> Value {
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
