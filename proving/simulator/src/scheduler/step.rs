//! One step: who computes which tokens, and what that amounts to.
//!
//! Invariant: the tokens of a step never exceed the budget, its requests never the sequence limit.
//! Not here: how they are chosen (`choose`), what they cost (`cost`).

use super::RequestId;

/// What runs together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Counts from 0.
    pub number: u64,
    /// One entry for each request, in the order they were chosen.
    pub work: Vec<Work>,
    /// Requests that start in this step, again or for the first time.
    pub admitted: Vec<Admission>,
    /// Requests that lost their blocks and wait again.
    pub preempted: Vec<RequestId>,
}

/// One request's part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Whose.
    pub id: RequestId,
    pub(super) slot: u32,
    pub(super) epoch: u64,
    /// Tokens before these, which are attended to.
    pub context: u32,
    /// Tokens computed: 1 in decode, a chunk in prefill.
    pub tokens: u32,
    /// Whether this reads a prompt, or again what a preemption lost.
    pub prefill: bool,
    /// Whether a token comes out.
    pub samples: bool,
}

/// A request that left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Which.
    pub id: RequestId,
    /// Tokens that the prefix cache spared.
    pub cached_tokens: u32,
    /// False after a preemption.
    pub first: bool,
}

/// A token that came out of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Whose.
    pub id: RequestId,
    /// Counts from 0: the first token of the answer.
    pub index: u32,
    /// The request has all of its tokens and has left the engine.
    pub last: bool,
}

/// A step in figures, on which its cost depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that read a prompt.
    pub prefills: u32,
    /// Tokens they read.
    pub prefill_tokens: u64,
    /// Pairs of a token read and a token it attends to.
    pub prefill_pairs: u64,
    /// Requests that generate one more token.
    pub decodes: u32,
    /// Tokens they attend to, all together.
    pub decode_context: u64,
    /// Tokens computed, each of which chooses among the experts; with ranks in lock-step, those of all.
    pub routed: u64,
}

impl Step {
    /// Adds up what runs together.
    #[must_use]
    pub fn load(&self) -> Load {
        let mut load = Load::default();
        for work in &self.work {
            let (context, tokens) = (u64::from(work.context), u64::from(work.tokens));
            load.routed += tokens;
            if work.prefill {
                load.prefills += 1;
                load.prefill_tokens += tokens;
                load.prefill_pairs += tokens * context + tokens * (tokens + 1) / 2;
            } else {
                load.decodes += 1;
                load.decode_context += context + tokens;
            }
        }
        load
    }

    /// Tokens computed in this step.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.work.iter().map(|work| u64::from(work.tokens)).sum()
    }
}
