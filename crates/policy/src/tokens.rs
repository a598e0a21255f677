//! Token counts, each with its witness.
//!
//! Invariant: a count says where it comes from, also when counts are added up.
//! Not here: reading what an engine reports (`wire::usage`), counting (`tokens`, the crate).

/// A token count and its witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Count {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The engine said so.
    Reported(u64),
    /// The gate counted it.
    Counted(u64),
    /// A guess from sizes.
    Estimated(u64),
}

impl Count {
    /// The number, whatever its witness.
    #[must_use]
    pub fn tokens(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Reported(n) | Self::Counted(n) | Self::Estimated(n) => Some(n),
        }
    }

    /// The witness in a word.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Reported(_) => "reported",
            Self::Counted(_) => "counted",
            Self::Estimated(_) => "estimated",
        }
    }
}

/// Tokens of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Prompt (input) tokens.
    pub prompt: Count,
    /// Completion (output) tokens.
    pub completion: Count,
    /// Prompt tokens that the engine had cached, as reported.
    pub cached: Option<u64>,
    /// Prompt tokens written to a cache that keeps them five minutes, as reported.
    pub cache_write_5m: Option<u64>,
    /// Prompt tokens written to a cache that keeps them an hour, as reported.
    pub cache_write_1h: Option<u64>,
    /// Completion tokens spent on reasoning, as reported.
    pub reasoning: Option<u64>,
    /// Audio tokens of the prompt, as reported.
    pub audio_prompt: Option<u64>,
    /// Audio tokens of the completion, as reported.
    pub audio_completion: Option<u64>,
    /// Units that it is billed by beside tokens: of search, as reported, or images; 0 where none is told.
    pub units: u32,
    /// The engine reported something impossible.
    pub invalid: bool,
    /// Part of what the engine reported cannot be true and was dropped, or its counts do not add up; the rest is believed.
    pub doubtful: bool,
    /// More prompt tokens are reported than its body has bytes, so that they are of something that it refers to, or not true: where
    /// the gate can count the prompt, that count is believed.
    pub is_beyond_body: bool,
    /// More completion tokens are reported, beside reasoning, than its answer has bytes, so that nobody saw them, or they are not
    /// true.
    pub is_beyond_answer: bool,
    /// What the engine said of the prompt, where another number stands there.
    pub prompt_said: Said,
    /// What it said of the completion, likewise.
    pub completion_said: Said,
}

/// What an engine said of a count that is not charged as it said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Said {
    /// Nothing, or what is charged.
    #[default]
    Nothing,
    /// A number that is part of what is charged.
    Believed(u64),
    /// A whole number that cannot be true: kept, never believed.
    Refused(u64),
}

impl Said {
    /// What was said and is not believed, if anything.
    #[must_use]
    pub fn refused(said: Option<u64>) -> Self {
        said.map_or(Self::Nothing, Self::Refused)
    }

    /// The number, believed or not.
    #[must_use]
    pub const fn tokens(self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Believed(tokens) | Self::Refused(tokens) => Some(tokens),
        }
    }
}

impl Tokens {
    /// Whether a count that was reported is not believed.
    #[must_use]
    pub const fn is_disbelieved(&self) -> bool {
        matches!(self.prompt_said, Said::Refused(_))
            || matches!(self.completion_said, Said::Refused(_))
    }

    /// Whether what is charged is a report of more tokens than its text has bytes.
    #[must_use]
    pub const fn is_charged_beyond_text(&self) -> bool {
        const fn is_charged(count: Count, said: Said) -> bool {
            matches!(count, Count::Reported(_)) || matches!(said, Said::Believed(_))
        }
        self.is_beyond_body && is_charged(self.prompt, self.prompt_said)
            || self.is_beyond_answer && is_charged(self.completion, self.completion_said)
    }

    /// Prompt and completion together; what is not known is nothing.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let known = |count: Count| count.tokens().unwrap_or(0);
        known(self.prompt).saturating_add(known(self.completion))
    }
}

/// Attempts of an exchange, beside its last, that an upstream may have run and may charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unconfirmed {
    /// How many.
    pub attempts: u32,
    /// Prompt tokens estimated for them all.
    pub prompt: u64,
    /// Completion tokens held for them all.
    pub completion: u64,
    /// Whether the last attempt came to nothing, so that they are all that is charged.
    pub is_all: bool,
}

impl Unconfirmed {
    /// Adds one more.
    pub fn add(&mut self, prompt: u64, completion: u64) {
        self.attempts = self.attempts.saturating_add(1);
        self.prompt = self.prompt.saturating_add(prompt);
        self.completion = self.completion.saturating_add(completion);
    }

    /// Tokens estimated for them all.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// What is charged where they are charged too: sums that are estimates now. What the engine
    /// reported of the last attempt is kept beside them.
    #[must_use]
    #[cold]
    pub fn added_to(&self, tokens: Tokens) -> Tokens {
        let said = |count: Count, said: Said| match count {
            Count::Reported(n) => Said::Believed(n),
            Count::Unknown | Count::Counted(_) | Count::Estimated(_) => said,
        };
        let sum = |count: Count, more: u64| {
            Count::Estimated(count.tokens().unwrap_or(0).saturating_add(more))
        };
        Tokens {
            prompt: sum(tokens.prompt, self.prompt),
            completion: sum(tokens.completion, self.completion),
            prompt_said: said(tokens.prompt, tokens.prompt_said),
            completion_said: said(tokens.completion, tokens.completion_said),
            ..tokens
        }
    }
}
