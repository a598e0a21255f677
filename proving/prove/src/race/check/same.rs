//! What equals what: bytes, JSON values apart from named members, the text and usage of streams.
//!
//! Invariant: a difference that was not named beforehand is an error that says where it is.
//! Not here: asking (`check`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// The same bytes.
pub(super) fn same_bytes(what: &str, got: &[u8], expected: &[u8]) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    let pairs = got.iter().zip(expected);
    let at = pairs.take_while(|(got, expected)| got == expected).count();
    let (got, expected) = (got.len(), expected.len());
    Err(format!(
        "{what} differs from the upstream's at byte {at} ({got} bytes, upstream {expected})"
    ))
}

/// The same JSON value, apart from members at or below the paths in `may`; what did differ.
pub(super) fn same_json(
    what: &str,
    got: &[u8],
    expected: &[u8],
    may: &[String],
) -> Result<Option<String>, String> {
    let parse = |bytes: &[u8], whose: &str| {
        serde_json::from_slice::<Value>(bytes)
            .map_err(|error| format!("{what}{whose} is not JSON: {error}"))
    };
    let mut differences = BTreeSet::new();
    compare(
        "",
        &parse(got, "")?,
        &parse(expected, " of the upstream")?,
        &mut differences,
    );
    let allowed = |path: &str| may.iter().any(|named| covers(named, path));
    if let Some((path, how)) = differences.iter().find(|(path, _)| !allowed(path)) {
        return Err(format!("{what} differs from the upstream's: {how} {path}"));
    }
    let told: Vec<String> = ["adds", "drops", "changes"]
        .into_iter()
        .filter_map(|kind| {
            let paths = differences.iter().filter(|(_, how)| *how == kind);
            let paths: Vec<&str> = paths.map(|(path, _)| path.as_str()).collect();
            (!paths.is_empty()).then(|| format!("{kind} {}", paths.join(", ")))
        })
        .collect();
    let rewrites = got != expected;
    Ok(match (rewrites, told.is_empty()) {
        (false, _) => None,
        (true, true) => Some("writes JSON anew".into()),
        (true, false) => Some(format!("writes JSON anew: {}", told.join("; "))),
    })
}

/// `usage` covers `usage` and `usage.x`, and not `usages`.
fn covers(named: &str, path: &str) -> bool {
    path.strip_prefix(named)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
}

/// Collects `(path, how)`; arrays are compared place by place, all places under one path.
fn compare(path: &str, got: &Value, expected: &Value, into: &mut BTreeSet<(String, &'static str)>) {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => members(path, got, expected, into),
        (Value::Array(got), Value::Array(expected)) if got.len() == expected.len() => {
            for (got, expected) in got.iter().zip(expected) {
                compare(&format!("{path}[]"), got, expected, into);
            }
        }
        (got, expected) if same_scalar(got, expected) => {}
        _ => {
            into.insert((path.to_owned(), "changes"));
        }
    }
}

fn members(
    path: &str,
    got: &Map<String, Value>,
    expected: &Map<String, Value>,
    into: &mut BTreeSet<(String, &'static str)>,
) {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for (name, value) in expected {
        match got.get(name) {
            Some(got) => compare(&below(name), got, value, into),
            None => {
                into.insert((below(name), "drops"));
            }
        }
    }
    for name in got.keys().filter(|name| !expected.contains_key(*name)) {
        into.insert((below(name), "adds"));
    }
}

/// 1 and 1.0 are the same number in JSON.
fn same_scalar(got: &Value, expected: &Value) -> bool {
    let numbers = got.as_f64().zip(expected.as_f64());
    got == expected || numbers.is_some_and(|(got, expected)| got == expected)
}

/// The same text and the same usage, however they are cut into events.
pub(super) fn same_events(what: &str, got: &[u8], expected: &[u8]) -> Result<(), String> {
    let (got, expected) = (gather(what, got)?, gather(what, expected)?);
    if got.text != expected.text {
        return Err(format!(
            "{what} holds another text than the upstream's ({} bytes, upstream {})",
            got.text.len(),
            expected.text.len()
        ));
    }
    if got.usage != expected.usage {
        return Err(format!(
            "{what} holds the usage {:?}, upstream {:?}",
            got.usage, expected.usage
        ));
    }
    Ok(())
}

#[derive(Default)]
struct Gathered {
    text: String,
    /// Prompt and completion tokens of the last usage.
    usage: Option<[Option<u64>; 2]>,
}

fn gather(what: &str, stream: &[u8]) -> Result<Gathered, String> {
    let stream = String::from_utf8_lossy(stream);
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(str::trim)
        .filter(|data| *data != "[DONE]");
    let mut gathered = Gathered::default();
    for data in data {
        let event: Value = serde_json::from_str(data)
            .map_err(|error| format!("{what}: an event is not JSON: {error}"))?;
        let text = event["choices"][0]["delta"]["content"].as_str();
        gathered.text.push_str(text.unwrap_or_default());
        if event["usage"].is_object() {
            let count = |name: &str| event["usage"][name].as_u64();
            gathered.usage = Some(["prompt_tokens", "completion_tokens"].map(count));
        }
    }
    Ok(gathered)
}
