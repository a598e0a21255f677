//! A route's `abandon`: a word, or a mapping with bounds.
//!
//! Invariant: both bounds are written; there is no drain without an end.
//! Not here: what a drain does (`policy::disconnect`, `proxy`).

use std::time::Duration;

use policy::disconnect::{OnDisconnect, ReadBounds};
use serde_json::{Value as Json, json};

use super::Draining;
use crate::decode::{At, Decode, Defs, Findings, Place, Problem, Takes, Written};
use crate::node::{Node, Value};

/// What to do when a client leaves.
pub(crate) enum Abandon {
    Cancel,
    Drain(Draining),
}

impl Abandon {
    /// What the core reads; a drain whose bounds were reported is as good as any.
    pub(crate) fn lowered(&self) -> OnDisconnect {
        let Self::Drain(Draining { drain }) = self else {
            return OnDisconnect::Cancel;
        };
        let tokens = drain.get().and_then(|d| d.tokens.get());
        let seconds = drain.get().and_then(|d| d.seconds.get());
        match (tokens, seconds) {
            (Some(tokens), Some(seconds)) => OnDisconnect::ReadToEnd(ReadBounds {
                tokens: tokens.value.0,
                time: Duration::from_secs(seconds.value.0.into()),
            }),
            (None, _) | (_, None) => OnDisconnect::Cancel,
        }
    }
}

impl Decode for Abandon {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Map(_) => Draining::decode(node, path, findings).map(Self::Drain),
            Value::Scalar(_) => At::<Cancel>::decode(node, path, findings).map(|_| Self::Cancel),
            Value::List(_) => {
                let place = Place {
                    path: path.into(),
                    line: node.line,
                };
                findings.fault(&place, format!("is {}, not a policy", node.what()), HINT);
                None
            }
        }
    }

    fn schema(defs: &mut Defs) -> Json {
        let word = At::<Cancel>::schema(defs);
        json!({ "anyOf": [word, Draining::schema(defs)] })
    }
}

const HINT: &str = "write cancel, or { drain: { tokens: 4K, seconds: 60 } }";

/// The word.
struct Cancel;

impl Written for Cancel {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text == "cancel" {
            Ok(Self)
        } else {
            Err(Problem::new("is not what a route can do", HINT))
        }
    }

    fn schema() -> Json {
        json!({ "enum": ["cancel"] })
    }
}
