//! Names of workloads, routes, backends and models.

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// A workload, route or backend.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) String);

impl Written for Name {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(fine) {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            "is not a name",
            "use 1 to 64 of A-Z a-z 0-9 . _ -",
        ))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" })
    }
}

/// A model, as it stands in a call.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Model(pub(crate) String);

impl Written for Model {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if is_model(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            "is not a model name",
            "use 1 to 256 of A-Z a-z 0-9 . _ : / @ -",
        ))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._:/@-]{1,256}$" })
    }
}

fn is_model(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._:/@-".contains(&b);
    (1..=256).contains(&text.len()) && text.bytes().all(fine)
}

/// A model, or the start of one and a `*`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Exact(String),
    Prefix(String),
}

impl Written for Pattern {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text.strip_suffix('*') {
            Some("") => Ok(Self::Prefix(String::new())),
            Some(start) if is_model(start) => Ok(Self::Prefix(start.to_owned())),
            None if is_model(text) => Ok(Self::Exact(text.to_owned())),
            _ => Err(Problem::new(
                "is not a model pattern",
                "write a model name, or the start of one and a single `*` at the end",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^([A-Za-z0-9._:/@-]{1,256}\*?|\*)$" })
    }
}
