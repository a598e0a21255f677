//! Parameters of operations.
//!
//! Invariant: a parameter that cannot be written as its description has it is none: its operation is left out by name.
//! Not here: how values are encoded (`encode`), the body (`body`).

use serde_json::{Map, Value};

use crate::encode::{Manner, Style};
use crate::reference::object;
use crate::schema::Schemas;

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// A parameter.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// The name of its argument.
    pub(crate) argument: String,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) manner: Manner,
    /// Its value is written as JSON.
    pub(crate) is_json: bool,
    pub(crate) is_required: bool,
    /// What an argument may be.
    pub(crate) schema: Value,
}

/// Headers that say something else than an argument may, or that the gate writes.
const OWN_HEADERS: [&str; 22] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];

/// The parameters of an operation, those of its path among them.
///
/// # Errors
/// Why one of them cannot be written.
pub(crate) fn of<'d>(
    root: &'d Map<String, Value>,
    schemas: &Schemas<'d>,
    path_item: &'d Map<String, Value>,
    operation: &'d Map<String, Value>,
) -> Result<Vec<Parameter>, String> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for of in [path_item, operation] {
        let written = match of.get("parameters") {
            None => continue,
            Some(Value::Array(written)) => written,
            Some(_) => return Err("its `parameters` are no list".into()),
        };
        for written in written {
            let Some(parameter) = one(object(root, written)?, schemas)? else {
                continue;
            };
            let is_it = |of: &Parameter| of.place == parameter.place && of.name == parameter.name;
            // An operation's own takes the place of its path's.
            match parameters.iter().position(is_it) {
                Some(at) => parameters[at] = parameter,
                None => parameters.push(parameter),
            }
        }
    }
    Ok(parameters)
}

/// A parameter; none where the gate itself writes what it says.
fn one<'d>(
    written: &'d Map<String, Value>,
    schemas: &Schemas<'d>,
) -> Result<Option<Parameter>, String> {
    let text = |name: &str| written.get(name).and_then(Value::as_str);
    let is = |name: &str| written.get(name) == Some(&Value::Bool(true));
    let name = text("name").ok_or("a parameter of it has no `name`")?;
    let place = match text("in") {
        Some("path") => Place::Path,
        Some("query") => Place::Query,
        Some("header") => Place::Header,
        Some("cookie") => Place::Cookie,
        other => {
            let other = other.unwrap_or_default();
            return Err(format!("its parameter {name} is in `{other}`"));
        }
    };
    let mut stored = name.to_owned();
    if place == Place::Header {
        stored = name.to_ascii_lowercase();
        // As the specification has it, these say nothing here.
        if ["accept", "authorization", "content-type"].contains(&stored.as_str()) {
            return Ok(None);
        }
        if OWN_HEADERS.contains(&stored.as_str()) {
            return Err(format!(
                "its header {name} is not one that an argument may say"
            ));
        }
    }
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_odd = match place {
        Place::Header | Place::Cookie => name.is_empty() || !name.bytes().all(is_token),
        Place::Path | Place::Query => name.is_empty(),
    };
    if is_odd {
        return Err(format!(
            "its parameter {name:?} has a name that cannot be written"
        ));
    }
    let own = match place {
        Place::Path | Place::Header => Style::Simple,
        Place::Query | Place::Cookie => Style::Form,
    };
    let style = match (text("style"), place) {
        (None, _) => own,
        (Some("simple"), Place::Path | Place::Header) => Style::Simple,
        (Some("label"), Place::Path) => Style::Label,
        (Some("matrix"), Place::Path) => Style::Matrix,
        (Some("form"), Place::Query | Place::Cookie) => Style::Form,
        (Some("spaceDelimited"), Place::Query) => Style::SpaceDelimited,
        (Some("pipeDelimited"), Place::Query) => Style::PipeDelimited,
        (Some("deepObject"), Place::Query) => Style::DeepObject,
        (Some(style), _) => {
            let place = place.name();
            return Err(format!(
                "its {place} parameter {name} has the style {style}"
            ));
        }
    };
    let explode = match written.get("explode") {
        Some(Value::Bool(explode)) => *explode,
        _ => style == Style::Form,
    };
    let (schema, is_json) = match (written.get("schema"), written.get("content")) {
        (Some(schema), _) => (schemas.whole(schema)?, false),
        (None, Some(Value::Object(content))) => {
            let Some((kind, of)) = content.iter().next() else {
                return Err(format!("its parameter {name} has no content"));
            };
            if !is_json(kind) {
                return Err(format!("its parameter {name} is written as {kind}"));
            }
            let schema = of.get("schema").map(|schema| schemas.whole(schema));
            (
                schema
                    .transpose()?
                    .unwrap_or_else(|| Value::Object(Map::new())),
                true,
            )
        }
        (None, _) => (Value::Object(Map::new()), false),
    };
    Ok(Some(Parameter {
        argument: name.to_owned(),
        name: stored,
        place,
        manner: Manner {
            style,
            explode,
            keeps_reserved: is("allowReserved"),
        },
        is_json,
        is_required: is("required") || place == Place::Path,
        schema: described(schema, text("description")),
    }))
}

/// Whether a kind of content is JSON.
pub(crate) fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json") || kind == "text/json"
}

/// A schema with what its parameter says of it.
fn described(schema: Value, says: Option<&str>) -> Value {
    match (schema, says) {
        (Value::Object(mut members), Some(says)) => {
            let says: String = says.chars().take(DESCRIPTION_CHARS_MAX).collect();
            members.insert("description".into(), says.into());
            Value::Object(members)
        }
        (schema, _) => schema,
    }
}

/// Most of what a parameter says of itself.
const DESCRIPTION_CHARS_MAX: usize = 1_000;
