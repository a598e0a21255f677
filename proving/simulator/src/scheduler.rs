//! Which requests run in the engine's next step, as vLLM's V1 scheduler chooses them.
//!
//! A step has a budget of tokens. Requests that run come first, one token each once their prompt is through; what is
//! left goes to waiting ones, first come, first served, whose prompts may be cut into chunks. When a running request
//! finds no block, the one admitted last gives all of its blocks back and starts over from the front of the queue.
//! The host calls [`Scheduler::step`], lets the step take its time, and calls [`Scheduler::complete`]. Like vLLM's
//! asynchronous scheduling, the next step may be asked for while one is under way ([`MAX_STEPS_UNDER_WAY`]).
//! Invariant: no clock, no randomness, no I/O: the same calls give the same steps; a request that has finished or was
//! aborted leaves no block and no counter behind.
//! Not here: how long a step takes (`cost`), blocks (`kv`), clocks (`virtual_time`, the HTTP face).

mod choose;
mod request;
mod step;

pub use request::{NeverFits, Request, RequestId};
pub use step::{Admission, Emitted, Load, Step, Work};

use std::collections::VecDeque;

use crate::kv::{KvCache, KvConfig};
use request::{Sequence, Slots};

/// Steps that vLLM has under way at most: one on the GPU and one scheduled behind it.
pub const MAX_STEPS_UNDER_WAY: usize = 2;

/// Limits of an engine, named as vLLM names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Most requests in a step.
    pub max_num_seqs: usize,
    /// Most tokens in a step.
    pub max_num_batched_tokens: u32,
    /// Most tokens of prompt and output together.
    pub max_model_len: u32,
    /// A prompt is admitted only when all of it finds blocks (`scheduler_reserve_full_isl`).
    pub reserve_full_prompt: bool,
    /// Schedule a step while the one before runs (`async_scheduling`). The host obeys it by calling
    /// [`Scheduler::step`] again before [`Scheduler::complete`].
    pub async_scheduling: bool,
    /// The KV cache.
    pub kv: KvConfig,
}

/// The requests of one engine.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    kv: KvCache,
    sequences: Slots,
    /// Slots, in order of admission.
    running: Vec<u32>,
    /// Slots, the next to be admitted first.
    waiting: VecDeque<u32>,
    next_step: u64,
    totals: Totals,
}

/// Counts since the start. They never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests accepted by [`Scheduler::submit`].
    pub submitted: u64,
    /// Requests whose last token was emitted.
    pub finished: u64,
    /// Requests ended by [`Scheduler::abort`].
    pub aborted: u64,
    /// Times that a running request lost its blocks.
    pub preemptions: u64,
    /// Prompt tokens looked up in the prefix cache, once for each request.
    pub prefix_queries: u64,
    /// Those of them that were found.
    pub prefix_hits: u64,
    /// Prompt tokens of requests that got their first token.
    pub prompt_tokens: u64,
    /// Those of them that came from the cache.
    pub prompt_tokens_cached: u64,
    /// Tokens generated.
    pub generation_tokens: u64,
}

/// What the engine holds now, and what it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SchedulerStats {
    /// Requests admitted.
    pub running: usize,
    /// Requests that wait for room: vLLM's reason `capacity`. Nothing here waits for anything else, so that
    /// `deferred` is always 0.
    pub waiting: usize,
    /// Share of the KV blocks in use, 0 to 1.
    pub kv_usage: f64,
    /// KV blocks in use.
    pub kv_blocks_used: u32,
    /// Counts since the start.
    pub totals: Totals,
}

impl SchedulerStats {
    /// Of several engines together; KV usage is their mean.
    #[must_use]
    pub fn sum(engines: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut engines_added) = (Self::default(), 0.0);
        for engine in engines {
            engines_added += 1.0;
            sum.running += engine.running;
            sum.waiting += engine.waiting;
            sum.kv_usage += (engine.kv_usage - sum.kv_usage) / engines_added;
            sum.kv_blocks_used += engine.kv_blocks_used;
            sum.totals += engine.totals;
        }
        sum
    }
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.submitted += other.submitted;
        self.finished += other.finished;
        self.aborted += other.aborted;
        self.preemptions += other.preemptions;
        self.prefix_queries += other.prefix_queries;
        self.prefix_hits += other.prefix_hits;
        self.prompt_tokens += other.prompt_tokens;
        self.prompt_tokens_cached += other.prompt_tokens_cached;
        self.generation_tokens += other.generation_tokens;
    }
}

