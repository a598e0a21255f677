//! The users at work: questions, answers back, and what comes next.
//!
//! Invariant: a user, or a conversation of an open loop, has one question out at most. Nothing is asked before its time.
//! Not here: which engine is asked (`balancer`), what is asked (`conversation`), when users act
//! (`experiment::workload`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use experiment::workload::{Arrival, Arrivals, Load, Part, Visit, Workload};

use super::conversation::{Conversation, Conversations, Lengths};
use super::questions::{Asked, Questions};
use super::{CrowdError, Exchange, Traffic};
use crate::cost::FrontendCost;
use crate::preset::Preset;
use crate::scheduler::{Emitted, Request, RequestId};
use crate::virtual_time::Iteration;

/// Requests of an open loop that may be under way at once.
const MOST_UNDER_WAY: usize = 100_000;

/// What a step brought to users.
#[derive(Default)]
pub(crate) struct Delivered {
    /// Of each first token, the time since its question.
    pub(crate) first_after_s: Vec<f64>,
    pub(crate) answers: Vec<Exchange>,
}

/// A sum and how many it is of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) sum: f64,
    pub(crate) count: u64,
}

/// What an engine's front end saw of its requests since the start, as vLLM's histograms count it; seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) ttft: Sum,
    pub(crate) inter_token: Sum,
    pub(crate) per_output_token: Sum,
    pub(crate) e2e: Sum,
    pub(crate) queue: Sum,
    pub(crate) prefill: Sum,
    pub(crate) decode: Sum,
    pub(crate) inference: Sum,
}

/// A question on its way to an engine.
pub(super) struct Post {
    /// The user asked.
    pub(super) asked: Duration,
    /// It reaches the engine.
    pub(super) at: Duration,
    /// Whole blocks of its prompt.
    pub(super) prompt_blocks: u32,
    pub(super) request: Request,
}

/// Everybody who asks.
pub(super) struct Users {
    frontend: FrontendCost,
    block_size: u32,
    ranks: usize,
    workload: Workload,
    profiles: Vec<Conversations>,
    users: Vec<Member>,
    /// The places of each profile's users, by their numbers.
    numbered: Vec<Vec<usize>>,
    /// How many of each profile are to be at work.
    wanted: Vec<u32>,
    at_work: u32,
    open: Vec<Open>,
    coming: BinaryHeap<Reverse<Coming>>,
    /// Questions that are out; one's place is the lower half of its id.
    waiting: Vec<Option<Waiting>>,
    unused: Vec<u32>,
    /// Questions so far; the upper half of an id.
    next: u64,
    /// When each replica's server has sent what it was given.
    sent: Vec<Duration>,
    told: Vec<Told>,
    /// Every question's moment, in seconds.
    asked_s: Vec<f64>,
}

struct Member {
    profile: usize,
    number: u32,
    questions: Questions,
    /// It has left with this question unasked.
    kept: Option<Asked>,
}

struct Waiting {
    who: Who,
    answer: Exchange,
}

/// An open profile, one arrival ahead.
struct Open {
    profile: usize,
    arrivals: Arrivals,
    ahead: Option<Arrival>,
}

/// A question whose time is not yet.
struct Coming {
    at: Duration,
    number: u64,
    profile: usize,
    who: Who,
    asked: Asked,
}

/// Who asks.
enum Who {
    /// By its place among all users.
    User(usize),
    Visit(Box<(Visit, Option<Conversation>)>),
}

impl Users {
    pub(super) fn new(
        traffic: &Traffic,
        workload: Workload,
        preset: &Preset,
        replicas: usize,
    ) -> Self {
        let block_size = preset.scheduler.kv.block_size;
        let conversations = |(i, profile): (usize, &super::Profile)| {
            let longest = profile.talk.longest(preset);
            Conversations::new(workload.seed, i, profile.talk, longest, block_size)
        };
        let profiles: Vec<Conversations> = traffic
            .profiles
            .iter()
            .enumerate()
            .map(conversations)
            .collect();
        let open = profiles.iter().enumerate().filter_map(|(i, profile)| {
            let mut arrivals = workload.arrivals(i, Part::WHOLE)?;
            Some(Open {
                profile: i,
                ahead: arrivals.next(profile),
                arrivals,
            })
        });
        let ranks = preset.parallelism.data.max(1) as usize;
        Self {
            frontend: preset.frontend,
            block_size: block_size.max(1),
            ranks,
            open: open.collect(),
            users: Vec::new(),
            numbered: vec![Vec::new(); profiles.len()],
            wanted: vec![0; profiles.len()],
            at_work: 0,
            coming: BinaryHeap::new(),
            waiting: Vec::new(),
            unused: Vec::new(),
            next: 0,
            sent: vec![Duration::ZERO; replicas],
            told: vec![Told::default(); replicas * ranks],
            asked_s: Vec::new(),
            workload,
            profiles,
        }
    }

