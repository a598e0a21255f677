//! What one thread knows of one profile, and of all of them.
//!
//! Invariant: each request ends in exactly one answer or one failure, or is left at the end.
//! Not here: who sends when (`user`, `lanes`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use experiment::arrivals::Due;
use experiment::certificate::{Certifier, Sent};
use experiment::workload::{SessionCounts, Sessions, Turn};
use tokio::sync::Notify;

use super::lanes::Lanes;
use super::plan::Plan;
use super::timers::Timers;
use crate::client::{Answer, Client, ConnectionSlot, Failure};
use crate::observer::{
    ExchangeTimes, Live, Measure, Observations, ObserveOptions, ObserverBuffers, Record, Records,
    Window,
};
use crate::source::{RequestId, Source};

/// Pause after a connection that could not be opened, so that a dead peer is not a busy loop.
const AFTER_REFUSAL: Duration = Duration::from_millis(10);
/// Pause after a failure where a plan asks for one; it doubles six times, to 6.4 s.
const FIRST_BACK_OFF: Duration = Duration::from_millis(100);

/// What the users of one thread share.
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) client: Client,
    pub(super) timers: Timers,
    pub(super) start: Instant,
    pub(super) window: Window,
    pub(super) places: Vec<ProfileState>,
    /// Requests that this thread may still send.
    pub(super) left: Cell<u64>,
    pub(super) records: RefCell<Option<Records>>,
    /// When requests were due and when they left.
    pub(super) sends: RefCell<Option<Certifier>>,
    /// Told when users are wished for or away.
    pub(super) changed: Notify,
    /// Told when no request may be sent any more and the last one has ended.
    pub(super) exhausted: Notify,
    /// Requests that were allowed and have not ended.
    pub(super) owed: Cell<u64>,
    /// How long this thread did not come to its turn, all in all.
    pub(super) stalled: Cell<Duration>,
    /// Whether it was ended from outside.
    pub(super) is_cut: Cell<bool>,
}

/// What they share of one profile.
pub(super) struct ProfileState {
    pub(super) seen: RefCell<Observations>,
    pub(super) live: Arc<Live>,
    pub(super) tally: Cell<SessionCounts>,
    /// Users that are to be at work.
    pub(super) wanted: Cell<u32>,
    pub(super) under_way: Cell<u64>,
    /// Answers count whenever they end.
    pub(super) holds: bool,
    /// Of an open loop.
    pub(super) lanes: Option<Lanes>,
}

/// A request that was drawn.
pub(super) struct Drawn<'a> {
    shared: &'a Shared,
    profile: usize,
    actor: u64,
    due: Due,
    sent: Sent,
    is_forgotten: bool,
}

/// What became of an exchange.
struct Asked {
    is_good: bool,
    /// Since the start.
    ended: Duration,
    /// Whoever was refused is to send it again.
    again_after: Option<Duration>,
}

impl Asked {
    const fn failed(ended: Duration) -> Self {
        Self {
            is_good: false,
            ended,
            again_after: None,
        }
    }
}

/// Whoever sends one request after another.
pub(super) struct Sender {
    pub(super) profile: usize,
    pub(super) line: ConnectionSlot,
    pub(super) ear: ObserverBuffers,
    failures_in_row: u32,
}

/// The sessions of a profile, as a workload walks them.
pub(super) struct Walked<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) profile: usize,
}

impl Sessions for Walked<'_> {
    fn count(&self) -> u64 {
        self.source.sessions(self.profile)
    }

    fn turns(&self, session: u64) -> u32 {
        self.source.turns(self.profile, session)
    }

    fn think(&self, session: u64, turn: u32) -> Option<Duration> {
        self.source.think(self.profile, session, turn)
    }
}

