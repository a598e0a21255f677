//! What a recording has seen, within which costs that were fitted to it hold.
//!
//! A line through what was measured says nothing of what lies beyond: longer contexts and larger batches are guessed.
//! Invariant: a load within the bounds is one of a kind that the recording had.
//! Not here: the fit (`fit`), who warns (`prove`, the HTTP face).

use serde::{Deserialize, Serialize};

use crate::scheduler::Load;

/// The most that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Sequences that generated in one step.
    pub sequences: u32,
    /// Tokens of a prompt and its answer.
    pub context: u32,
}

impl Bounds {
    /// Whether a step is of a kind that was not seen: more sequences, or longer ones on average.
    #[must_use]
    pub fn are_left_by(&self, load: &Load) -> bool {
        let mean_context = load.decode_context.checked_div(u64::from(load.decodes));
        load.decodes > self.sequences || mean_context > Some(u64::from(self.context))
    }
}