    /// The number of the request of that id among all.
    pub(super) const fn number_of(id: RequestId) -> u64 {
        id.0 >> 32
    }

    pub(super) fn counts(&self) -> &[u32] {
        &self.wanted
    }

    pub(super) const fn at_work(&self) -> u32 {
        self.at_work
    }

    pub(super) fn told(&self) -> &[Told] {
        &self.told
    }

    pub(super) fn asked_s(&self) -> &[f64] {
        &self.asked_s
    }

    /// So many users of each profile from `now` on. Who is new thinks first.
    pub(super) fn wish(&mut self, counts: &[u32], now: Duration) {
        for (profile, &count) in counts.iter().enumerate() {
            let load = self.workload.profiles.get(profile).map(|p| &p.load);
            if !matches!(load, Some(Load::Closed { .. })) || self.wanted[profile] == count {
                continue;
            }
            self.wanted[profile] = count;
            let known = self.numbered[profile].len() as u32;
            for number in 0..known.min(count) {
                self.call_back(self.numbered[profile][number as usize], now);
            }
            for number in known..count {
                self.admit(profile, number, now);
            }
        }
    }

    fn admit(&mut self, profile: usize, number: u32, now: Duration) {
        let Some(user) = self.workload.user(profile, number) else {
            return;
        };
        let place = self.users.len();
        self.users.push(Member {
            profile,
            number,
            questions: Questions::new(self.profiles[profile].clone(), user),
            kept: None,
        });
        self.numbered[profile].push(place);
        self.at_work += 1;
        self.think(place, now);
    }

    fn call_back(&mut self, place: usize, now: Duration) {
        let member = &mut self.users[place];
        let profile = member.profile;
        if let Some(kept) = member.kept.take() {
            self.at_work += 1;
            let asked = Asked {
                thought: None,
                at: now,
                ..kept
            };
            self.come(profile, Who::User(place), asked);
        }
    }

    /// One user thinks from `free` on and then asks.
    fn think(&mut self, place: usize, free: Duration) {
        let member = &mut self.users[place];
        let (profile, asked) = (member.profile, member.questions.next(free));
        if let Some(asked) = asked {
            self.come(profile, Who::User(place), asked);
        }
    }

    fn come(&mut self, profile: usize, who: Who, asked: Asked) {
        let number = self.next;
        self.next += 1;
        self.coming.push(Reverse(Coming {
            at: asked.at,
            number,
            profile,
            who,
            asked,
        }));
    }

    fn next_arrival(&self) -> Option<(Duration, usize)> {
        let ahead = self.open.iter().enumerate();
        ahead
            .filter_map(|(i, open)| Some((open.ahead.as_ref()?.first.due.at, i)))
            .min()
    }

    /// When the next question is asked.
    pub(super) fn next_at(&self) -> Option<Duration> {
        let coming = self.coming.peek().map(|Reverse(coming)| coming.at);
        let arrival = self.next_arrival().map(|(at, _)| at);
        coming.into_iter().chain(arrival).min()
    }

    /// The next question; `None` where who would ask it leaves instead.
    pub(super) fn ask_next(&mut self) -> Result<Option<Post>, CrowdError> {
        let coming = self.coming.peek().map(|Reverse(coming)| coming.at);
        if let Some((at, open)) = self.next_arrival()
            && coming.is_none_or(|coming| at <= coming)
        {
            return self.begin(open);
        }
        let Some(Reverse(coming)) = self.coming.pop() else {
            return Ok(None);
        };
        if let Who::User(place) = coming.who {
            let member = &mut self.users[place];
            if member.number >= self.wanted[coming.profile] {
                member.kept = Some(coming.asked);
                self.at_work -= 1;
                return Ok(None);
            }
        }
        Ok(self.ask(coming.profile, coming.who, &coming.asked))
    }

    /// Begins the next conversation of an open profile.
    fn begin(&mut self, open: usize) -> Result<Option<Post>, CrowdError> {
        let open = &mut self.open[open];
        let profile = open.profile;
        let conversations = &self.profiles[profile];
        let Some(arrival) = open.ahead.take() else {
            return Ok(None);
        };
        open.ahead = open.arrivals.next(conversations);
        let mut now = None;
        let asked = Asked::of(arrival.first, conversations, &mut now);
        let who = Who::Visit(Box::new((arrival.visit, now)));
        let post = asked.and_then(|asked| self.ask(profile, who, &asked));
        let under_way = self.waiting.len() - self.unused.len();
        if under_way > MOST_UNDER_WAY + self.users.len() {
            return Err(CrowdError::Overload);
        }
        Ok(post)
    }

