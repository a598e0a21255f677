//! The users at work: questions to the engine, answers back, and what comes next.
//!
//! Invariant: a user, or a conversation of an open loop, has one question out at most. An open loop's arrivals are
//! given to the engine in time and no earlier.
//! Not here: what is asked (`conversation`), when users act (`experiment::workload`), what is measured (`report`).

use std::collections::HashMap;
use std::time::Duration;

use experiment::workload::{Arrival, Arrivals, Part, Turn, Visit};

use super::conversation::{Conversation, Conversations, Lengths};
use super::plan::Questions;
use super::{Iteration, Soak, SoakError, VirtualEngine};
use crate::cost::FrontendCost;
use crate::preset::Preset;
use crate::scheduler::{Request, RequestId};

/// Requests of an open loop that may be under way at once.
const MOST_UNDER_WAY: usize = 100_000;

/// A question with its place in its conversation.
pub(super) struct Asked {
    /// What the pause counted from.
    pub(super) from: Duration,
    pub(super) at: Duration,
    pub(super) lengths: Lengths,
}

/// An answer that a user has in full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Whose.
    pub(super) profile: usize,
    /// The pause before it, or the gap between two arrivals.
    pub(super) thought: Duration,
    /// It was asked.
    pub(super) asked: Duration,
    /// The engine took it from its inbox.
    pub(super) queued: Duration,
    /// Its first step was chosen.
    pub(super) scheduled: Duration,
    /// The engine had its first token.
    pub(super) made: Duration,
    /// The user had the first token.
    pub(super) first: Duration,
    /// The user had the last token.
    pub(super) last: Duration,
    pub(super) prompt_tokens: u32,
    pub(super) cached_tokens: u32,
    pub(super) output_tokens: u32,
}

/// What a step brought to users.
#[derive(Default)]
pub(super) struct Delivered {
    /// Of each first token, the time since its question.
    pub(super) first_after_s: Vec<f64>,
    pub(super) answers: Vec<Answer>,
}

/// Everybody who asks.
pub(super) struct Users {
    frontend: FrontendCost,
    profiles: Vec<Conversations>,
    /// With their profiles.
    users: Vec<(usize, Questions)>,
    open: Vec<Open>,
    /// Who waits for what.
    waiting: HashMap<RequestId, (Who, Answer)>,
    next: u64,
    /// When the server has sent what it was given.
    sent: Duration,
    /// Every question's moment, in seconds.
    pub(super) asked_s: Vec<f64>,
}

/// An open profile, one arrival ahead.
struct Open {
    profile: usize,
    arrivals: Arrivals,
    ahead: Option<Arrival>,
}

/// Who has asked.
enum Who {
    /// By its place among all users.
    User(usize),
    Visit(Box<(Visit, Option<Conversation>)>),
}

impl Asked {
    /// The question that a turn stands for; `now` is the conversation, which a first turn begins.
    pub(super) fn of(
        turn: Turn,
        conversations: &Conversations,
        now: &mut Option<Conversation>,
    ) -> Option<Self> {
        if turn.turn == 0 {
            *now = Some(conversations.begin(turn.session));
        }
        Some(Self {
            from: turn.due.from,
            at: turn.due.at,
            lengths: now.as_mut()?.next()?,
        })
    }
}

impl Users {
    pub(super) fn new(soak: &Soak, preset: &Preset) -> Self {
        let workload = soak.traffic.workload(soak.users, soak.seed);
        let block_size = preset.scheduler.kv.block_size;
        let conversations = |(i, profile): (usize, &super::Profile)| {
            let longest = profile.talk.longest(preset);
            Conversations::new(soak.seed, i, profile.talk, longest, block_size)
        };
        let profiles: Vec<_> = soak
            .traffic
            .profiles
            .iter()
            .enumerate()
            .map(conversations)
            .collect();
        let users = profiles.iter().enumerate().flat_map(|(i, profile)| {
            let users = workload.users(i, Part::WHOLE);
            users.map(move |user| (i, Questions::new(profile.clone(), user)))
        });
        let open = profiles.iter().enumerate().filter_map(|(i, profile)| {
            let mut arrivals = workload.arrivals(i, Part::WHOLE)?;
            Some(Open {
                profile: i,
                ahead: arrivals.next(profile),
                arrivals,
            })
        });
        Self {
            frontend: preset.frontend,
            users: users.collect(),
            open: open.collect(),
            profiles,
            waiting: HashMap::new(),
            next: 0,
            sent: Duration::ZERO,
            asked_s: Vec::new(),
        }
    }

    /// Users of each profile.
    pub(super) fn count(&self) -> Vec<u32> {
        let mut counts = vec![0; self.profiles.len()];
        self.users
            .iter()
            .for_each(|(profile, _)| counts[*profile] += 1);
        counts
    }

