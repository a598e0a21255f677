//! Figures that stay the same whenever a document is written and read again.
//!
//! Reading JSON gives the nearest number or a neighbour of it; of twelve digits both are the same.
//! Invariant: a document that was made exact and read again, made exact again, is the same.
//! Not here: the digits that are shown (`figure`).

use serde::Deserialize;
use serde_json::Value;

use crate::report::document::Document;

/// The same document, every figure that is no whole number with twelve digits.
pub(super) fn exact(document: &Document) -> Document {
    let rounded = serde_json::to_value(document).map(rounded);
    let read = rounded.and_then(Document::deserialize);
    read.unwrap_or_else(|_| document.clone())
}

fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number
                .as_f64()
                .and_then(|value| format!("{value:.11e}").parse().ok());
            exact
                .and_then(serde_json::Number::from_f64)
                .map_or(Value::Null, Value::Number)
        }
        Value::Array(all) => all.into_iter().map(rounded).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(key, value)| (key, rounded(value)))
            .collect(),
        other => other,
    }
}
