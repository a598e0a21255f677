//! A count and how far it can be trusted.
//!
//! Not here: refusals to count (`uncountable`).

pub use prompts::Doubt;

use crate::shape::Shape;

/// A number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Tokens.
    pub tokens: u64,
    /// Whether the engine must have counted the same.
    pub certainty: Certainty,
}

/// A prompt's count, and what there is in it that may be rendered in a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its tokens.
    pub count: Count,
    /// What it is made of.
    pub shape: Shape,
}

/// Whether a count can be held against the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Rendered and tokenised as the engine does: any difference is drift.
    Exact,
    /// Near, for this reason.
    Approximate(Doubt),
}

impl Count {
    pub(crate) const fn exact(tokens: u64) -> Self {
        Self {
            tokens,
            certainty: Certainty::Exact,
        }
    }

    /// Both together; a doubt about one is one about the sum.
    pub(crate) const fn and(self, other: Self) -> Self {
        let certainty = match self.certainty {
            Certainty::Exact => other.certainty,
            doubted @ Certainty::Approximate(_) => doubted,
        };
        Self {
            tokens: self.tokens + other.tokens,
            certainty,
        }
    }

    /// The same count, which is approximate now.
    pub(crate) const fn doubted(self, doubt: Doubt) -> Self {
        Self::approximate(self.tokens, doubt)
    }

    pub(crate) const fn approximate(tokens: u64, doubt: Doubt) -> Self {
        Self {
            tokens,
            certainty: Certainty::Approximate(doubt),
        }
    }
}
