//! An exchange that has begun and must end, in the hands of a worker.
//!
//! Not here: what every host does for one (`policy::hosted`), the steps between (`exchange`).

use std::cell::RefMut;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::clock::Mono;
use policy::counting::Counting;
use policy::exchange::Verdict;
use policy::hosted::{Host, Hosted};
use policy::record::{AttemptRecord, Sink};
use policy::revision::Revision;
use policy::shard::Shard;
use policy::trace::AttemptSpan;
use policy::usage_ledger::UsageLedger;
use wire::head::RequestHead;

use crate::cors::Cors;
use crate::deadline::Deadline;
use crate::reply::RateLimitStatus;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// When an answer that is held back looks for the first time whether its call can be counted; then ever less often.
const FIRST_LOOK_FOR_ROOM: Duration = Duration::from_millis(2);
/// The longest time between two looks.
const LAST_LOOK_FOR_ROOM: Duration = Duration::from_millis(16);

/// The guard: dropped without [`Hosted::finish`], its exchange is aborted.
pub(crate) struct ActiveExchange(Hosted<OnWorker>);

/// What a worker keeps for one exchange.
pub(crate) struct OnWorker {
    pub(super) worker: Rc<Worker>,
    pub(super) view: Rc<WorkerSnapshot>,
    /// Its place among the responses that are read to their end without a client.
    pub(super) reading_on: Option<Box<ReadingOn>>,
    /// Bytes of the request's body that are kept.
    kept: usize,
    /// Of these, what filters made of it for the attempt under way.
    made: usize,
    /// The attempt under way, or the last one, needs the body no more.
    pub(super) is_body_sent: bool,
}

/// A place among the worker's responses that nobody waits for, until it is dropped.
pub(super) struct ReadingOn {
    pub(super) deadline: Deadline,
    worker: Rc<Worker>,
}

impl ReadingOn {
    fn begin(worker: &Rc<Worker>, within: Duration) -> Self {
        worker.read_on_began();
        let mut deadline = Deadline::new(&worker.clock.wheel);
        deadline.set(within);
        Self {
            deadline,
            worker: Rc::clone(worker),
        }
    }
}

impl Drop for ReadingOn {
    fn drop(&mut self) {
        self.worker.read_on_ended();
    }
}

impl OnWorker {
    /// The request's body is kept no longer.
    #[inline]
    fn drop_body(&mut self) {
        self.made = 0;
        self.worker.drop_body(std::mem::take(&mut self.kept));
    }
}

impl Host for OnWorker {
    #[inline(always)]
    fn revision(&self) -> &Arc<Revision> {
        &self.view.revision
    }

    #[inline(always)]
    fn shard(&self) -> RefMut<'_, Shard> {
        self.view.shard.borrow_mut()
    }

    #[inline]
    fn now(&self) -> Mono {
        self.worker.now()
    }

    #[inline]
    fn latest(&self) -> Mono {
        self.worker.clock.latest()
    }

    #[inline]
    fn unix_ms(&self, at: Mono) -> u64 {
        self.worker.clock.wall_ms(at)
    }

    #[inline]
    fn sink(&self, tell: impl FnOnce(&mut dyn Sink)) {
        self.worker.sink(tell);
    }

    #[inline]
    fn ledger<T>(&self, enter: impl FnOnce(&mut dyn UsageLedger) -> T) -> Option<T> {
        self.worker.ledger(enter)
    }

    #[inline(always)]
    fn counts(&self) -> bool {
        self.worker.counts
    }

    #[inline]
    fn counting<T>(&self, hand: impl FnOnce(&mut dyn Counting) -> T) -> Option<T> {
        self.worker.counting(hand)
    }

    #[inline]
    fn attempt_ended(&self, attempt: &AttemptRecord, span: Option<&AttemptSpan>) {
        self.worker.trouble_of(attempt);
        let snapshot = self.view.snapshot();
        self.worker.sink(|sink| {
            sink.attempt(snapshot, attempt);
            if let Some(span) = span {
                sink.span(snapshot, span);
            }
        });
    }

    fn has_stopped(&self) -> bool {
        self.worker.has_stopped()
    }

    #[inline]
    fn began(&self) {
        self.worker.exchange_began();
    }

    #[inline]
    fn over(&mut self) {
        self.drop_body();
        self.reading_on = None;
    }

    #[inline]
    fn ended(&self) {
        self.worker.exchange_ended();
    }
}

