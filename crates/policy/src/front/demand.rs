//! What a call may take of limits and budgets.
//!
//! Not here: how a protocol estimates it (of inference, `exchange::cost`), taking (`reservation`), money ([`crate::price`]).

use crate::limit::{Kind, Rate};

/// What a call may take: itself, and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Tokens of its prompt, estimated.
    pub prompt: u64,
    /// The smaller of the route's estimate and a plain guess: only this, and a cap that was said, can refuse a call for good.
    pub prompt_least: u64,
    /// What the prompt takes of a budget, and is charged where nobody says what it came to.
    pub prompt_charged: u64,
    /// Tokens of its answer, by its cap or estimated.
    pub completion: u64,
    /// The call itself says how much it may generate.
    pub is_capped: bool,
    /// That is known: the call says it, or its route.
    pub is_bounded: bool,
    /// The most that is believed of a report, where the route says it: no word of the call's makes it less. Of a call that
    /// is billed by pieces, how many those are.
    pub most: Most,
}

/// How much an answer can be billed, beside what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Most {
    /// Nobody says.
    #[default]
    Unsaid,
    /// Tokens of its completion.
    Tokens(u64),
    /// So many pieces, each of which costs what its price says of a call: images.
    Pieces(u32),
}

impl Most {
    /// The most tokens that are believed, where its route says so.
    #[must_use]
    pub const fn tokens(self) -> Option<u64> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Unsaid | Self::Pieces(_) => None,
        }
    }

    /// The units that such a call is billed by beside tokens; 0 where it has none.
    #[must_use]
    pub const fn pieces(self) -> u32 {
        match self {
            Self::Pieces(pieces) => pieces,
            Self::Unsaid | Self::Tokens(_) => 0,
        }
    }
}

impl From<Option<u64>> for Most {
    fn from(tokens: Option<u64>) -> Self {
        tokens.map_or(Self::Unsaid, Self::Tokens)
    }
}

impl Demand {
    /// Of a call that takes so many tokens, and no more: what is charged for it whatever it says.
    #[must_use]
    pub fn charged(tokens: Option<u64>) -> Self {
        let prompt = tokens.unwrap_or(0);
        Self {
            prompt,
            prompt_least: prompt,
            prompt_charged: prompt,
            completion: 0,
            is_capped: true,
            is_bounded: true,
            most: Most::Unsaid,
        }
    }

    /// The same of a call whose prompt stands behind so many tokens that its body only names.
    #[cold]
    pub(crate) fn behind(self, before: u64) -> Self {
        Self {
            prompt: self.prompt.saturating_add(before),
            prompt_charged: self.prompt_charged.saturating_add(before),
            ..self
        }
    }

    /// What to take from a bucket that holds `burst` at most. What is only guessed, a completion or how dense a prompt
    /// is, must not make a small limit refuse every call: then the whole bucket is taken instead.
    fn units(self, burst: u64) -> u64 {
        let all = self.prompt.saturating_add(self.completion);
        let said = if self.is_capped { self.completion } else { 0 };
        if self.prompt_least.saturating_add(said) > burst {
            all
        } else {
            all.min(burst)
        }
    }

    /// What to take from a limit's bucket.
    #[inline]
    pub(crate) fn units_of(self, kind: Kind, rate: Rate) -> u64 {
        match kind {
            Kind::Requests => 1,
            Kind::Tokens => self.units(rate.burst),
        }
    }
}
