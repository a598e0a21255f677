//! The users: what each asks, one question after another, and when.
//!
//! Invariant: a user has one question out at most. What it asks, and after which pause, follows from the plan and the user alone,
//! not from when answers come, so that a user asks the same in virtual and in real time.
//! Not here: when users act (`experiment::workload`), what is measured (`report`).

use std::collections::HashMap;
use std::time::Duration;

use experiment::arrivals::{Process, Scope};
use experiment::random::Rng;
use experiment::workload::{Enter, Load, Plain, Profile, Stay, User, Workload};

use super::{Iteration, Plan, VirtualEngine};
use crate::cost::FrontendCost;
use crate::kv::{BlockHash, Chain};
use crate::preset::Preset;
use crate::scheduler::{Request, RequestId};

/// Names the streams of lengths, apart from those of `experiment::workload`.
const STREAM: u64 = 16;

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// When it is asked, since the start.
    pub at: Duration,
    /// Tokens of the prompt, those that all prompts share included.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
}

/// A user's questions. They never end.
#[derive(Clone, Debug)]
pub struct Questions {
    plan: Plan,
    longest: u32,
    user: User,
    lengths: Rng,
}

impl Plan {
    /// The users: a closed loop with exponential pauses, everybody there from the start and thinking.
    #[must_use]
    pub fn workload(&self) -> Workload {
        let load = Load::Closed {
            users: self.users,
            think: Process::Exponential {
                mean_s: self.think.as_secs_f64(),
            },
            enter: Enter::Thinking,
            stay: Stay::Always,
        };
        Workload {
            seed: self.seed,
            ramp: Duration::ZERO,
            profiles: vec![Profile {
                name: "soak".into(),
                load,
                scope: Scope::User,
            }],
        }
    }

    /// What `user` asks, prompt and answer never more than `longest` tokens together.
    #[must_use]
    pub fn questions(&self, user: u32, longest: u32) -> Questions {
        let workload = self.workload();
        Questions {
            plan: self.clone(),
            longest,
            user: workload.user(0, user).expect("its one profile has users"),
            lengths: Rng::stream(self.seed, &[STREAM, u64::from(user)]),
        }
    }
}

impl Questions {
    /// The next question, where the answer before ended (or the user came in) at `from`.
    pub fn ask(&mut self, from: Duration) -> Question {
        let turn = self.user.next(from, &Plain::ONE);
        let at = turn
            .expect("users stay, and their session comes again")
            .due
            .at;
        let prompt_tokens = self.plan.cached_tokens + self.length(self.plan.prompt_tokens);
        let prompt_tokens = prompt_tokens.min(self.longest.saturating_sub(1)).max(1);
        let output_tokens = self
            .length(self.plan.output_tokens)
            .min(self.longest - prompt_tokens);
        Question {
            at,
            prompt_tokens,
            output_tokens,
        }
    }

    fn length(&mut self, mean: u32) -> u32 {
        let drawn = self.lengths.lognormal(f64::from(mean), self.plan.variation);
        (drawn.round() as u32).max(1)
    }
}

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

pub(super) struct Users {
    frontend: FrontendCost,
    shared: Vec<BlockHash>,
    users: Vec<Questions>,
    /// Who asked what.
    asked: HashMap<RequestId, (usize, Answer)>,
    next: u64,
    /// When the server has sent what it was given.
    sent: Duration,
}

impl Users {
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
        let Some(question) = self.users.get_mut(user).map(|user| user.ask(free)) else {
            return;
        };
        let asked = question.at;
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

    /// Delivers the tokens of a step to their users. Those that have all of theirs think again.
    pub(super) fn deliver(
        &mut self,
        iteration: &Iteration,
        engine: &mut VirtualEngine,
    ) -> Vec<Answer> {
        for admitted in &iteration.admitted {
            if let Some((_, answer)) = self.asked.get_mut(&admitted.id) {
                (answer.queued, answer.began) = (admitted.queued, admitted.scheduled);
            }
        }
        let mut complete = Vec::new();
        for token in &iteration.emitted {
            self.sent = self.sent.max(iteration.at) + self.frontend.per_token;
            if token.index == 0
                && let Some((_, answer)) = self.asked.get_mut(&token.id)
            {
                (answer.made, answer.first) = (iteration.at, self.sent);
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
