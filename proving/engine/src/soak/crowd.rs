//! The users: whose turn it is.
//!
//! Invariant: a user has one question out at most.
//! Not here: what they ask (`question`), what is measured (`report`).

use std::collections::HashMap;
use std::time::Duration;

use super::{Plan, Questions, Turn, VirtualEngine};
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

pub(super) struct Crowd {
    frontend: FrontendCost,
    shared: Vec<BlockHash>,
    users: Vec<Questions>,
    /// Who asked what.
    asked: HashMap<RequestId, (usize, Answer)>,
    next: u64,
    /// When the server has sent what it was given.
    sent: Duration,
}

impl Crowd {
    pub(super) fn new(plan: &Plan, preset: &Preset) -> Self {
        let blocks = plan.cached_tokens / preset.scheduler.kv.block_size;
        let longest = preset.scheduler.max_model_len;
        Self {
            frontend: preset.frontend,
            shared: (1..=u64::from(blocks)).map(BlockHash).collect(),
            users: (0..plan.users)
                .map(|user| plan.questions(user, longest))
                .collect(),
            asked: HashMap::new(),
            next: 0,
            sent: Duration::ZERO,
        }
    }

    /// Everybody comes in, thinking.
    pub(super) fn arrive(&mut self, engine: &mut VirtualEngine) {
        (0..self.users.len()).for_each(|user| self.ask(user, Duration::ZERO, engine));
    }

    /// One user thinks from `free` on and then asks.
    fn ask(&mut self, user: usize, free: Duration, engine: &mut VirtualEngine) {
        let id = RequestId(self.next);
        self.next += 1;
        let Some(question) = self.users.get_mut(user).map(Questions::ask) else {
            return;
        };
        let asked = free + question.pause;
        let queued = asked + self.frontend.before_queue;
        let answer = Answer {
            asked,
            queued,
            began: queued,
            made: queued,
            first: queued,
            last: queued,
            output_tokens: question.output_tokens,
        };
        self.asked.insert(id, (user, answer));
        let chain = Chain::of_blocks(self.shared.clone(), self.next);
        engine.post(
            queued,
            Request {
                id,
                prompt_tokens: question.prompt_tokens,
                output_tokens: question.output_tokens,
                chain,
            },
        );
    }

    /// Gives the tokens of a step to their users. Those that have all of theirs think again.
    pub(super) fn hear(&mut self, turn: &Turn, engine: &mut VirtualEngine) -> Vec<Answer> {
        for admission in turn
            .step
            .admitted
            .iter()
            .filter(|admission| admission.first)
        {
            if let Some((_, answer)) = self.asked.get_mut(&admission.id) {
                answer.began = turn.began;
            }
        }
        let mut complete = Vec::new();
        for token in &turn.emitted {
            self.sent = self.sent.max(turn.at) + self.frontend.per_token;
            if token.index == 0
                && let Some((_, answer)) = self.asked.get_mut(&token.id)
            {
                (answer.made, answer.first) = (turn.at, self.sent);
            }
            if token.last
                && let Some((user, mut answer)) = self.asked.remove(&token.id)
            {
                answer.last = self.sent;
                complete.push(answer);
                self.ask(user, self.sent, engine);
            }
        }
        complete
    }
}
