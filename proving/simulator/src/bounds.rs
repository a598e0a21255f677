//! What a recording has seen, within which costs that were fitted to it hold.
//!
//! A line through what was measured says nothing of what lies beyond: longer contexts and larger batches are guessed.
//! Invariant: a load within the bounds is one of a kind that the recording had.
//! Not here: the fit (`fit`), who warns (`prove`, the HTTP face).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::fit::Log;
use crate::replay::Replayed;
use crate::scheduler::Load;
use crate::trace::Trace;

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
    /// What these requests were like, and the steps while they were there.
    pub(crate) fn of(trace: &Trace, replayed: &Replayed, range: Range<usize>, steps: &Log) -> Self {
        let requests = trace.requests.get(range.clone()).unwrap_or_default();
        let times = replayed.requests.get(range).unwrap_or_default();
        let lengths = requests.iter().map(|r| r.prompt_tokens + r.output_tokens);
        let from = times.iter().map(|times| times.arrival).min();
        let to = times.iter().map(|times| times.last).max();
        Self {
            sequences: steps.most_decodes(from.unwrap_or_default(), to.unwrap_or_default()),
            context: lengths.max().unwrap_or(0),
        }
    }

    /// Whether a step is of a kind that was not seen: more sequences, or longer ones on average.
    #[must_use]
    pub fn are_left_by(&self, load: &Load) -> bool {
        let mean_context = load.decode_context.checked_div(u64::from(load.decodes));
        load.decodes > self.sequences || mean_context > Some(u64::from(self.context))
    }
}