impl Scheduler {
    /// An idle engine.
    #[must_use]
    pub fn new(config: SchedulerConfig) -> Self {
        Self {
            kv: KvCache::new(config.kv),
            config,
            sequences: Slots::default(),
            running: Vec::new(),
            waiting: VecDeque::new(),
            next_step: 0,
            totals: Totals::default(),
        }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// Puts a request at the end of the queue.
    ///
    /// # Errors
    /// When it could never run: no tokens, more than `max_model_len`, more blocks than there are, or an id in use.
    pub fn submit(&mut self, request: Request) -> Result<(), NeverFits> {
        self.check(&request)?;
        let slot = self.sequences.insert(Sequence::new(request));
        self.waiting.push_back(slot);
        self.totals.submitted += 1;
        Ok(())
    }

    fn check(&self, request: &Request) -> Result<(), NeverFits> {
        let (prompt, output) = (request.prompt_tokens, request.output_tokens);
        if prompt == 0 || output == 0 {
            return Err(NeverFits::Empty { prompt, output });
        }
        let max_model_len = self.config.max_model_len;
        if u64::from(prompt) + u64::from(output) > u64::from(max_model_len) {
            return Err(NeverFits::Context {
                prompt,
                output,
                max_model_len,
            });
        }
        let (blocks, there_are) = (self.kv.blocks_for(prompt + output), self.kv.capacity());
        if blocks > there_are {
            return Err(NeverFits::Blocks { blocks, there_are });
        }
        if self.sequences.find(request.id).is_some() {
            return Err(NeverFits::IdInUse(request.id));
        }
        Ok(())
    }

    /// Ends a request wherever it is and frees its blocks. False when there is none of that id: it may just have
    /// finished.
    pub fn abort(&mut self, id: RequestId) -> bool {
        let Some(slot) = self.sequences.find(id) else {
            return false;
        };
        self.running.retain(|&other| other != slot);
        self.waiting.retain(|&other| other != slot);
        self.leave(slot);
        self.totals.aborted += 1;
        true
    }

    fn leave(&mut self, slot: u32) {
        if let Some(mut sequence) = self.sequences.remove(slot) {
            self.kv.release(&mut sequence.table);
        }
    }

    /// Takes a step that has run: every sequence that reached its newest token gets one more. Those that have
    /// all of theirs leave, and their blocks are free.
    pub fn complete(&mut self, step: &Step) -> Vec<Emitted> {
        let mut emitted = Vec::with_capacity(step.work.len());
        for work in step.work.iter().filter(|work| work.samples) {
            let Some(sequence) = self.sequences.at(work.slot, work.epoch) else {
                continue; // aborted meanwhile
            };
            let index = sequence.emitted;
            sequence.emitted += 1;
            let last = sequence.emitted == sequence.output_tokens;
            self.totals.generation_tokens += 1;
            if index == 0 {
                self.totals.prompt_tokens += u64::from(sequence.prompt_tokens);
                self.totals.prompt_tokens_cached += u64::from(sequence.first_hit);
            }
            if last {
                self.leave(work.slot);
                self.totals.finished += 1;
            }
            emitted.push(Emitted {
                id: work.id,
                index,
                last,
            });
        }
        if emitted.iter().any(|token| token.last) {
            let sequences = &self.sequences;
            self.running.retain(|&slot| sequences.is_used(slot));
            self.waiting.retain(|&slot| sequences.is_used(slot));
        }
        emitted
    }

    /// What the engine holds now, and what it has done.
    #[must_use]
    pub fn stats(&self) -> SchedulerStats {
        SchedulerStats {
            running: self.running.len(),
            waiting: self.waiting.len(),
            kv_usage: self.kv.usage(),
            kv_blocks_used: self.kv.capacity() - self.kv.free(),
            totals: self.totals,
        }
    }

    /// Forgets the prefixes that the KV cache holds. False, and nothing forgotten, while blocks are in use.
    pub fn reset_prefix_cache(&mut self) -> bool {
        self.kv.reset()
    }

    /// Requests that have neither finished nor been aborted.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.sequences.len()
    }

    /// Checks what has to hold between any two calls. Says what is wrong; for tests.
    ///
    /// # Errors
    /// Names the first block, count or queue that is not as it has to be.
    pub fn audit(&self) -> Result<(), String> {
        self.kv
            .audit(self.sequences.iter().map(|sequence| &sequence.table))?;
        let queued = self.running.len() + self.waiting.len();
        if queued != self.sequences.len() {
            return Err(format!(
                "{} requests, {queued} queued",
                self.sequences.len()
            ));
        }
        let totals = self.totals;
        if totals.submitted != totals.finished + totals.aborted + queued as u64 {
            return Err(format!(
                "requests went missing: {totals:?} and {queued} queued"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
