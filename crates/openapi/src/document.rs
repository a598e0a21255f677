//! A description from its bytes on.
//!
//! Not here: what its operations become (`api`).

use serde_json::{Map, Value};

use crate::yaml;

/// Largest description that is read.
pub const DESCRIPTION_BYTES_MAX: usize = 16 << 20;

/// Why a text is no description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is longer than is read.
    #[error("the description has more than {} MiB, and no more is read", DESCRIPTION_BYTES_MAX >> 20)]
    TooLong,
    /// It is neither JSON nor YAML, or more of it than is read.
    #[error("the description cannot be read: {0}")]
    Text(String),
    /// It is of another version.
    #[error("the description is of the version {0}, and 3.0, 3.1 and 3.2 are read: convert it")]
    Version(String),
    /// It is something else.
    #[error(
        "the file is not an OpenAPI description: it does not say `openapi: 3.0.0` or later, and its `paths`"
    )]
    Other,
    /// Where its API is cannot be told.
    #[error("{0}")]
    Base(String),
    /// It has more operations than are read.
    #[error(
        "the description has more than {max} operations: leave some out with `methods`, or split it"
    )]
    Operations {
        /// The most.
        max: usize,
    },
}

/// A description that was read.
#[derive(Debug, Clone)]
pub struct Description {
    pub(crate) root: Map<String, Value>,
    /// Schemas are those of 3.0, which are not yet JSON Schema.
    pub(crate) is_old: bool,
}

impl Description {
    /// Reads one, which may be JSON or YAML.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() > DESCRIPTION_BYTES_MAX {
            return Err(Fault::TooLong);
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| Fault::Text(error.to_string()))?;
        let value = if text.trim_ascii_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| Fault::Text(error.to_string()))?
        } else {
            yaml::read(text).map_err(Fault::Text)?
        };
        let Value::Object(root) = value else {
            return Err(Fault::Other);
        };
        let version = |name: &str| match root.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            // `swagger: 2.0` is a number in YAML.
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        if let Some(version) = version("swagger") {
            return Err(Fault::Version(format!("{version} (Swagger)")));
        }
        let version = version("openapi").ok_or(Fault::Other)?;
        let is_known = |minor: &str| {
            let rest = version.strip_prefix(minor);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !["3.0", "3.1", "3.2"].into_iter().any(is_known) {
            return Err(Fault::Version(version.chars().take(32).collect()));
        }
        if !matches!(root.get("paths"), Some(Value::Object(_))) {
            return Err(Fault::Other);
        }
        let is_old = is_known("3.0");
        Ok(Self { root, is_old })
    }
}
