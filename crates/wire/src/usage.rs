//! Token usage as an engine reports it, in any of the dialects that engines speak.
//!
//! Invariant: an impossible report is `Invalid` and a missing one `Absent`; neither ever becomes zero.
//! Not here: counting or estimating (`policy`), usage in streams (`sse`).

mod read;
mod unary;

pub use read::read;
pub use unary::UnaryUsage;

/// The most tokens that any one count may claim.
pub const TOKEN_LIMIT: u64 = 1 << 40;
/// The most bytes of a usage object that are read.
pub const USAGE_LIMIT_BYTES: usize = 8 * 1024;

/// Tokens of one exchange, as reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the prompt, those from a cache included.
    pub prompt: Option<u64>,
    /// All tokens of the output.
    pub completion: Option<u64>,
    /// The engine's own sum.
    pub total: Option<u64>,
    /// Tokens of the prompt that came from a cache.
    pub cached: Option<u64>,
    /// Tokens of the prompt that were written to a cache which keeps them five minutes.
    pub cache_write_5m: Option<u64>,
    /// Tokens of the prompt that were written to a cache which keeps them an hour.
    pub cache_write_1h: Option<u64>,
    /// Tokens of hidden reasoning, part of `completion`: where an engine's own sum shows that it left
    /// them out there, they have been added.
    pub reasoning: Option<u64>,
    /// Audio tokens of the prompt.
    pub audio_prompt: Option<u64>,
    /// Audio tokens of the completion.
    pub audio_completion: Option<u64>,
    /// The counts do not add up, though each of them can be true.
    pub doubtful: bool,
}

/// What a response says of its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Counts that can be true.
    Valid(Usage),
    /// Counts that cannot be: negative, fractional, too large, no numbers, or contradictory. What of prompt and
    /// completion is a whole number all the same, is here to be kept and not to be believed.
    Invalid(Usage),
    /// Nothing.
    #[default]
    Absent,
}

impl Reading {
    /// Takes a later report of the same exchange: each count that it has replaces the earlier one.
    pub fn take_later(&mut self, later: Self) {
        *self = match (*self, later) {
            (earlier, Self::Absent) => earlier,
            (Self::Valid(earlier), Self::Valid(later)) => {
                let both = earlier.overlaid(later);
                if both.is_possible() {
                    Self::Valid(both)
                } else {
                    Self::Invalid(both)
                }
            }
            (_, later) => later,
        };
    }
}

impl Usage {
    /// Whether no count contradicts another.
    fn is_possible(&self) -> bool {
        let is_cached_beyond = self
            .prompt
            .zip(self.cached)
            .is_some_and(|(prompt, cached)| cached > prompt);
        let parts = self.prompt.unwrap_or(0) + self.completion.unwrap_or(0);
        !is_cached_beyond && self.total.is_none_or(|total| total >= parts)
    }

    fn overlaid(self, later: Self) -> Self {
        // A sum is of the counts beside it.
        let has_parts = later.prompt.is_some() || later.completion.is_some();
        Self {
            prompt: later.prompt.or(self.prompt),
            completion: later.completion.or(self.completion),
            total: later.total.or(self.total.filter(|_| !has_parts)),
            cached: later.cached.or(self.cached),
            cache_write_5m: later.cache_write_5m.or(self.cache_write_5m),
            cache_write_1h: later.cache_write_1h.or(self.cache_write_1h),
            reasoning: later.reasoning.or(self.reasoning),
            audio_prompt: later.audio_prompt.or(self.audio_prompt),
            audio_completion: later.audio_completion.or(self.audio_completion),
            doubtful: later.doubtful || self.doubtful,
        }
    }
}

#[cfg(test)]
mod tests;
