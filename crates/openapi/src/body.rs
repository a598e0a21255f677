//! Bodies of operations: JSON as it came, forms, and plain text.
//!
//! Not here: bodies in several parts and of bytes, which no argument can say; operations with them are left out.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::arguments::{Members, Written};
use crate::encode::{Manner, Style, encoded, in_query};
use crate::parameter::is_json;
use crate::reference::object;
use crate::schema::Schemas;

/// The argument that a body is.
pub(crate) const ARGUMENT: &str = "body";

const FORM: &str = "application/x-www-form-urlencoded";

/// A body.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// What kind its request says.
    kind: String,
    written: As,
    pub(crate) is_required: bool,
    pub(crate) schema: Value,
}

#[derive(Debug, Clone)]
enum As {
    Json,
    /// With the manner of each member that has one of its own.
    Form(Vec<(String, Manner)>),
    Text,
}

/// The body of an operation, where it has one.
///
/// # Errors
/// It has one that no argument can say.
pub(crate) fn of<'d>(
    root: &'d Map<String, Value>,
    schemas: &Schemas<'d>,
    operation: &'d Map<String, Value>,
) -> Result<Option<Body>, String> {
    let Some(written) = operation.get("requestBody") else {
        return Ok(None);
    };
    let written = object(root, written)?;
    let Some(Value::Object(content)) = written.get("content") else {
        return Err("its body has no `content`".into());
    };
    let find = |is_it: &dyn Fn(&str) -> bool| content.iter().find(|(kind, _)| is_it(kind));
    let base = |kind: &str| {
        let base = kind.split(';').next().unwrap_or_default().trim();
        base.to_ascii_lowercase()
    };
    let found = find(&|kind| base(kind) == "application/json")
        .or_else(|| find(&|kind| is_json(kind)))
        .or_else(|| find(&|kind| base(kind) == FORM))
        .or_else(|| find(&|kind| base(kind) == "text/plain"));
    // Whoever takes anything takes JSON.
    let found =
        found.or_else(|| find(&|kind| base(kind) == "*/*" || base(kind) == "application/*"));
    let Some((kind, of)) = found else {
        let kinds: Vec<&str> = content.keys().map(String::as_str).take(4).collect();
        return Err(format!(
            "its body is {}, and an argument can be JSON, a form or plain text",
            kinds.join(", ")
        ));
    };
    let (written_as, kind) = match base(kind).as_str() {
        FORM => (As::Form(manners(of)), FORM.to_owned()),
        "text/plain" => (As::Text, "text/plain; charset=utf-8".to_owned()),
        "*/*" | "application/*" => (As::Json, "application/json".to_owned()),
        _ => (As::Json, kind.clone()),
    };
    let is_visible = |b: u8| (b' '..0x7f).contains(&b);
    if !kind.bytes().all(is_visible) {
        return Err("its body is of a kind that cannot be written".into());
    }
    let schema = match (&written_as, of.get("schema")) {
        (As::Text, _) => json!({ "type": "string" }),
        (_, Some(schema)) => schemas.whole(schema)?,
        (_, None) => json!({}),
    };
    Ok(Some(Body {
        kind,
        written: written_as,
        is_required: written.get("required") == Some(&Value::Bool(true)),
        schema,
    }))
}

/// Members of a form that are written in a manner of their own.
fn manners(of: &Value) -> Vec<(String, Manner)> {
    let Some(Value::Object(encoding)) = of.get("encoding") else {
        return Vec::new();
    };
    let manner = |(name, of): (&String, &Value)| {
        let style = match of.get("style")?.as_str()? {
            "form" => Style::Form,
            "spaceDelimited" => Style::SpaceDelimited,
            "pipeDelimited" => Style::PipeDelimited,
            "deepObject" => Style::DeepObject,
            _ => return None,
        };
        let explode = of.get("explode").and_then(Value::as_bool);
        let manner = Manner {
            style,
            explode: explode.unwrap_or(style == Style::Form),
            keeps_reserved: false,
        };
        Some((name.clone(), manner))
    };
    encoding.iter().filter_map(manner).collect()
}

impl Body {
    /// What is sent for an argument, and its kind.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn write(&self, argument: &RawValue) -> Result<(String, Vec<u8>), String> {
        let text = argument.get();
        let sent = match &self.written {
            As::Json => text.as_bytes().to_vec(),
            As::Text => match Written::of(argument)? {
                Written::Text(text) if argument.get().starts_with('"') => text.into_bytes(),
                _ => return Err("must be a text".into()),
            },
            As::Form(manners) => {
                let Members(members) = serde_json::from_str(text)
                    .map_err(|error| format!("is no object of a form: {error}"))?;
                let mut pairs = Vec::new();
                for (name, value) in members {
                    let manner = manners.iter().find(|(of, _)| *of == name);
                    pairs.extend(in_form(&name, value, manner.map(|(_, manner)| *manner))?);
                }
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                pairs.join("&").into_bytes()
            }
        };
        Ok((self.kind.clone(), sent))
    }
}

/// A member of a form: an object is JSON, unless it is said to be written otherwise.
fn in_form(
    name: &str,
    value: &RawValue,
    manner: Option<Manner>,
) -> Result<Vec<(String, String)>, String> {
    let written = Written::of(value)?;
    let is_nested = |of: &Written| matches!(of, Written::List(_) | Written::Object(_));
    match (&written, manner) {
        (Written::Object(_), None) => Ok(vec![(encoded(name), encoded(value.get()))]),
        (Written::List(items), None) if items.iter().any(is_nested) => {
            Ok(vec![(encoded(name), encoded(value.get()))])
        }
        (written, manner) => {
            let usual = Manner {
                style: Style::Form,
                explode: true,
                keeps_reserved: false,
            };
            let pairs = in_query(name, written, manner.unwrap_or(usual));
            pairs.map_err(|says| format!("its member {name} {says}"))
        }
    }
}
