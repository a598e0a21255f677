//! Why there is no count: blame lies with the body, or with the model's files.
//!
//! Not here: doubts about a count that there is (`count`).

/// A body whose prompt cannot be counted. Never a zero.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncountable {
    /// Not one JSON document within the bounds of depth and text.
    #[error("the body is not JSON that can be read: {0}")]
    NotJson(String),
    /// A call of an operation whose body has no prompt.
    #[error("a call of `{0}` has no prompt to count")]
    Operation(&'static str),
    /// The body, or what it renders to, is longer than the bound.
    #[error("{0} bytes are more than are counted")]
    TooLong(usize),
    /// A member is missing or has a value that the engine refuses.
    #[error("`{member}` must be {wanted}")]
    Member {
        /// Where in the body.
        member: &'static str,
        /// What would have been right.
        wanted: &'static str,
    },
    /// An image, audio or a file: its tokens depend on its content and the model's own preprocessing.
    #[error("a part of type `{0}` has no text to count")]
    Part(String),
    /// The prompt is partly kept by the server.
    #[error("`{0}` refers to text that only the server has")]
    ServerState(&'static str),
    /// The model's template refuses this conversation, or ran past its bounds.
    #[error("the chat template refuses: {0}")]
    Template(String),
    /// The model's tokenizer failed on this text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
}

impl Uncountable {
    /// The reason as one word, for labels: it never holds what the body says.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "not_json",
            Self::Operation(_) => "operation",
            Self::TooLong(_) => "too_long",
            Self::Member { .. } => "member",
            Self::Part(_) => "part",
            Self::ServerState(_) => "server_state",
            Self::Template(_) => "template",
            Self::Tokenizer(_) => "tokenizer",
        }
    }
}

/// A tokenizer or template that cannot be used: found when the counter is built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableModel {
    /// Not a `tokenizer.json`.
    #[error("the tokenizer cannot be read: {0}")]
    Tokenizer(String),
    /// Not a template.
    #[error("the chat template cannot be read: {0}")]
    Template(String),
}

/// A member of a body that must be another.
#[must_use]
pub const fn wrong(member: &'static str, wanted: &'static str) -> Uncountable {
    Uncountable::Member { member, wanted }
}
