//! How an exchange ended that was not refused, and what its record says of that.
//!
//! Not here: refusals and failed attempts, which have codes of their own ([`crate::refusal`]).

use crate::record::Outcome;

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The answer was forwarded to its end.
    Whole {
        /// It was a stream in which the upstream told of an error, as no status can after its head.
        told_error: bool,
    },
    /// The upstream broke off in the middle of its answer.
    Cut,
    /// The client left.
    Left,
    /// The gate stopped: its drain was over.
    Stopped,
}

impl Ending {
    /// The record's outcome, and its code, which is empty where the outcome says all.
    #[must_use]
    pub(super) const fn recorded(self) -> (Outcome, &'static str) {
        match self {
            Self::Whole { told_error: false } => (Outcome::Completed, ""),
            Self::Whole { told_error: true } => (Outcome::Failed, "upstream_error_event"),
            Self::Cut => (Outcome::Failed, "upstream_cut"),
            Self::Left => (Outcome::Aborted, ""),
            Self::Stopped => (Outcome::Failed, "gate_stopped"),
        }
    }
}