    /// Users come in, thinking: one of that profile and number at that time.
    pub(super) fn arrive(
        &mut self,
        engine: &mut VirtualEngine,
        when: impl Fn(usize, u32) -> Duration,
    ) {
        let mut numbers = vec![0; self.profiles.len()];
        for user in 0..self.users.len() {
            let profile = self.users[user].0;
            let from = when(profile, numbers[profile]);
            numbers[profile] += 1;
            self.think(user, from, engine);
        }
    }

    /// When the next conversation of an open profile begins.
    pub(super) fn next_arrival(&self) -> Option<Duration> {
        let ahead = self.open.iter().filter_map(|open| open.ahead.as_ref());
        ahead.map(|arrival| arrival.first.due.at).min()
    }

    /// Begins the conversations that are due by then.
    pub(super) fn begin_until(
        &mut self,
        until: Duration,
        engine: &mut VirtualEngine,
    ) -> Result<(), SoakError> {
        for i in 0..self.open.len() {
            let profile = self.open[i].profile;
            while let Some(arrival) = self.open[i].ahead.take_if(|a| a.first.due.at <= until) {
                let conversations = &self.profiles[profile];
                let mut now = None;
                let asked = Asked::of(arrival.first, conversations, &mut now);
                self.open[i].ahead = self.open[i].arrivals.next(&self.profiles[profile]);
                if let Some(asked) = asked {
                    let who = Who::Visit(Box::new((arrival.visit, now)));
                    self.ask(profile, who, &asked, engine);
                }
                if self.waiting.len() > MOST_UNDER_WAY + self.users.len() {
                    return Err(SoakError::Overload);
                }
            }
        }
        Ok(())
    }

    /// One user thinks from `free` on and then asks.
    fn think(&mut self, user: usize, free: Duration, engine: &mut VirtualEngine) {
        let Some((profile, questions)) = self.users.get_mut(user) else {
            return;
        };
        let (profile, asked) = (*profile, questions.next(free));
        if let Some(asked) = asked {
            self.ask(profile, Who::User(user), &asked, engine);
        }
    }

    fn ask(&mut self, profile: usize, who: Who, asked: &Asked, engine: &mut VirtualEngine) {
        let id = RequestId(self.next);
        self.next += 1;
        let Lengths {
            prompt_tokens,
            output_tokens,
        } = asked.lengths;
        let posted = asked.at + self.frontend.before_queue;
        let conversation = match &who {
            Who::User(user) => self.users[*user].1.conversation(),
            Who::Visit(visit) => visit.1.as_ref(),
        };
        let Some(conversation) = conversation else {
            return;
        };
        let chain = self.profiles[profile].chain(conversation, asked.lengths, self.next);
        let answer = Answer {
            profile,
            thought: asked.at - asked.from,
            asked: asked.at,
            queued: posted,
            scheduled: posted,
            made: posted,
            first: posted,
            last: posted,
            prompt_tokens,
            cached_tokens: 0,
            output_tokens,
        };
        self.asked_s.push(asked.at.as_secs_f64());
        self.waiting.insert(id, (who, answer));
        engine.post(
            posted,
            Request {
                id,
                prompt_tokens,
                output_tokens,
                chain,
            },
        );
    }

    /// Delivers the tokens of a step to their users. Those that have all of theirs think again.
    pub(super) fn deliver(
        &mut self,
        iteration: &Iteration,
        engine: &mut VirtualEngine,
    ) -> Delivered {
        for admitted in &iteration.admitted {
            if let Some((_, answer)) = self.waiting.get_mut(&admitted.id) {
                answer.queued = admitted.queued;
                answer.scheduled = admitted.scheduled;
                answer.cached_tokens = admitted.cached_tokens;
            }
        }
        let mut delivered = Delivered::default();
        for token in &iteration.emitted {
            self.sent = self.sent.max(iteration.at) + self.frontend.per_token;
            if token.index == 0
                && let Some((_, answer)) = self.waiting.get_mut(&token.id)
            {
                (answer.made, answer.first) = (iteration.at, self.sent);
                let after = self.sent - answer.asked;
                delivered.first_after_s.push(after.as_secs_f64());
            }
            if token.last
                && let Some((who, mut answer)) = self.waiting.remove(&token.id)
            {
                answer.last = self.sent;
                delivered.answers.push(answer);
                self.go_on(answer.profile, who, engine);
            }
        }
        delivered
    }

    /// Whoever has its answer thinks again, but for a conversation of an open loop that is over.
    fn go_on(&mut self, profile: usize, who: Who, engine: &mut VirtualEngine) {
        match who {
            Who::User(user) => self.think(user, self.sent, engine),
            Who::Visit(mut visit) => {
                let conversations = &self.profiles[profile];
                let turn = visit.0.next(self.sent, conversations);
                let asked = turn.and_then(|turn| Asked::of(turn, conversations, &mut visit.1));
                if let Some(asked) = asked {
                    self.ask(profile, Who::Visit(visit), &asked, engine);
                }
            }
        }
    }
}
