//! The users: whose turn it is, and what they ask.
//!
//! Invariant: a user has one question out at most.
//! Not here: what is measured (`report`).

use std::collections::HashMap;
use std::time::Duration;

use super::{Plan, Turn, VirtualEngine};
use crate::chance::Chance;
use crate::cost::FrontendCost;
use crate::kv::{BlockHash, Chain};
use crate::preset::Preset;
use crate::scheduler::{Request, RequestId};

/// An answer that a user has in full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// It was asked.
    pub(super) asked: Duration,
    /// The question was in the queue.
    pub(super) queued: Duration,
    /// Its first step began.
    pub(super) began: Duration,
    /// The engine had its first token.
    pub(super) made: Duration,
    /// The user had the first token.
    pub(super) first: Duration,
    /// The user had the last token.
    pub(super) last: Duration,
    pub(super) output_tokens: u32,
}

pub(super) struct Crowd<'a> {
    plan: &'a Plan,
    frontend: FrontendCost,
    longest: u32,
    shared: Vec<BlockHash>,
    chance: Chance,
    asked: HashMap<RequestId, Answer>,
    next: u64,
    /// When the server has sent what it was given.
    sent: Duration,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(plan: &'a Plan, preset: &Preset) -> Self {
        let blocks = plan.cached_tokens / preset.scheduler.kv.block_size;
        Self {
            plan,
            frontend: preset.frontend,
            longest: preset.scheduler.max_model_len,
            shared: (1..=u64::from(blocks)).map(BlockHash).collect(),
            chance: Chance::new(plan.seed),
            asked: HashMap::new(),
            next: 0,
            sent: Duration::ZERO,
        }
    }

    /// Everybody comes in, thinking.
    pub(super) fn arrive(&mut self, engine: &mut VirtualEngine) {
        (0..self.plan.users).for_each(|_| self.ask(Duration::ZERO, engine));
    }

    /// One user thinks from `free` on and then asks.
    fn ask(&mut self, free: Duration, engine: &mut VirtualEngine) {
        let id = RequestId(self.next);
        self.next += 1;
        let pause = self.chance.exponential(self.plan.think.as_secs_f64());
        let asked = free + Duration::from_secs_f64(pause);
        let queued = asked + self.frontend.before_queue;
        let prompt_tokens = self.plan.cached_tokens + self.length(self.plan.prompt_tokens);
        let prompt_tokens = prompt_tokens.min(self.longest.saturating_sub(1)).max(1);
        let output_tokens = self
            .length(self.plan.output_tokens)
            .min(self.longest - prompt_tokens);
        let answer = Answer {
            asked,
            queued,
            began: queued,
            made: queued,
            first: queued,
            last: queued,
            output_tokens,
        };
        self.asked.insert(id, answer);
        let chain = Chain::of_blocks(self.shared.clone(), self.next);
        engine.post(
            queued,
            Request {
                id,
                prompt_tokens,
                output_tokens,
                chain,
            },
        );
    }

    fn length(&mut self, mean: u32) -> u32 {
        let drawn = self.chance.lognormal(f64::from(mean), self.plan.variation);
        (drawn.round() as u32).max(1)
    }

    /// Gives the tokens of a step to their users. Those that have all of theirs think again.
    pub(super) fn hear(&mut self, turn: &Turn, engine: &mut VirtualEngine) -> Vec<Answer> {
        for admission in turn
            .step
            .admitted
            .iter()
            .filter(|admission| admission.first)
        {
            if let Some(answer) = self.asked.get_mut(&admission.id) {
                answer.began = turn.began;
            }
        }
        let mut complete = Vec::new();
        for token in &turn.emitted {
            self.sent = self.sent.max(turn.at) + self.frontend.per_token;
            if token.index == 0
                && let Some(answer) = self.asked.get_mut(&token.id)
            {
                (answer.made, answer.first) = (turn.at, self.sent);
            }
            if token.last
                && let Some(mut answer) = self.asked.remove(&token.id)
            {
                answer.last = self.sent;
                complete.push(answer);
                self.ask(self.sent, engine);
            }
        }
        complete
    }
}