impl Shared {
    pub(super) fn sessions(&self, profile: usize) -> Walked<'_> {
        Walked {
            source: &*self.plan.source,
            profile,
        }
    }

    /// Since the start.
    pub(super) fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }

    /// Whether another request may be sent at `due`; it is then counted, until it is [`Self::settled`].
    pub(super) fn may_send(&self, profile: usize, due: Instant) -> bool {
        let left = self.left.get();
        if left == 0 || (due >= self.window.end && !self.places[profile].holds) {
            return false;
        }
        self.left.set(left - 1);
        self.owed.set(self.owed.get() + 1);
        true
    }

    pub(super) fn sender(&self, profile: usize, number: u64) -> Sender {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        Sender {
            profile,
            line: self.client.line(number),
            ear: ObserverBuffers::default(),
            failures_in_row: 0,
        }
    }

    /// A request that was drawn, of which the certificate hears whatever becomes of it. `actor` is as the certificate names
    /// it.
    pub(super) const fn drawn(&self, profile: usize, actor: u64, due: Due) -> Drawn<'_> {
        Drawn {
            shared: self,
            profile,
            actor,
            due,
            sent: Sent::Never,
            is_forgotten: false,
        }
    }

    /// A turn, now; whether there was a good answer, and when it ended, since the start. One that is refused for a while is
    /// sent again where the plan heeds that: a request of its own, which no law drew.
    pub(super) async fn ask(
        &self,
        sender: &mut Sender,
        drawn: Drawn<'_>,
        (actor, turn): (u64, &Turn),
    ) -> (bool, Duration) {
        let profile = sender.profile;
        let (mut drawn, mut turn) = (Some(drawn), *turn);
        loop {
            let asked = self.exchange(sender, drawn.take(), (actor, &turn)).await;
            let Some(pause) = asked.again_after else {
                return (asked.is_good, asked.ended);
            };
            let due = Instant::now() + pause;
            self.timers.until(due.min(self.window.end)).await;
            if !self.may_send(profile, due) {
                return (false, self.now());
            }
            turn.due = Due {
                at: due.saturating_duration_since(self.start),
                drawn: false,
                ..turn.due
            };
            self.places[profile].seen.borrow_mut().sent_again += 1;
        }
    }

    /// One exchange, now.
    async fn exchange(
        &self,
        sender: &mut Sender,
        mut drawn: Option<Drawn<'_>>,
        (actor, turn): (u64, &Turn),
    ) -> Asked {
        let profile = sender.profile;
        let (place, traffic) = (&self.places[profile], &self.plan.traffic[profile]);
        let source = &*self.plan.source;
        let due = self.start + turn.due.at;
        // An exchange counts if it was due in the measured time, whenever it ends: without those that end later, slow
        // ones would be missing.
        let counts = place.holds || self.window.holds(due);
        // The generator's part ends here: connecting and waiting for room on a connection are the subject's.
        let turned_to = Instant::now();
        if let Some(drawn) = &mut drawn {
            drawn.sent = Sent::At(turned_to.saturating_duration_since(self.start));
        }
        let lag = turned_to.saturating_duration_since(due);
        let Some(said) = source.turn(profile, turn.session, turn.turn) else {
            place.live.failed(Failure::Source);
            place.seen.borrow_mut().fail(Failure::Source, counts);
            self.settled();
            tokio::time::sleep(AFTER_REFUSAL).await;
            return Asked::failed(self.now());
        };
        place.live.sent(lag, said.payload.len());
        if counts {
            place.seen.borrow_mut().record(Measure::Lag, lag);
        }
        let hears = ObserveOptions {
            answers: traffic.answers,
            expects: traffic.expects.as_deref(),
            usage: self.plan.usage,
            window: self.window,
            counts,
        };
        let reopened = sender.line.reopened;
        let mut hearing = sender.ear.hear(hears, &place.seen, &place.live);
        place.under_way.set(place.under_way.get() + 1);
        let head = said.head.unwrap_or(&traffic.head);
        let id = traffic.request_id.as_ref();
        let id = id.map(|header| (header, request_id(profile, actor, turn)));
        let (line, payload) = (&mut sender.line, &said.payload);
        let outcome = self
            .client
            .exchange(line, (head, id), payload, &mut hearing)
            .await;
        place.under_way.set(place.under_way.get() - 1);
        let (heard, outcome) = hearing.end(outcome);
        if let Some(sent) = heard.sent.filter(|_| counts) {
            let leaving = sent.saturating_duration_since(turned_to);
            place.seen.borrow_mut().record(Measure::Leaving, leaving);
        }
        let reopened = sender.line.reopened - reopened;
        self.count(place, (due, counts), &heard, outcome);
        place.seen.borrow_mut().reopened += reopened;
        drop(drawn);
        if let Some(records) = &mut *self.records.borrow_mut() {
            let mut row = self.row(turn, &heard, outcome);
            (row.profile, row.user) = (u32::try_from(profile).unwrap_or(u32::MAX), actor);
            (row.bytes_up, row.reopened) = (payload.len(), reopened > 0);
            records.push(row);
        }
        self.settled();
        if let Some(pause) = self.again_after(&heard, outcome.err()) {
            return Asked {
                again_after: Some(pause),
                ..Asked::failed(self.now())
            };
        }
        sender.failures_in_row = match outcome {
            Ok(_) => 0,
            Err(_) => sender.failures_in_row + 1,
        };
        if let Some(pause) = self.pause_after(outcome.err(), sender.failures_in_row) {
            tokio::time::sleep(pause).await;
        }
        match outcome {
            Ok(answer) => Asked {
                is_good: true,
                ended: answer.last_byte.saturating_duration_since(self.start),
                again_after: None,
            },
            Err(_) => Asked::failed(self.now()),
        }
    }

    /// How long to wait before the same is sent again.
    fn again_after(&self, heard: &ExchangeTimes, failure: Option<Failure>) -> Option<Duration> {
        let most = self.plan.heeds_retry_after?;
        let said = Duration::from_secs(heard.retry_after_s?.into());
        let is_refused = matches!(failure?, Failure::Status(429 | 503));
        (is_refused && said <= most).then_some(said)
    }

    /// How long to wait after a failure, before anything else.
    fn pause_after(&self, failure: Option<Failure>, in_row: u32) -> Option<Duration> {
        let failure = failure?;
        if self.plan.backs_off {
            return Some(FIRST_BACK_OFF.saturating_mul(1 << in_row.clamp(1, 7) >> 1));
        }
        matches!(failure, Failure::Connect | Failure::Tls).then_some(AFTER_REFUSAL)
    }

    /// A request that was allowed has ended, or will not be sent.
    pub(super) fn settled(&self) {
        self.owed.set(self.owed.get().saturating_sub(1));
        if self.left.get() == 0 && self.owed.get() == 0 {
            self.exhausted.notify_one();
        }
    }

    fn count(
        &self,
        place: &ProfileState,
        (due, counts): (Instant, bool),
        heard: &ExchangeTimes,
        outcome: Result<Answer, Failure>,
    ) {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(failure) => {
                place.live.failed(failure);
                return place.seen.borrow_mut().fail(failure, counts);
            }
        };
        let latency = answer.last_byte - due;
        let body = heard.body.unwrap_or(answer.last_byte);
        let first_token = heard.first_token.unwrap_or(body) - due;
        place.live.answered(latency, first_token);
        let mut seen = place.seen.borrow_mut();
        seen.completed += u64::from(self.window.holds(answer.last_byte));
        let tokens = heard.usage.and_then(|usage| usage.completion);
        let first_output = heard.first_token.unwrap_or(answer.last_byte);
        #[expect(clippy::cast_precision_loss, reason = "tokens up to 2^53")]
        let tokens = tokens.unwrap_or(0) as f64;
        seen.tokens += tokens * self.window.share(first_output, answer.last_byte);
        if !counts {
            return;
        }
        seen.answered += 1;
        if heard.is_empty {
            *seen.empty.entry(heard.finish).or_default() += 1;
        }
        seen.record(Measure::Latency, latency);
        seen.record(Measure::FirstByte, body - due);
        let sent = heard.sent.unwrap_or(due);
        seen.record(Measure::Service, answer.last_byte - sent);
        let head = heard.head.unwrap_or(answer.last_byte);
        seen.record(Measure::Head, head - due);
        if let Some(first) = heard.first_token {
            seen.record(Measure::FirstToken, first - due);
            seen.record(Measure::FirstTokenFromSend, first - sent);
        }
        if let Some(first) = heard.first_visible {
            seen.record(Measure::FirstVisible, first - due);
        }
        if let Some(time) = heard.time_per_token() {
            seen.record(Measure::TimePerToken, time);
        }
    }

    fn row(&self, turn: &Turn, heard: &ExchangeTimes, outcome: Result<Answer, Failure>) -> Record {
        let at = |moment: Instant| ns(moment.saturating_duration_since(self.start));
        let ended = outcome.map_or_else(|_| Instant::now(), |answer| answer.last_byte);
        Record {
            profile: 0,
            user: 0,
            session: turn.session,
            turn: turn.turn,
            intended_ns: ns(turn.due.at),
            sent_ns: heard.sent.map(at),
            head_ns: heard.head.map(at),
            body_ns: heard.body.map(at),
            first_token_ns: heard.first_token.map(at),
            first_visible_ns: heard.first_visible.map(at),
            last_token_ns: heard.last_token.map(at),
            longest_gap_ns: heard.longest_gap.map(ns),
            time_per_token_ns: heard.time_per_token().map(ns),
            ended_ns: at(ended),
            status: heard.status,
            failure: outcome.err(),
            prompt_tokens: heard.usage.and_then(|usage| usage.prompt),
            completion_tokens: heard.usage.and_then(|usage| usage.completion),
            cached_tokens: heard.usage.and_then(|usage| usage.cached()),
            events: heard.events,
            outputs: heard.outputs,
            bytes_up: 0,
            bytes_down: heard.bytes,
            reopened: false,
        }
    }
}

