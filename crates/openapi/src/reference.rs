//! What a `$ref` stands for, inside of its own document.
//!
//! Invariant: nothing is fetched: a reference to another document stands for nothing.
//! Not here: schemas that contain themselves (`schema`).

use serde_json::{Map, Value};

/// How many references may follow one another.
const CHAIN_MAX: usize = 8;

/// What stands where a reference points to.
///
/// # Errors
/// Why there is nothing.
pub(crate) fn target<'d>(root: &'d Map<String, Value>, to: &str) -> Result<&'d Value, String> {
    let shown = || to.chars().take(200).collect::<String>();
    let Some(pointer) = to.strip_prefix("#/") else {
        return Err(format!(
            "`$ref: {}` is in another document, and none is fetched",
            shown()
        ));
    };
    let mut at: Option<&Value> = None;
    for part in pointer.split('/') {
        let part = wire::head::percent_decoded(part);
        let part = String::from_utf8_lossy(&part)
            .replace("~1", "/")
            .replace("~0", "~");
        at = match at {
            None => root.get(&part),
            Some(Value::Object(members)) => members.get(&part),
            Some(Value::Array(items)) => part.parse().ok().and_then(|nth: usize| items.get(nth)),
            Some(_) => None,
        };
        if at.is_none() {
            break;
        }
    }
    at.ok_or_else(|| format!("`$ref: {}` stands for nothing", shown()))
}

/// An object, or the one that it refers to.
///
/// # Errors
/// There is none.
pub(crate) fn object<'d>(
    root: &'d Map<String, Value>,
    value: &'d Value,
) -> Result<&'d Map<String, Value>, String> {
    let mut value = value;
    for _ in 0..CHAIN_MAX {
        let Value::Object(members) = value else {
            return Err("something in it is not an object".into());
        };
        match members.get("$ref") {
            Some(Value::String(to)) => value = target(root, to)?,
            Some(_) => return Err("a `$ref` in it is not a text".into()),
            None => return Ok(members),
        }
    }
    Err(format!(
        "more than {CHAIN_MAX} references follow one another in it"
    ))
}
