//! The document as it may be shown, and the version made from it.
//!
//! Invariant: values stand as they were written, so nothing that a variable or a file held is
//! shown; below `credential` and `bearer` an inline secret is `***`, and so is whatever mentions a variable.
//! Not here: the admin endpoint that shows it.

use policy::snapshot::Snapshot;
use serde_json::{Map, Number, Value as Json};
use sha2::{Digest, Sha256};

use crate::node::{Node, Scalar, Shape, Value};

/// A document without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted(Json);

impl Redacted {
    pub(crate) fn of(root: &Node) -> Self {
        Self(shown(root, false))
    }

    /// The document as JSON.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0
    }
}

fn shown(node: &Node, in_credential: bool) -> Json {
    match &node.value {
        Value::Scalar(scalar) if in_credential && scalar.raw.contains('$') => "***".into(),
        Value::Scalar(scalar) => scalar_shown(scalar),
        Value::List(items) => items
            .iter()
            .map(|item| shown(item, in_credential))
            .collect(),
        Value::Map(entries) => {
            let member = |entry: &crate::node::Entry| {
                let value = if in_credential && entry.key == "inline" {
                    "***".into()
                } else {
                    let is_one = matches!(entry.key.as_str(), "credential" | "bearer");
                    shown(&entry.node, in_credential || is_one)
                };
                (entry.key.clone(), value)
            };
            Json::Object(entries.iter().map(member).collect::<Map<_, _>>())
        }
    }
}

/// Numbers that JSON holds exactly stay numbers.
fn scalar_shown(scalar: &Scalar) -> Json {
    let whole = || scalar.raw.parse::<u64>().ok().map(Number::from);
    match scalar.shape() {
        Shape::Number => whole().map_or_else(|| scalar.raw.as_str().into(), Json::Number),
        Shape::Nothing => Json::Null,
        Shape::Boolean => Json::Bool(scalar.raw.starts_with(['t', 'T'])),
        Shape::Text => scalar.raw.as_str().into(),
    }
}

/// `{hash}-{generation}`: the first 12 hex digits of SHA-256 over the redacted document, and a
/// count of changes since the process began.
///
/// Secrets stay out of the hash, from which a short one could be guessed; the generation is what
/// tells a rotation. It stands still when neither the document nor a credential changed.
pub(crate) fn version(document: &Redacted, next: &Snapshot, carry: Option<&Snapshot>) -> String {
    let digest = Sha256::digest(document.0.to_string().as_bytes());
    let hash: String = digest
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let Some(carry) = carry else {
        return format!("{hash}-1");
    };
    let (old_hash, generation) = carry
        .version
        .split_once('-')
        .unwrap_or((&carry.version, "0"));
    let generation: u64 = generation.parse().unwrap_or(0);
    let same = old_hash == hash
        && carry.tokenizers == next.tokenizers
        && carry.endpoints.len() == next.endpoints.len()
        && carry
            .endpoints
            .iter()
            .zip(&next.endpoints)
            .all(|(old, new)| old.auth == new.auth && old.origin == new.origin);
    format!(
        "{hash}-{}",
        if same {
            generation
        } else {
            generation.saturating_add(1)
        }
    )
}
