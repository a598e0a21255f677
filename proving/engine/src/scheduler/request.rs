//! A request as the scheduler sees it: lengths and the names of its blocks.
//!
//! Invariant: `computed` tokens of a sequence have a place in its table; `sampled` never exceeds `output_tokens`.
//! Not here: text and tokens themselves (the HTTP face).

use crate::kv::{Chain, Table};

/// Names a request among those that are in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request to be scheduled.
#[derive(Clone, Debug)]
pub struct Request {
    /// Unique among the requests in the engine.
    pub id: RequestId,
    /// Length of the prompt; at least 1.
    pub prompt_tokens: u32,
    /// Tokens it is going to generate; at least 1.
    pub output_tokens: u32,
    /// Names of its blocks, by which it may share those of others.
    pub chain: Chain,
}

/// A request that could never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeverFits {
    /// Nothing to compute or nothing to generate.
    #[error(
        "a request needs at least one token of prompt and of output, this one has {prompt} and {output}"
    )]
    Empty {
        /// Prompt tokens.
        prompt: u32,
        /// Output tokens.
        output: u32,
    },
    /// Longer than the model's context.
    #[error(
        "{prompt} prompt and {output} output tokens exceed the context of {max_model_len} tokens"
    )]
    Context {
        /// Prompt tokens.
        prompt: u32,
        /// Output tokens.
        output: u32,
        /// The limit.
        max_model_len: u32,
    },
    /// Larger than the KV cache: it would preempt itself for ever.
    #[error("the request needs {blocks} KV blocks and there are {there_are}")]
    Blocks {
        /// Blocks it would hold at its end.
        blocks: u32,
        /// Blocks that may be given out.
        there_are: u32,
    },
    /// Another request has the same id.
    #[error("request {} is in the engine already", .0.0)]
    IdInUse(RequestId),
}

/// A request in the engine.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) chain: Chain,
    pub(super) table: Table,
    /// Tokens whose keys and values are computed, or will be by a step under way.
    pub(super) computed: u32,
    /// Output tokens that steps, finished or under way, have sampled.
    pub(super) sampled: u32,
    /// Output tokens that finished steps have sampled.
    pub(super) emitted: u32,
    /// Cached tokens when it was first admitted.
    pub(super) first_hit: u32,
    pub(super) was_admitted: bool,
}

impl Sequence {
    pub(super) fn new(request: Request) -> Self {
        Self {
            id: request.id,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            chain: request.chain,
            table: Table::default(),
            computed: 0,
            sampled: 0,
            emitted: 0,
            first_hit: 0,
            was_admitted: false,
        }
    }

    /// Tokens there are: the prompt and what was sampled.
    pub(super) fn tokens(&self) -> u32 {
        self.prompt_tokens + self.sampled
    }

    /// Tokens that wait to be computed. None once the last one is sampled: it is never fed back.
    pub(super) fn pending(&self) -> u32 {
        if self.sampled == self.output_tokens {
            0
        } else {
            self.tokens() - self.computed
        }
    }
}
