//! What a call may cost in tokens, and what is taken for it.
//!
//! Not here: the estimate ([`crate::meter`]), taking (`hold`), money ([`crate::price`]).

use crate::limit::Kind;
use crate::operation::Operation;
use crate::snapshot::Limit;

/// What a call may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    /// The call itself says how much it may generate.
    pub(super) is_capped: bool,
}

/// Tokens that an engine may put around a prompt that says little: a template's system text.
const FRAME_TOKENS_MAX: u64 = 1024;

impl Cost {
    /// The most that a call of `bytes` can come to. Each token of a text is at least one byte of
    /// the body; what the body only refers to (an image's address, an earlier response) is not in it.
    pub(super) fn at_most(self, bytes: u64, operation: Operation) -> Option<u64> {
        let prompt = bytes.saturating_add(FRAME_TOKENS_MAX);
        match operation {
            Operation::Chat | Operation::Completions | Operation::Messages if self.is_capped => {
                Some(prompt.saturating_add(self.completion))
            }
            Operation::Embeddings | Operation::Moderations => Some(prompt),
            Operation::CountTokens => Some(0),
            _ => None,
        }
    }

    /// What to take from a bucket that holds `burst` at most. A completion that is only guessed
    /// must not make a small limit refuse every call: then the whole bucket is taken instead.
    pub(super) fn units(self, burst: u64) -> u64 {
        let all = self.prompt.saturating_add(self.completion);
        if self.is_capped || self.prompt > burst {
            all
        } else {
            all.min(burst)
        }
    }

    /// What to take from a limit's bucket.
    pub(super) fn units_of(self, limit: &Limit) -> u64 {
        match limit.kind {
            Kind::Requests => 1,
            Kind::Tokens => self.units(limit.bucket.rate().burst),
        }
    }
}
