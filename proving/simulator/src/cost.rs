//! How long a step takes, from what runs in it.
//!
//! A step that reads prompts costs `base + per_token * tokens + per_pair * pairs`, where a pair is a token read and
//! a token it attends to (the quadratic part of attention). A step that generates costs what its table or its line
//! says of the number of sequences and the tokens they attend to. A step that does both passes over the weights
//! once: the smaller of the two bases is paid once, not twice. Where a token uses only some experts, a step of few tokens
//! does not read them all. `overhead` comes on top of every step.
//! Invariant: pure and monotonic: more work never takes less time (a table is checked for it when it is read).
//! Not here: which work runs together (`scheduler`), reading it from a file (`preset`).

mod table;

pub use table::DecodeTable;

use std::time::Duration;

use crate::scheduler::Load;

/// What the steps of one engine cost.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCost {
    /// Paid by every step: scheduling, launch, sampling. Milliseconds.
    pub overhead_ms: f64,
    /// Reading prompts.
    pub prefill: PrefillCost,
    /// Generating.
    pub decode: DecodeCost,
    /// Of a model with experts, what part of its weights a step reads; without, all of them.
    pub experts: Option<Experts>,
}

/// Weights of which each token uses a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    /// Share of the weights that is experts', 0 to 1.
    pub share: f64,
    /// Chance that a token uses a given expert, 0 to 1.
    pub chance: f64,
}

impl Experts {
    /// Share of all weights that a step reads in which so many tokens choose: each expert is left alone by all of them
    /// with `(1 - chance)^routed`.
    #[must_use]
    pub fn weights_read(&self, routed: u64) -> f64 {
        let left_alone = (1.0 - self.chance).powf(routed as f64);
        1.0 - self.share * left_alone
    }
}

/// What reading prompts costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrefillCost {
    /// One pass over the weights, milliseconds.
    pub base_ms: f64,
    /// For each token read, microseconds.
    pub per_token_us: f64,
    /// For each pair of a token read and a token it attends to, nanoseconds.
    pub per_pair_ns: f64,
}

/// What generating costs.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeCost {
    /// A line in the number of sequences and in the tokens they attend to.
    Line {
        /// One pass over the weights, milliseconds.
        base_ms: f64,
        /// For each sequence, microseconds.
        per_sequence_us: f64,
        /// For each token attended to, nanoseconds.
        per_context_token_ns: f64,
    },
    /// Measured points with lines between them.
    Table(DecodeTable),
}

/// What the server in front of the engine costs each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontendCost {
    /// From arrival to the queue: reading, rendering and tokenising.
    pub before_queue: Duration,
    /// To send one token to its client, one after another for all that a step made.
    pub per_token: Duration,
}

impl StepCost {
    /// Time of a step with this load. Zero for one in which nothing runs.
    #[must_use]
    pub fn of(&self, load: &Load) -> Duration {
        Duration::from_secs_f64(self.ms(load) / 1e3)
    }

    fn ms(&self, load: &Load) -> f64 {
        let base = self.prefill.base_ms.min(self.decode.base_ms());
        let shared = match (load.prefills, load.decodes) {
            (0, 0) => return 0.0,
            (0, _) | (_, 0) => 0.0,
            _ => base,
        };
        let unread = base * (1.0 - self.weights_read(load));
        self.overhead_ms + self.prefill.ms(load) + self.decode.ms(load) - shared - unread
    }

    /// Share of the weights that a step reads.
    pub(crate) fn weights_read(&self, load: &Load) -> f64 {
        let of = |experts: &Experts| experts.weights_read(load.routed);
        self.experts.as_ref().map_or(1.0, of)
    }
}

impl PrefillCost {
    fn ms(&self, load: &Load) -> f64 {
        if load.prefills == 0 {
            return 0.0;
        }
        self.base_ms
            + self.per_token_us * load.prefill_tokens as f64 / 1e3
            + self.per_pair_ns * load.prefill_pairs as f64 / 1e6
    }
}

impl DecodeCost {
    /// The part that does not depend on what runs.
    fn base_ms(&self) -> f64 {
        match self {
            Self::Line { base_ms, .. } => *base_ms,
            Self::Table(table) => table.least_ms(),
        }
    }

    fn ms(&self, load: &Load) -> f64 {
        if load.decodes == 0 {
            return 0.0;
        }
        let (sequences, context) = (f64::from(load.decodes), load.decode_context as f64);
        match self {
            Self::Line {
                base_ms,
                per_sequence_us,
                per_context_token_ns,
            } => base_ms + per_sequence_us * sequences / 1e3 + per_context_token_ns * context / 1e6,
            Self::Table(table) => table.ms(sequences, context / sequences),
        }
    }
}

#[cfg(test)]
mod tests;
