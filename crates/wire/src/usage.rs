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
    /// Tokens of hidden reasoning. Most engines count them in `completion` too; some do not.
    pub reasoning: Option<u64>,
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
            (Self::Valid(earlier), Self::Valid(later)) => Self::Valid(earlier.overlaid(later)),
            (_, later) => later,
        };
    }
}

impl Usage {
    fn overlaid(self, later: Self) -> Self {
        Self {
            prompt: later.prompt.or(self.prompt),
            completion: later.completion.or(self.completion),
            total: later.total.or(self.total),
            cached: later.cached.or(self.cached),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }
}

#[cfg(test)]
mod tests;
