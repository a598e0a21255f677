//! Models by name.
//!
//! Not here: where a call to one goes ([`crate::route`]), what it costs ([`crate::price`]).

use std::sync::Arc;

/// Which models a route, a budget or a tokenizer is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelPattern {
    /// Exactly this name.
    Exact(Arc<str>),
    /// Any name that starts so; written with a trailing `*`.
    Prefix(String),
}

impl ModelPattern {
    /// The one name that it takes, where it is no prefix.
    #[must_use]
    pub fn exact(&self) -> Option<&Arc<str>> {
        match self {
            Self::Exact(name) => Some(name),
            Self::Prefix(_) => None,
        }
    }

    /// Whether it takes this model.
    #[must_use]
    pub fn takes(&self, model: &str) -> bool {
        match self {
            Self::Exact(name) => **name == *model,
            Self::Prefix(start) => model.starts_with(start.as_str()),
        }
    }

    /// Whether there is a name that both take.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(name), pattern) | (pattern, Self::Exact(name)) => pattern.takes(name),
            (Self::Prefix(one), Self::Prefix(other)) => {
                one.starts_with(other.as_str()) || other.starts_with(one.as_str())
            }
        }
    }
}
