//! A request as the scheduler sees it (lengths and the names of its blocks), and the slots in which a step finds each
//! without a search.
//!
//! Invariant: `computed` tokens of a sequence have a place in its table; `sampled` never exceeds `output_tokens`. A
//! slot used again has another epoch, by which work for its former sequence is told from work for this.
//! Not here: text and tokens themselves (the HTTP face), the order in which sequences run (`Scheduler`).

use std::collections::HashMap;

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

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    unused: Vec<u32>,
    by_id: HashMap<RequestId, u32>,
}

#[derive(Debug)]
struct Slot {
    epoch: u64,
    sequence: Option<Sequence>,
}

impl Slots {
    pub(super) fn insert(&mut self, sequence: Sequence) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                epoch: 0,
                sequence: None,
            });
            (self.slots.len() - 1) as u32
        });
        self.by_id.insert(sequence.id, slot);
        let place = &mut self.slots[slot as usize];
        place.epoch += 1;
        place.sequence = Some(sequence);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Sequence> {
        let sequence = self.slots.get_mut(slot as usize)?.sequence.take()?;
        self.by_id.remove(&sequence.id);
        self.unused.push(slot);
        Some(sequence)
    }

    pub(super) fn find(&self, id: RequestId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The sequence there with its epoch.
    pub(super) fn get(&mut self, slot: u32) -> Option<(&mut Sequence, u64)> {
        let place = self.slots.get_mut(slot as usize)?;
        let epoch = place.epoch;
        place.sequence.as_mut().map(|sequence| (sequence, epoch))
    }

    /// The sequence there, if it is still the one of that epoch.
    pub(super) fn at(&mut self, slot: u32, epoch: u64) -> Option<&mut Sequence> {
        let found = self.get(slot).filter(|(_, now)| *now == epoch);
        found.map(|(sequence, _)| sequence)
    }

    pub(super) fn is_used(&self, slot: u32) -> bool {
        let place = self.slots.get(slot as usize);
        place.is_some_and(|place| place.sequence.is_some())
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.slots.iter().filter_map(|slot| slot.sequence.as_ref())
    }
}
