//! How a route's calls are billed: how durable their rows are, and by whose count.
//!
//! Invariant: a count of the gate's own takes the place of what an engine reported only where a route says so.
//! Not here: rows ([`crate::usage_ledger`]), counting ([`crate::counting`]), prices ([`crate::price`]).

use crate::tokens::{Count, Said, Tokens, Unconfirmed};

/// How much care a route takes of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Billing {
    /// Entries reach the disk together, shortly after; nobody waits for them.
    #[default]
    Grouped,
    /// A call goes upstream only once its entry is on disk.
    Strict,
}

/// Whose count limits, budgets, costs and metrics go by; the other's is kept beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BilledBy {
    /// The engine's, where it reports one that can be true.
    #[default]
    Reported,
    /// The gate's own, where it can count.
    Counted,
}

impl BilledBy {
    /// The word in the configuration and in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Counted => "counted",
        }
    }

    /// Whether the gate's own count, when it is there, takes the place of what is known without it. What came to nothing comes to no more
    /// by being counted.
    #[must_use]
    pub fn awaits(self, tokens: &Tokens) -> bool {
        let is_guessed = |count: Count| matches!(count, Count::Estimated(_));
        let is_nothing = (tokens.prompt, tokens.completion) == (Count::Unknown, Count::Unknown);
        !is_nothing
            && (self == Self::Counted
                || tokens.is_beyond_body
                || is_guessed(tokens.prompt)
                || is_guessed(tokens.completion))
    }

    /// What an exchange is charged now that the gate has counted; `None` where it could not. `tokens` is what its
    /// record says without that, `others` the attempts of it beside the last that may have run.
    #[must_use]
    pub fn charged(
        self,
        tokens: Tokens,
        others: Unconfirmed,
        prompt: Option<u64>,
        output: Option<u64>,
    ) -> Tokens {
        let mut tokens = tokens;
        if let (true, Some(_), Count::Reported(said)) =
            (tokens.is_beyond_body, prompt, tokens.prompt)
        {
            // All of it was there to be counted.
            tokens.prompt = Count::Estimated(said);
            tokens.prompt_said = Said::Refused(said);
        }
        let side = |known: Count, said: Said, others_have: u64, own: Option<u64>| {
            let was_said = others.attempts > 0 && matches!(said, Said::Believed(_));
            let is_reported = matches!(known, Count::Reported(_)) || was_said;
            match (known, own) {
                (Count::Unknown, _) | (_, None) => known,
                _ if is_reported && self == Self::Reported => known,
                (_, Some(own)) if others.attempts > 0 => {
                    Count::Estimated(own.saturating_add(others_have))
                }
                (_, Some(own)) => Count::Counted(own),
            }
        };
        Tokens {
            prompt: side(tokens.prompt, tokens.prompt_said, others.prompt, prompt),
            completion: side(
                tokens.completion,
                tokens.completion_said,
                others.completion,
                output,
            ),
            ..tokens
        }
    }
}

#[cfg(test)]
mod tests;
