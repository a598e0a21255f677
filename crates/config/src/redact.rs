//! The document as it may be shown, and the version made from it.
//!
//! Invariant: values stand as they were written, so nothing that a variable or a file held is
//! shown; below `credential`, `bearer`, `bearers`, `static_keys`, `client_secret` and keys of sessions an inline secret is `***`, and so
//! is whatever mentions a variable, the value of every variable of a command, and of its arguments what stands with the name of a secret.
//! Not here: the admin endpoint that shows it.

use serde_json::{Map, Number, Value as Json};
use sha2::{Digest, Sha256};

use crate::mask::looks_like_key;
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
                let value = if entry.key == "environment" {
                    names(&entry.node)
                } else if entry.key == "args" {
                    arguments(&entry.node)
                } else if in_credential && entry.key == "inline" {
                    "***".into()
                } else {
                    let is_one = matches!(
                        entry.key.as_str(),
                        "credential"
                            | "bearer"
                            | "bearers"
                            | "static_keys"
                            | "client_secret"
                            | "session_key"
                            | "previous_session_key"
                            | "secret"
                            | "previous_secret"
                    );
                    shown(&entry.node, in_credential || is_one)
                };
                (entry.key.clone(), value)
            };
            Json::Object(entries.iter().map(member).collect::<Map<_, _>>())
        }
    }
}

/// The names of variables, whose values may be secrets.
fn names(node: &Node) -> Json {
    match &node.value {
        Value::Map(entries) => {
            let name = |entry: &crate::node::Entry| (entry.key.clone(), "***".into());
            Json::Object(entries.iter().map(name).collect())
        }
        _ => "***".into(),
    }
}

/// Arguments of a command: what follows a name of a secret, or stands beside it, is none that may be seen.
fn arguments(node: &Node) -> Json {
    let mut is_secret = false;
    let mut argument = |item: &Node| -> Json {
        let Value::Scalar(Scalar { raw, .. }) = &item.value else {
            return shown(item, false);
        };
        let was_named = std::mem::replace(&mut is_secret, false);
        if was_named && !raw.starts_with("--") {
            return "***".into();
        }
        let at = raw.find(['=', ':']);
        let (name, value) = raw.split_at(at.unwrap_or(raw.len()));
        match (names_secret(name), value.chars().next()) {
            (true, Some(sign)) => format!("{name}{sign}***").into(),
            (true, None) => {
                is_secret = raw.starts_with('-');
                shown(item, false)
            }
            (false, _) if looks_like_key(raw) => "***".into(),
            (false, _) => shown(item, false),
        }
    };
    match &node.value {
        Value::List(items) => items.iter().map(argument).collect(),
        Value::Scalar(_) => argument(node),
        Value::Map(_) => shown(node, false),
    }
}

/// Whether an option, a variable or a header of this name says a secret.
fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "auth",
        "bearer",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
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

/// The version of a document that is the first one: `{hash}-1`, of which the hash is the first 12 hex digits of SHA-256
/// over the redacted document.
///
/// Secrets stay out of the hash, from which a short one could be guessed; the number is what tells a rotation, once
/// the document takes the place of another.
pub(crate) fn version(document: &Redacted) -> String {
    let digest = Sha256::digest(document.0.to_string().as_bytes());
    let hash = digest.iter().take(6).map(|byte| format!("{byte:02x}"));
    format!("{}-1", hash.collect::<String>())
}
