//! A function's JSON schema as the TypeScript that Harmony shows the model.
//!
//! Invariant: the same characters as openai-harmony 0.0.8 writes, its spacing included: members are not indented
//! at the top, by four spaces a level below it, and by three inside a `oneOf`.
//! Not here: `anyOf`, `$ref` and the rest of JSON Schema, which become `any` there too.

use super::Tool;
use crate::json::Json;

/// `type name = (_: {...}) => any;` with the description above it, and an empty line's start after it.
pub(super) fn function_type(tool: &Tool) -> String {
    let comments: String = tool
        .description
        .lines()
        .map(|line| format!("// {line}\n"))
        .collect();
    let argument = tool
        .parameters
        .as_ref()
        .map(|p| format!("_: {}", type_of(p, "")))
        .unwrap_or_default();
    format!("{comments}type {} = ({argument}) => any;\n", tool.name)
}

fn type_of(schema: &Json, indent: &str) -> String {
    if let Some(variants) = schema.get("oneOf").and_then(Json::as_array) {
        return variants
            .iter()
            .map(|v| {
                format!(
                    "\n{indent} | {}",
                    variant(v, indent, said_by(v, "description"))
                )
            })
            .collect();
    }
    match schema.get("type") {
        Some(Json::Array(several)) => {
            let names: Vec<&str> = several
                .iter()
                .filter_map(Json::as_str)
                .map(number_if_integer)
                .collect();
            if names.is_empty() {
                "any".to_owned()
            } else {
                names.join(" | ")
            }
        }
        Some(Json::String(one)) => match one.as_str() {
            "object" => object(schema, indent),
            "string" => strings(schema),
            "number" | "integer" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "array" => schema.get("items").map_or_else(
                || "Array<any>".to_owned(),
                |items| format!("{}[]", type_of(items, indent)),
            ),
            _ => "any".to_owned(),
        },
        _ => "any".to_owned(),
    }
}

fn number_if_integer(name: &str) -> &str {
    if name == "integer" { "number" } else { name }
}

fn strings(schema: &Json) -> String {
    let all = schema
        .get("enum")
        .and_then(Json::as_array)
        .unwrap_or_default();
    let quoted: Vec<String> = all
        .iter()
        .filter_map(Json::as_str)
        .map(|s| format!("\"{s}\""))
        .collect();
    if quoted.is_empty() {
        "string".to_owned()
    } else {
        quoted.join(" | ")
    }
}

fn object(schema: &Json, indent: &str) -> String {
    let mut out = comment(schema, "description", indent);
    out.push_str("{\n");
    let required = schema
        .get("required")
        .and_then(Json::as_array)
        .unwrap_or_default();
    for (name, value) in schema
        .get("properties")
        .and_then(Json::as_object)
        .unwrap_or_default()
    {
        let optional = if required.iter().any(|r| r.as_str() == Some(name)) {
            ""
        } else {
            "?"
        };
        if let Some(title) = said_by(value, "title") {
            out.push_str(&format!("{indent}// {title}\n{indent}//\n"));
        }
        match value.get("oneOf").and_then(Json::as_array) {
            Some(variants) => {
                out.push_str(&examples(value, indent));
                out.push_str(&choice(
                    value,
                    variants,
                    &format!("{name}{optional}"),
                    indent,
                ));
            }
            None => {
                if value.get("oneOf").is_none() {
                    out.push_str(&comment(value, "description", indent));
                }
                out.push_str(&examples(value, indent));
                out.push_str(&member(value, &format!("{name}{optional}"), indent));
            }
        }
    }
    out.push_str(indent);
    out.push('}');
    out
}

fn member(value: &Json, name: &str, indent: &str) -> String {
    let kind = or_null(value, type_of(value, &format!("{indent}    ")));
    let default = value
        .get("default")
        .filter(|_| value.get("oneOf").is_none());
    let default = default
        .map(|d| format!(" // default: {}", default_text(value, d)))
        .unwrap_or_default();
    format!("{indent}{name}: {kind},{default}\n")
}

/// A member that is one of several types, each on its own line.
fn choice(value: &Json, variants: &[Json], name: &str, indent: &str) -> String {
    let described = said_by(value, "description");
    let first = variants.first().and_then(|v| said_by(v, "description"));
    let above = described.filter(|d| Some(*d) != first);
    let mut out = above
        .map(|d| format!("{indent}// {d}\n"))
        .unwrap_or_default();
    if let Some(default) = value.get("default") {
        out.push_str(&format!(
            "{indent}// default: {}\n",
            default_text(value, default)
        ));
    }
    out.push_str(&format!("{indent}{name}:\n"));
    for (i, one) in variants.iter().enumerate() {
        let silent = i == 0 && above.is_some();
        let note = said_by(one, "description").filter(|d| !silent && Some(*d) != described);
        let kind = or_null(one, type_of(one, &format!("{indent}   ")));
        let default = one
            .get("default")
            .map(|d| format!("default: {}", default_text(one, d)));
        out.push_str(&format!("{indent} | {kind}{}\n", trailing(note, default)));
    }
    out.push_str(&format!("{indent},\n"));
    out
}

/// One of several types where no member names them.
fn variant(one: &Json, indent: &str, note: Option<&str>) -> String {
    let kind = or_null(one, type_of(one, &format!("{indent}   ")));
    let default = one
        .get("default")
        .map(|d| match d.as_str().filter(|_| !has_choices(one)) {
            Some(text) => format!("default: \"{text}\""),
            None => format!("default: {d}"),
        });
    format!("{kind}{}", trailing(note, default))
}

fn trailing(note: Option<&str>, default: Option<String>) -> String {
    let all: Vec<&str> = note.into_iter().chain(default.as_deref()).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!(" // {}", all.join(" "))
    }
}

fn or_null(schema: &Json, kind: String) -> String {
    let nullable = schema.get("nullable").is_some_and(Json::is_true) && !kind.contains("null");
    if nullable {
        format!("{kind} | null")
    } else {
        kind
    }
}

/// A default in quotes, unless it is one of an enumeration or no text at all.
fn default_text(schema: &Json, default: &Json) -> String {
    match default.as_str() {
        Some(text) if has_choices(schema) => text.to_owned(),
        Some(text) => format!("\"{text}\""),
        None => default.to_string(),
    }
}

fn has_choices(schema: &Json) -> bool {
    schema
        .get("enum")
        .and_then(Json::as_array)
        .is_some_and(|all| !all.is_empty())
}

fn said_by<'a>(schema: &'a Json, member: &str) -> Option<&'a str> {
    schema.get(member).and_then(Json::as_str)
}

fn comment(schema: &Json, member: &str, indent: &str) -> String {
    said_by(schema, member)
        .map(|text| format!("{indent}// {text}\n"))
        .unwrap_or_default()
}

fn examples(schema: &Json, indent: &str) -> String {
    let all = schema
        .get("examples")
        .and_then(Json::as_array)
        .unwrap_or_default();
    if all.is_empty() {
        return String::new();
    }
    let lines = all
        .iter()
        .filter_map(Json::as_str)
        .map(|e| format!("{indent}// - \"{e}\"\n"));
    format!("{indent}// Examples:\n{}", lines.collect::<String>())
}
