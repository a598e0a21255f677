//! Token usage as an engine reports it, in any of the dialects that engines speak.
//!
//! Invariant: each member is judged by itself: what can be true is kept, what cannot is dropped and makes the report
//! doubtful. A report of which neither sum can be read is `Invalid` and a missing one `Absent`; neither ever becomes zero. What is an error
//! alone, or nothing, is `NoAnswer`.
//! Not here: counting or estimating, what a call can hold (`policy`), usage in streams (`sse`).

mod cache_writes;
mod count;
mod iterations;
mod judge;
mod list;
mod modality;
mod read;
mod refusal;
mod unary;

pub(crate) use read::Report;
pub use read::read;
pub(crate) use refusal::Beginning;
pub use unary::UnaryUsage;

/// The most tokens that any one count may claim.
pub const TOKEN_LIMIT: u64 = 1 << 40;
/// The most bytes of a usage object that are read.
pub const USAGE_LIMIT_BYTES: usize = 64 * 1024;

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
    /// That came on top of what `completion` said, by the engine's own sum: a cap of the call's is none of it.
    pub is_reasoning_on_top: bool,
    /// Audio tokens of the prompt.
    pub audio_prompt: Option<u64>,
    /// Audio tokens of the completion.
    pub audio_completion: Option<u64>,
    /// What it says in place of `prompt`, where that is a whole number that cannot be true: kept, never believed.
    pub prompt_said: Option<u64>,
    /// What it says in place of `completion`, likewise.
    pub completion_said: Option<u64>,
    /// Units of search that it is billed by; 0 where none is told.
    pub searches: u32,
    /// Something of it cannot be true and was dropped, or its counts do not add up.
    pub doubtful: bool,
    /// Its answer tells more than is here, or may do so: what could not be read, since it is too long, too deep, or no JSON where it stands.
    pub is_unread: bool,
}

impl Reading {
    /// What cannot be read of an answer that may have told its usage.
    pub(crate) const UNREAD: Self = Self::Invalid(Usage {
        prompt: None,
        completion: None,
        total: None,
        cached: None,
        cache_write_5m: None,
        cache_write_1h: None,
        reasoning: None,
        is_reasoning_on_top: false,
        audio_prompt: None,
        audio_completion: None,
        prompt_said: None,
        completion_said: None,
        searches: 0,
        doubtful: true,
        is_unread: true,
    });

    /// Whether more was told, or may have been, than could be read.
    #[must_use]
    pub const fn is_unread(&self) -> bool {
        match self {
            Self::Valid(usage) | Self::Invalid(usage) => usage.is_unread,
            Self::Absent | Self::NoAnswer => false,
        }
    }
}

/// What a response says of its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Counts that can be true; of what was said beside them and cannot, `doubtful` tells.
    Valid(Usage),
    /// Neither the sum of the prompt nor that of the completion is a count: negative, fractional, too large or no number.
    /// What is a whole number all the same is here to be kept and not to be believed.
    Invalid(Usage),
    /// Nothing.
    #[default]
    Absent,
    /// There is no answer that could have any: its body is empty, or an error alone.
    NoAnswer,
}

#[cfg(test)]
mod tests;
