//! A count and how far it can be trusted.
//!
//! Not here: refusals to count (`uncountable`).

/// A number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Tokens.
    pub tokens: u64,
    /// Whether the engine must have counted the same.
    pub certainty: Certainty,
}

/// Whether a count can be held against the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Rendered and tokenised as the engine does: any difference is drift.
    Exact,
    /// Near, for this reason.
    Approximate(Doubt),
}

/// Why a count is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The provider does not publish its template: what it documents per message and tool was added.
    #[error("the provider's chat template is not public; its documented overhead was added")]
    TemplateUnknown,
    /// The text was encoded again: a model may sample other tokens for the same text, and framing tokens
    /// that the engine removed are counted as the format has them.
    #[error("the output was encoded again from its text")]
    EncodedAgain,
    /// A piece longer than the bound was cut where the tokenizer would not have cut it.
    #[error("a piece of text was too long to be held whole")]
    LongPiece,
}

impl Count {
    pub(crate) const fn exact(tokens: u64) -> Self {
        Self {
            tokens,
            certainty: Certainty::Exact,
        }
    }

    pub(crate) const fn approximate(tokens: u64, doubt: Doubt) -> Self {
        Self {
            tokens,
            certainty: Certainty::Approximate(doubt),
        }
    }
}
