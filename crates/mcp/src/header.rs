//! Values of a body in headers: how they are written, and which arguments of a tool have one (`x-mcp-header`).
//!
//! Invariant: no value is written as it is that a reader of headers could read as another one.
//! Not here: which headers a request must have (`modern`).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What stands around a value in Base64.
const OPENS: &str = "=?base64?";
const CLOSES: &str = "?=";
/// What the names of headers of arguments begin with.
pub const PARAM: &str = "mcp-param-";
/// Most arguments of one tool that have a header.
const PARAMS_MAX: usize = 64;
/// How deep in a schema they are looked for.
const DEPTH_MAX: usize = 16;
/// The largest whole number that every reader of JSON has exactly.
const EXACT_MAX: i64 = (1 << 53) - 1;

/// A header that stands once, or should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header<'a> {
    /// It does not stand.
    None,
    /// It stands once, with this value.
    One(&'a [u8]),
    /// It stands on several lines.
    Many,
}

impl<'a> Header<'a> {
    /// By its lines.
    pub fn of(mut lines: impl Iterator<Item = &'a [u8]>) -> Self {
        match (lines.next(), lines.next()) {
            (None, _) => Self::None,
            (Some(value), None) => Self::One(value.trim_ascii()),
            (Some(_), Some(_)) => Self::Many,
        }
    }
}

/// A value as a header has it.
#[must_use]
pub fn encoded(value: &str) -> String {
    let is_plain = value
        .bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | 0x21..=0x7e));
    let is_trimmed = value.trim_matches([' ', '\t']).len() == value.len();
    let is_sentinel = value.starts_with(OPENS) && value.ends_with(CLOSES);
    if is_plain && is_trimmed && !is_sentinel && !value.is_empty() {
        return value.to_owned();
    }
    format!("{OPENS}{}{CLOSES}", STANDARD.encode(value))
}

/// What a header's value says; none where it is in Base64 that is none, or no text.
#[must_use]
pub fn decoded(value: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(value).ok()?;
    let within = text.strip_prefix(OPENS);
    let Some(within) = within.and_then(|text| text.strip_suffix(CLOSES)) else {
        return text.is_ascii().then_some(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(within).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The headers of a call's arguments, by its tool as the server lists it; none where that says no headers, or says them wrongly.
#[must_use]
pub fn params(tool: &[u8], arguments: &[u8]) -> Vec<(String, String)> {
    let Ok(tool) = serde_json::from_slice::<Value>(tool) else {
        return Vec::new();
    };
    let arguments = serde_json::from_slice::<Value>(arguments).unwrap_or_default();
    let Some(annotated) = annotated(&tool) else {
        return Vec::new();
    };
    let headers = annotated.into_iter().filter_map(|(name, path)| {
        let mut value = &arguments;
        for step in path {
            value = value.get(step)?;
        }
        let value = match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            Value::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Value::Number(number) => whole(number).map(|number| number.to_string().into())?,
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((
            format!("{PARAM}{}", name.to_ascii_lowercase()),
            encoded(&value),
        ))
    });
    headers.collect()
}

/// What is wrong with the headers of a call's arguments, which a server with sessions does not compare with the body: `sent` are those that the
/// client sent, by name in lower case, and `tool` is what the server lists.
#[must_use]
pub fn mismatch(tool: &[u8], arguments: &[u8], sent: &[(String, String)]) -> Option<String> {
    let wanted = params(tool, arguments);
    let value_of = |of: &[(String, String)], name: &str| {
        let found = of.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let tool = serde_json::from_slice::<Value>(tool).ok()?;
    let names = annotated(&tool)?.into_iter();
    let mut names = names.map(|(name, _)| format!("{PARAM}{}", name.to_ascii_lowercase()));
    names.find_map(|name| {
        let (wanted, sent) = (value_of(&wanted, &name), value_of(sent, &name));
        let read = |of: &Option<String>| {
            let of = of.as_deref().and_then(|of| decoded(of.as_bytes()));
            of.map(Cow::into_owned)
        };
        match (read(&wanted), read(&sent)) {
            (None, None) => None,
            (Some(wanted), Some(sent)) if is_same(&wanted, &sent) => None,
            (Some(_), None) => Some(format!("the header {name} is missing")),
            (None, Some(_)) => Some(format!("the header {name} is of no argument of the call")),
            (Some(_), Some(_)) => Some(format!("the header {name} is not what the body says")),
        }
    })
}

/// Whether a header says what an argument is; a number in any form.
fn is_same(wanted: &str, sent: &str) -> bool {
    let number = |of: &str| of.parse::<f64>().ok().filter(|of| of.is_finite());
    wanted == sent || number(wanted).is_some_and(|wanted| number(sent) == Some(wanted))
}

/// Whether a tool says its headers as it may: one that does not is shown to nobody for whom the gate would have to write them.
#[must_use]
pub fn is_well_annotated(tool: &[u8]) -> bool {
    serde_json::from_slice::<Value>(tool).is_ok_and(|tool| annotated(&tool).is_some())
}

fn whole(number: &serde_json::Number) -> Option<i64> {
    let number = match number.as_i64() {
        Some(number) => number,
        None => {
            let of = number.as_f64().filter(|of| of.fract() == 0.0)?;
            // Past the bound below each of these is refused.
            if of.abs() > EXACT_MAX as f64 {
                return None;
            }
            of as i64
        }
    };
    (number.abs() <= EXACT_MAX).then_some(number)
}

/// A header's name, and where its value stands in the arguments.
type Annotated<'t> = (&'t str, Vec<&'t str>);

/// All of a tool; none where one of them may not be.
fn annotated(tool: &Value) -> Option<Vec<Annotated<'_>>> {
    let mut found = Vec::new();
    if let Some(schema) = tool.get("inputSchema") {
        find(schema, &mut Vec::new(), true, &mut found)?;
    }
    let is_twice = |(nth, (name, _)): (usize, &Annotated<'_>)| {
        let mut before = found.iter().take(nth);
        before.any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    (found.len() <= PARAMS_MAX && !found.iter().enumerate().any(is_twice)).then_some(found)
}

/// Looks through a schema. `is_reachable`: it is come to by `properties` alone, which the place of a header has to be.
fn find<'t>(
    schema: &'t Value,
    path: &mut Vec<&'t str>,
    is_reachable: bool,
    found: &mut Vec<Annotated<'t>>,
) -> Option<()> {
    if path.len() > DEPTH_MAX {
        return Some(());
    }
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get("x-mcp-header") {
                let name = name.as_str().filter(|name| is_token(name))?;
                let kind = members.get("type").and_then(Value::as_str);
                let is_primitive = matches!(kind, Some("string" | "integer" | "boolean"));
                if !is_reachable || path.is_empty() || !is_primitive {
                    return None;
                }
                found.push((name, path.clone()));
            }
            for (member, within) in members {
                if let ("properties", Some(properties)) = (&**member, within.as_object()) {
                    for (name, schema) in properties {
                        path.push(name);
                        find(schema, path, is_reachable, found)?;
                        path.pop();
                    }
                } else if !matches!(&**member, "const" | "enum" | "default" | "examples") {
                    path.push(member);
                    find(within, path, false, found)?;
                    path.pop();
                }
            }
            Some(())
        }
        Value::Array(items) => {
            for item in items {
                find(item, path, false, found)?;
            }
            Some(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

/// Whether it can be the name of a header (RFC 9110, 5.1).
fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests;