impl Deref for ActiveExchange {
    type Target = Hosted<OnWorker>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ActiveExchange {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl ActiveExchange {
    #[inline(always)]
    pub(super) fn begin(
        worker: &Rc<Worker>,
        view: Rc<WorkerSnapshot>,
        head: &RequestHead,
        peer: IpAddr,
    ) -> Self {
        let host = OnWorker {
            worker: Rc::clone(worker),
            view,
            reading_on: None,
            kept: 0,
            made: 0,
            is_body_sent: false,
        };
        Self(Hosted::begin(host, head, peer, worker.clock.arrival()))
    }

    pub(super) fn worker(&self) -> &Rc<Worker> {
        &self.host.worker
    }

    pub(super) fn view(&self) -> &Rc<WorkerSnapshot> {
        &self.host.view
    }

    /// The client left, or takes nothing.
    #[cold]
    pub(super) fn disconnected(&mut self) -> Verdict {
        let (events, reading_on) = (self.meter.events(), self.worker().reading_on());
        let now = self.worker().now();
        let verdict = self.tell_at(now, |exchange, env| {
            exchange.disconnected(events, reading_on, env)
        });
        let host = &mut self.host;
        if let (Verdict::ReadToEnd { within, .. }, None) = (&verdict, &host.reading_on) {
            host.reading_on = Some(Box::new(ReadingOn::begin(&host.worker, *within)));
        }
        verdict
    }

    /// Keeps so many more bytes of the request's body; false where there is no room.
    #[inline]
    pub(super) fn keep_body(&mut self, bytes: usize) -> bool {
        let host = &mut self.host;
        let bound = host.view.snapshot().bounds.bodies_bytes;
        let has_room = host.worker.keep_body(bytes, bound);
        if has_room {
            host.kept += bytes;
        }
        has_room
    }

    /// Keeps what filters made of the request's body in place of what they made before; false where there is no room. For the one body
    /// that a worker keeps there is always some.
    #[cold]
    pub(super) fn keep_made(&mut self, made: &[Bytes], of: &[Bytes]) -> bool {
        let before = std::mem::take(&mut self.host.made);
        self.drop_kept(before);
        // A body that passes as it came is the same bytes.
        let passes = |made: &Bytes| of.iter().any(|piece| piece.as_ptr() == made.as_ptr());
        if made.first().is_none_or(passes) {
            return true;
        }
        let bytes = made.iter().map(Bytes::len).sum();
        let host = &mut self.host;
        let bound = match host.worker.keeps_only(host.kept) {
            true => usize::MAX,
            false => host.view.snapshot().bounds.bodies_bytes,
        };
        let has_room = host.worker.keep_body(bytes, bound);
        if has_room {
            host.kept += bytes;
            host.made = bytes;
        }
        has_room
    }

    /// So much of what was kept is kept no longer.
    #[cold]
    pub(super) fn drop_kept(&mut self, bytes: usize) {
        let host = &mut self.host;
        host.kept = host.kept.saturating_sub(bytes);
        host.worker.drop_body(bytes);
    }

    /// The request's body is kept no longer.
    #[inline]
    pub(super) fn drop_body(&mut self) {
        self.host.drop_body();
    }

    /// Waits until there is room for what there is to count, `most` at most. It is no time of the gate's own.
    #[cold]
    pub(super) async fn await_room_to_count(&mut self, request: &[Bytes], most: Duration) {
        self.hold_back();
        let until = self.worker().now().after(most);
        let mut next = FIRST_LOOK_FOR_ROOM;
        while self.worker().now() < until && self.backpressure(request).is_some() {
            self.worker().timers.sleep(next).await;
            next = (next * 2).min(LAST_LOOK_FOR_ROOM);
        }
        self.resume();
    }

    /// A client that leaves is charged by what was seen of the prompt: whether that is all of it.
    #[cold]
    pub(super) fn look_for_prompt(&mut self, body: &[Bytes]) {
        let view = Rc::clone(self.view());
        self.exchange.look_for_prompt(body, view.snapshot());
    }

    /// No more of the request is needed: it is handed to who counts it, where its model is counted.
    #[inline]
    pub(super) fn count(&mut self, request: Vec<Bytes>) {
        if self.host.is_body_sent {
            self.drop_body();
        }
        self.0.count(request);
    }

    /// What is left of the caller's limits.
    pub(super) fn rate_limits(&self) -> RateLimitStatus<'_> {
        RateLimitStatus::of(&self.exchange, self.view(), self.exchange.timing.mark)
    }

    /// Who may read the answer.
    pub(super) fn cors(&self) -> Cors<'_> {
        let snapshot = self.view().snapshot();
        Cors {
            origins: &snapshot.web.origins,
            page: self.exchange.page(),
            takes_sessions: snapshot.login.is_some(),
        }
    }
}
