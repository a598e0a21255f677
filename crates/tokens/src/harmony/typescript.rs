//! Tool schemas as Harmony shows them to the model: TypeScript types with comments.
//!
//! Follows openai-harmony 0.0.8, its oddities included (a variant's comment comes after it, a property's before it;
//! `integer` is `number`; what it does not know is `any`).
//! Invariant: depth is bounded by the JSON parser's own limit.
//! Not here: where the section stands (`turns`).

use crate::conversation::Tool;
use crate::tree::Tree;

/// The `# Tools` section of a developer message.
pub(super) fn tools_section(tools: &[Tool]) -> String {
    let mut out = String::from("# Tools\n\n## functions\n\nnamespace functions {\n\n");
    for tool in tools {
        for line in tool.description.as_deref().unwrap_or_default().lines() {
            out.push_str(&format!("// {line}\n"));
        }
        let argument = tool
            .parameters
            .as_ref()
            .map_or_else(String::new, |schema| format!("_: {}", type_of(schema, "")));
        out.push_str(&format!("type {} = ({argument}) => any;\n\n", tool.name));
    }
    out.push_str("} // namespace functions");
    out
}

fn type_of(schema: &Tree, indent: &str) -> String {
    if let Some(variants) = schema.get("oneOf").and_then(Tree::list) {
        return variants
            .iter()
            .map(|variant| union_member(variant, indent))
            .collect();
    }
    if let Some(names) = schema.get("type").and_then(Tree::list) {
        let names: Vec<_> = names
            .iter()
            .filter_map(Tree::text)
            .map(plain_name)
            .collect();
        if !names.is_empty() {
            return names.join(" | ");
        }
    }
    match schema.get_text("type") {
        Some("object") => object(schema, indent),
        Some("string") => strings(schema),
        Some("number" | "integer") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("array") => schema.member("items").map_or_else(
            || "Array<any>".to_owned(),
            |items| format!("{}[]", type_of(items, indent)),
        ),
        _ => "any".to_owned(),
    }
}

fn plain_name(name: &str) -> &str {
    if name == "integer" { "number" } else { name }
}

fn strings(schema: &Tree) -> String {
    let values = schema.get("enum").and_then(Tree::list).unwrap_or_default();
    let values: Vec<_> = values
        .iter()
        .filter_map(Tree::text)
        .map(|value| format!("\"{value}\""))
        .collect();
    if values.is_empty() {
        "string".to_owned()
    } else {
        values.join(" | ")
    }
}

/// One line of a union that stands on its own.
fn union_member(variant: &Tree, indent: &str) -> String {
    let mut out = format!(
        "\n{indent} | {}",
        nullable(variant, &format!("{indent}   "))
    );
    let mut comments = Vec::new();
    comments.extend(variant.get_text("description").map(str::to_owned));
    comments.extend(variant.member("default").map(|value| match value {
        Tree::Text(text) if !is_enum(variant) => format!("default: \"{text}\""),
        _ => format!("default: {value}"),
    }));
    if !comments.is_empty() {
        out.push_str(&format!(" // {}", comments.join(" ")));
    }
    out
}

fn object(schema: &Tree, indent: &str) -> String {
    let mut out = String::new();
    if let Some(text) = schema.get_text("description") {
        out.push_str(&format!("{indent}// {text}\n"));
    }
    out.push_str("{\n");
    let required = schema
        .get("required")
        .and_then(Tree::list)
        .unwrap_or_default();
    let required: std::collections::HashSet<_> = required.iter().filter_map(Tree::text).collect();
    if let Some(Tree::Map(properties)) = schema.get("properties") {
        for (name, property) in properties {
            let mark = if required.contains(name.as_str()) {
                ""
            } else {
                "?"
            };
            push_comments(property, indent, &mut out);
            match property.get("oneOf").and_then(Tree::list) {
                Some(variants) => {
                    push_union(name, mark, property, variants, indent, &mut out);
                }
                None => push_property(name, mark, property, indent, &mut out),
            }
        }
    }
    out.push_str(&format!("{indent}}}"));
    out
}

/// The comments above any property.
fn push_comments(property: &Tree, indent: &str, out: &mut String) {
    if let Some(text) = property.get_text("title") {
        out.push_str(&format!("{indent}// {text}\n{indent}//\n"));
    }
    if property.member("oneOf").is_none()
        && let Some(text) = property.get_text("description")
    {
        out.push_str(&format!("{indent}// {text}\n"));
    }
    let examples = property
        .get("examples")
        .and_then(Tree::list)
        .unwrap_or_default();
    if !examples.is_empty() {
        out.push_str(&format!("{indent}// Examples:\n"));
    }
    for text in examples.iter().filter_map(Tree::text) {
        out.push_str(&format!("{indent}// - \"{text}\"\n"));
    }
}

fn push_property(name: &str, mark: &str, property: &Tree, indent: &str, out: &mut String) {
    let shown = nullable(property, &format!("{indent}    "));
    out.push_str(&format!("{indent}{name}{mark}: {shown},"));
    if property.member("oneOf").is_none()
        && let Some(default) = default_of(property)
    {
        out.push_str(&format!(" // {default}"));
    }
    out.push('\n');
}

/// A property that is a union: a line for each variant, and the comma on a line of its own.
fn push_union(
    name: &str,
    mark: &str,
    property: &Tree,
    variants: &[Tree],
    indent: &str,
    out: &mut String,
) {
    let about = property.get_text("description");
    let of_first = variants
        .first()
        .and_then(|variant| variant.get_text("description"));
    let is_above = about.is_some() && about != of_first;
    if let Some(text) = about.filter(|_| is_above) {
        out.push_str(&format!("{indent}// {text}\n"));
    }
    if let Some(default) = default_of(property) {
        out.push_str(&format!("{indent}// {default}\n"));
    }
    out.push_str(&format!("{indent}{name}{mark}:\n"));
    for (at, variant) in variants.iter().enumerate() {
        let shown = nullable(variant, &format!("{indent}   "));
        out.push_str(&format!("{indent} | {shown}"));
        let text = variant.get_text("description");
        let text = text.filter(|_| text != about && !(at == 0 && is_above));
        let comments: Vec<_> = text
            .map(str::to_owned)
            .into_iter()
            .chain(default_of(variant))
            .collect();
        if !comments.is_empty() {
            out.push_str(&format!(" // {}", comments.join(" ")));
        }
        out.push('\n');
    }
    out.push_str(&format!("{indent},\n"));
}

fn nullable(schema: &Tree, indent: &str) -> String {
    let shown = type_of(schema, indent);
    if schema.get("nullable").is_some_and(Tree::is_true) && !shown.contains("null") {
        return format!("{shown} | null");
    }
    shown
}

/// Text is quoted, unless it names one of an enum's values.
fn default_of(schema: &Tree) -> Option<String> {
    Some(match schema.member("default")? {
        Tree::Text(text) if is_enum(schema) => format!("default: {text}"),
        Tree::Text(text) => format!("default: \"{text}\""),
        other => format!("default: {other}"),
    })
}

fn is_enum(schema: &Tree) -> bool {
    schema
        .get("enum")
        .and_then(Tree::list)
        .is_some_and(|values| !values.is_empty())
}
