//! Tool schemas as Harmony shows them to the model: TypeScript types with comments.
//!
//! Follows openai-harmony 0.0.8, its oddities included (a variant's comment comes after it, a property's before it;
//! `integer` is `number`; what it does not know is `any`).
//! Invariant: every byte is written once, into a [`Section`], whose length is bounded: each level of a schema indents
//! all that lies deeper, so that a few bytes deep in a schema become hundreds. Depth is bounded by the JSON parser's own
//! limit.
//! Not here: where the section stands (`turns`).

use std::fmt::{self, Write};

use super::section::Section;
use crate::conversation::{Schema, Tool};
use crate::tree::Tree;

/// Spaces before what belongs to a property, and before what belongs to a variant.
const PROPERTY: usize = 4;
const VARIANT: usize = 3;

/// Writes the `# Tools` section of a developer message.
pub(super) fn tools_section(tools: &[Tool<'_>], out: &mut Section) -> fmt::Result {
    out.write_str("# Tools\n\n## functions\n\nnamespace functions {\n\n")?;
    for tool in tools {
        for line in tool.description.unwrap_or_default().lines() {
            writeln!(out, "// {line}")?;
        }
        write!(out, "type {} = (", tool.name)?;
        if let Some(schema) = tool.parameters.as_ref().map(Schema::tree) {
            out.write_str("_: ")?;
            type_of(schema, 0, out)?;
        }
        out.write_str(") => any;\n\n")?;
    }
    out.write_str("} // namespace functions")
}

fn type_of(schema: &Tree<'_>, indent: usize, out: &mut Section) -> fmt::Result {
    if let Some(variants) = schema.get("oneOf").and_then(Tree::list) {
        return variants
            .iter()
            .try_for_each(|variant| union_member(variant, indent, out));
    }
    if let Some(names) = schema.get("type").and_then(Tree::list) {
        let mut names = names.iter().filter_map(Tree::text).map(plain_name);
        if let Some(first) = names.next() {
            out.write_str(first)?;
            return names.try_for_each(|name| write!(out, " | {name}"));
        }
    }
    match schema.get_text("type") {
        Some("object") => object(schema, indent, out),
        Some("string") => strings(schema, out),
        Some("number" | "integer") => out.write_str("number"),
        Some("boolean") => out.write_str("boolean"),
        Some("array") => match schema.member("items") {
            Some(items) => {
                type_of(items, indent, out)?;
                out.write_str("[]")
            }
            None => out.write_str("Array<any>"),
        },
        _ => out.write_str("any"),
    }
}

fn plain_name(name: &str) -> &str {
    if name == "integer" { "number" } else { name }
}

fn strings(schema: &Tree<'_>, out: &mut Section) -> fmt::Result {
    let values = schema.get("enum").and_then(Tree::list).unwrap_or_default();
    let mut values = values.iter().filter_map(Tree::text);
    let Some(first) = values.next() else {
        return out.write_str("string");
    };
    write!(out, "\"{first}\"")?;
    values.try_for_each(|value| write!(out, " | \"{value}\""))
}

/// One line of a union that stands on its own.
fn union_member(variant: &Tree<'_>, indent: usize, out: &mut Section) -> fmt::Result {
    out.write_str("\n")?;
    out.indent(indent)?;
    out.write_str(" | ")?;
    nullable(variant, indent + VARIANT, out)?;
    let default = variant.member("default").map(|value| match value {
        Tree::Text(text) if !is_enum(variant) => Default::Quoted(text),
        value => Default::Json(value),
    });
    comments(variant.get_text("description"), default, out)
}

/// What comes behind a variant.
fn comments(about: Option<&str>, default: Option<Default<'_>>, out: &mut Section) -> fmt::Result {
    match (about, default) {
        (None, None) => Ok(()),
        (Some(about), None) => write!(out, " // {about}"),
        (None, Some(default)) => write!(out, " // {default}"),
        (Some(about), Some(default)) => write!(out, " // {about} {default}"),
    }
}

fn object(schema: &Tree<'_>, indent: usize, out: &mut Section) -> fmt::Result {
    if let Some(text) = schema.get_text("description") {
        out.comment(indent, text)?;
    }
    out.write_str("{\n")?;
    let required = schema
        .get("required")
        .and_then(Tree::list)
        .unwrap_or_default();
    let required: std::collections::HashSet<_> = required.iter().filter_map(Tree::text).collect();
    if let Some(Tree::Map(properties)) = schema.get("properties") {
        for (name, property) in properties {
            let mark = if required.contains(&**name) { "" } else { "?" };
            comments_above(property, indent, out)?;
            match property.get("oneOf").and_then(Tree::list) {
                Some(variants) => union(name, mark, property, variants, indent, out)?,
                None => member(name, mark, property, indent, out)?,
            }
        }
    }
    out.indent(indent)?;
    out.write_str("}")
}

/// The comments above any property.
fn comments_above(property: &Tree<'_>, indent: usize, out: &mut Section) -> fmt::Result {
    if let Some(text) = property.get_text("title") {
        out.comment(indent, text)?;
        out.indent(indent)?;
        out.write_str("//\n")?;
    }
    if property.member("oneOf").is_none()
        && let Some(text) = property.get_text("description")
    {
        out.comment(indent, text)?;
    }
    let examples = property
        .get("examples")
        .and_then(Tree::list)
        .unwrap_or_default();
    if !examples.is_empty() {
        out.comment(indent, "Examples:")?;
    }
    for text in examples.iter().filter_map(Tree::text) {
        out.indent(indent)?;
        writeln!(out, "// - \"{text}\"")?;
    }
    Ok(())
}

/// A property that is no union.
fn member(
    name: &str,
    mark: &str,
    property: &Tree<'_>,
    indent: usize,
    out: &mut Section,
) -> fmt::Result {
    out.indent(indent)?;
    write!(out, "{name}{mark}: ")?;
    nullable(property, indent + PROPERTY, out)?;
    out.write_str(",")?;
    if property.member("oneOf").is_none()
        && let Some(default) = default_of(property)
    {
        write!(out, " // {default}")?;
    }
    out.write_str("\n")
}

/// A property that is a union: a line for each variant, and the comma on a line of its own.
fn union(
    name: &str,
    mark: &str,
    property: &Tree<'_>,
    variants: &[Tree<'_>],
    indent: usize,
    out: &mut Section,
) -> fmt::Result {
    let about = property.get_text("description");
    let of_first = variants
        .first()
        .and_then(|variant| variant.get_text("description"));
    let is_above = about.is_some() && about != of_first;
    if let Some(text) = about.filter(|_| is_above) {
        out.comment(indent, text)?;
    }
    if let Some(default) = default_of(property) {
        out.indent(indent)?;
        writeln!(out, "// {default}")?;
    }
    out.indent(indent)?;
    writeln!(out, "{name}{mark}:")?;
    for (at, variant) in variants.iter().enumerate() {
        out.indent(indent)?;
        out.write_str(" | ")?;
        nullable(variant, indent + VARIANT, out)?;
        let text = variant.get_text("description");
        let text = text.filter(|_| text != about && !(at == 0 && is_above));
        comments(text, default_of(variant), out)?;
        out.write_str("\n")?;
    }
    out.indent(indent)?;
    out.write_str(",\n")
}

fn nullable(schema: &Tree<'_>, indent: usize, out: &mut Section) -> fmt::Result {
    let from = out.len();
    type_of(schema, indent, out)?;
    if schema.get("nullable").is_some_and(Tree::is_true) && !out.says_null(from) {
        return out.write_str(" | null");
    }
    Ok(())
}

/// A default value as a comment shows it.
enum Default<'a> {
    Plain(&'a str),
    Quoted(&'a str),
    Json(&'a Tree<'a>),
}

impl fmt::Display for Default<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => write!(f, "default: {text}"),
            Self::Quoted(text) => write!(f, "default: \"{text}\""),
            Self::Json(value) => write!(f, "default: {value}"),
        }
    }
}

/// Text is quoted, unless it names one of an enum's values.
fn default_of<'t>(schema: &'t Tree<'t>) -> Option<Default<'t>> {
    Some(match schema.member("default")? {
        Tree::Text(text) if is_enum(schema) => Default::Plain(text),
        Tree::Text(text) => Default::Quoted(text),
        other => Default::Json(other),
    })
}

fn is_enum(schema: &Tree<'_>) -> bool {
    schema
        .get("enum")
        .and_then(Tree::list)
        .is_some_and(|values| !values.is_empty())
}