/// As the row of the exchange has it.
fn request_id(profile: usize, actor: u64, turn: &Turn) -> RequestId {
    RequestId {
        profile: u32::try_from(profile).unwrap_or(u32::MAX),
        user: actor,
        session: turn.session,
        turn: turn.turn,
        intended_ns: ns(turn.due.at),
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Drawn<'_> {
    /// Somebody else has it now.
    pub(super) fn hand_over(mut self) {
        self.is_forgotten = true;
    }

    /// It is not to be sent any more.
    pub(super) fn withdraw(mut self) {
        self.sent = Sent::Withdrawn;
    }
}

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        let shared = self.shared;
        // Who still pauses when a run has had enough requests, or was ended from outside, is not late.
        let is_called_off = shared.left.get() == 0 || shared.is_cut.get();
        let sent = match self.sent {
            Sent::Never if is_called_off => Sent::Withdrawn,
            sent => sent,
        };
        if let Some(sends) = shared
            .sends
            .borrow_mut()
            .as_mut()
            .filter(|_| !self.is_forgotten)
        {
            sends.record(self.profile, self.actor, self.due, sent);
        }
    }
}

impl ProfileState {
    /// Adds what became of sessions since `before`, which moves on.
    pub(super) fn tell(&self, before: &mut SessionCounts, now: SessionCounts) {
        if now != *before {
            self.add(SessionCounts {
                sessions: now.sessions - before.sessions,
                repeated: now.repeated - before.repeated,
                abandoned: now.abandoned - before.abandoned,
                skipped_turns: now.skipped_turns - before.skipped_turns,
            });
            *before = now;
        }
    }

    /// Adds what became of sessions.
    pub(super) fn add(&self, counts: SessionCounts) {
        let mut sum = self.tally.get();
        sum.absorb(counts);
        self.tally.set(sum);
    }

    pub(super) fn wants(&self, user: u64) -> bool {
        user < u64::from(self.wanted.get())
    }
}
