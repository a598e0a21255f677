//! A route's `abandon`: a word, or a mapping with bounds.
//!
//! Invariant: both bounds are written; nothing is read without an end.
//! Not here: what follows from it (`policy::exchange`).

use std::time::Duration;

use policy::disconnect::{OnDisconnect, ReadBounds};
use serde_json::{Value as Json, json};

use crate::decode::{At, Decode, Defs, Findings, Place, record};
use crate::node::{Node, Value};
use crate::scalar::{Amount, Count, words};

/// What to do when a client leaves.
pub(crate) enum Abandon {
    Cancel,
    ReadToEnd(ReadToEnd),
}

impl Abandon {
    /// What the core reads; one whose bounds were reported is as good as any.
    pub(crate) fn lowered(&self) -> OnDisconnect {
        let Self::ReadToEnd(ReadToEnd { read_to_end }) = self else {
            return OnDisconnect::Cancel;
        };
        let tokens = read_to_end.get().and_then(|d| d.tokens.get());
        let seconds = read_to_end.get().and_then(|d| d.seconds.get());
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
            Value::Map(_) => ReadToEnd::decode(node, path, findings).map(Self::ReadToEnd),
            Value::Scalar(_) => At::<Cancel>::decode(node, path, findings).map(|_| Self::Cancel),
            Value::List(_) => {
                let place = Place::new(path, node.line);
                findings.fault(&place, format!("is {}, not a policy", node.what()), HINT);
                None
            }
        }
    }

    fn schema(defs: &mut Defs) -> Json {
        let word = At::<Cancel>::schema(defs);
        json!({ "anyOf": [word, ReadToEnd::schema(defs)] })
    }
}

const HINT: &str = "write cancel, or { read_to_end: { tokens: 4K, seconds: 60 } }";

words! {
    /// The word.
    Cancel(()): "is not what a route can do", HINT => {
        "cancel" => (),
    }
}

record! {
    /// The gate reads on when a client leaves.
    ReadToEnd {
        /// How far.
        required read_to_end: ReadToEndBounds,
    }
}

record! {
    /// How far the gate reads on for a client that left; then the upstream is told.
    ReadToEndBounds {
        /// At most about so many tokens: events of a stream, or four bytes each.
        required tokens: At<Amount>,
        /// At most so long.
        required seconds: At<Count<3600>>,
    }
}