    fn ask(&mut self, profile: usize, who: Who, asked: &Asked) -> Option<Post> {
        let Lengths {
            prompt_tokens,
            output_tokens,
        } = asked.lengths;
        let posted = asked.at + self.frontend.before_queue;
        let (user, conversation) = match &who {
            Who::User(place) => {
                let member = &self.users[*place];
                (Some(member.number), member.questions.conversation()?)
            }
            Who::Visit(visit) => (None, visit.1.as_ref()?),
        };
        let number = self.asked_s.len() as u64;
        let chain = self.profiles[profile].chain(conversation, asked.lengths, number + 1);
        let answer = Exchange {
            profile: profile as u32,
            user,
            session: asked.session,
            turn: asked.turn,
            engine: 0,
            thought: asked.thought,
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
        let id = self.wait(number, Waiting { who, answer });
        Some(Post {
            asked: asked.at,
            at: posted,
            prompt_blocks: prompt_tokens / self.block_size,
            request: Request {
                id,
                prompt_tokens,
                output_tokens,
                chain,
            },
        })
    }

    fn wait(&mut self, number: u64, waiting: Waiting) -> RequestId {
        let place = self.unused.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            (self.waiting.len() - 1) as u32
        });
        self.waiting[place as usize] = Some(waiting);
        RequestId(number << 32 | u64::from(place))
    }

    /// Delivers the tokens of a step to their users. Those that have all of theirs think again.
    pub(super) fn deliver(&mut self, replica: usize, iteration: &Iteration) -> Delivered {
        for admitted in &iteration.admitted {
            let engine = (replica * self.ranks + admitted.rank) as u32;
            if let Some(Some(Waiting { answer, .. })) = self.waiting.get_mut(place_of(admitted.id))
            {
                (answer.engine, answer.queued) = (engine, admitted.queued);
                answer.scheduled = admitted.scheduled;
                answer.cached_tokens = admitted.cached_tokens;
            }
        }
        let mut delivered = Delivered::default();
        let mut sent = self.sent[replica].max(iteration.at);
        for token in &iteration.emitted {
            sent += self.frontend.per_token;
            self.token(token, iteration.at, sent, &mut delivered);
        }
        self.sent[replica] = sent;
        delivered
    }

    fn token(&mut self, token: &Emitted, made: Duration, sent: Duration, to: &mut Delivered) {
        let place = place_of(token.id);
        let Some(Some(Waiting { answer, .. })) = self.waiting.get_mut(place) else {
            return;
        };
        let told = &mut self.told[answer.engine as usize];
        if token.index == 0 {
            (answer.made, answer.first, answer.last) = (made, sent, sent);
            to.first_after_s.push(answer.ttft_s());
            told.ttft.add(answer.ttft_s());
        } else {
            told.inter_token.add((sent - answer.last).as_secs_f64());
            answer.last = sent;
        }
        if token.last {
            let answer = *answer;
            told.ended(&answer);
            to.answers.push(answer);
            self.unused.push(place as u32);
            if let Some(Waiting { who, .. }) = self.waiting[place].take() {
                self.go_on(answer.profile as usize, who, answer.last);
            }
        }
    }

    /// Whoever has its answer thinks again, but for a conversation of an open loop that is over.
    fn go_on(&mut self, profile: usize, who: Who, from: Duration) {
        match who {
            Who::User(place) => self.think(place, from),
            Who::Visit(mut visit) => {
                let conversations = &self.profiles[profile];
                let turn = visit.0.next(from, conversations);
                let asked = turn.and_then(|turn| Asked::of(turn, conversations, &mut visit.1));
                if let Some(asked) = asked {
                    self.come(profile, Who::Visit(visit), asked);
                }
            }
        }
    }
}

const fn place_of(id: RequestId) -> usize {
    (id.0 & 0xffff_ffff) as usize
}

impl Sum {
    pub(crate) fn add(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count += 1;
    }
}

impl Told {
    fn ended(&mut self, answer: &Exchange) {
        let decode = (answer.last - answer.first).as_secs_f64();
        let inference = answer.last.saturating_sub(answer.scheduled);
        self.e2e.add(answer.e2e_s());
        self.queue.add(answer.queue_s());
        self.prefill.add(answer.prefill_s());
        self.decode.add(decode);
        self.inference.add(inference.as_secs_f64());
        if let Some(each) = answer.tpot_s() {
            self.per_output_token.add(each);
        }
    }
}

impl PartialEq for Coming {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Coming {}

impl PartialOrd for Coming {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coming {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
