//! An exchange that has begun and must end: policy's machine, and what its host keeps for it.
//!
//! Not here: the steps between (`exchange`).

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::clock::Mono;
use policy::counting::{Begun, CountCapture, Uncounted};
use policy::exchange::{Env, Exchange, Verdict, certain};
use policy::refusal::Refusal;
use policy::usage_ledger::{Entry, Estimate, OnDurable};
use wire::head::RequestHead;
use wire::meter::Meter;

use crate::cors::Cors;
use crate::deadline::Deadline;
use crate::reply::RateLimitStatus;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// How often an open stream notes in the ledger how far it has come.
const NOTE_EVERY: Duration = Duration::from_secs(5);
/// When an answer that is held back looks for the first time whether its call can be counted; then ever less often.
const FIRST_LOOK_FOR_ROOM: Duration = Duration::from_millis(2);
/// The longest time between two looks.
const LAST_LOOK_FOR_ROOM: Duration = Duration::from_millis(16);

/// The guard: dropped without [`ActiveExchange::finish`], its exchange is aborted.
pub(crate) struct ActiveExchange {
    pub(super) worker: Rc<Worker>,
    pub(super) view: Rc<WorkerSnapshot>,
    pub(super) exchange: Exchange,
    /// Reads the response for its usage.
    pub(super) meter: Meter,
    /// Its entry in the ledger, once it was let in and where there is one.
    entry: Option<Entry>,
    /// When it next notes there how far it has come.
    note_at: Option<Mono>,
    /// What is kept of the response for who counts it.
    capture: Option<Box<CountCapture>>,
    /// Its place among the responses that are read to their end without a client.
    pub(super) reading_on: Option<Box<ReadingOn>>,
    /// Bytes of the request's body that are kept.
    kept: usize,
    /// The attempt under way, or the last one, needs the body no more.
    pub(super) is_body_sent: bool,
    is_over: bool,
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

impl ActiveExchange {
    #[inline(always)]
    pub(super) fn begin(
        worker: &Rc<Worker>,
        view: Rc<WorkerSnapshot>,
        head: &RequestHead,
        peer: IpAddr,
    ) -> Self {
        let now = worker.clock.arrival();
        worker.exchange_began();
        Self {
            exchange: {
                let mut shard = view.shard.borrow_mut();
                let env = &mut Env {
                    snapshot: view.snapshot(),
                    levels: &view.revision.levels,
                    shard: &mut shard,
                    now,
                };
                Exchange::begin(head, peer, worker.clock.wall_ms(now), env)
            },
            worker: Rc::clone(worker),
            view,
            meter: Meter::default(),
            entry: None,
            note_at: None,
            capture: None,
            reading_on: None,
            kept: 0,
            is_body_sent: false,
            is_over: false,
        }
    }

    /// What follows from an event that happened when the gate's own time last began to run.
    #[inline(always)]
    pub(super) fn tell<T>(&mut self, event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> T) -> T {
        let now = self.exchange.timing.mark;
        self.tell_at(now, event)
    }

    /// What follows from an event.
    #[inline(always)]
    pub(super) fn tell_at<T>(
        &mut self,
        now: Mono,
        event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> T,
    ) -> T {
        let mut env = Env {
            snapshot: self.view.snapshot(),
            levels: &self.view.revision.levels,
            shard: &mut self.view.shard.borrow_mut(),
            now,
        };
        event(&mut self.exchange, &mut env)
    }

    /// Refuses what cannot be read, or for what there is no room.
    #[cold]
    pub(super) fn refuse_unread(&mut self, refusal: Refusal) -> Verdict {
        self.exchange.refuse_unread(refusal)
    }

    /// What was waited for did not come in time.
    #[cold]
    pub(super) fn stalled(&mut self) -> Verdict {
        self.tell(|exchange, env| exchange.stalled(env))
    }

    /// The client left, or takes nothing.
    #[cold]
    pub(super) fn disconnected(&mut self) -> Verdict {
        let (events, reading_on) = (self.meter.events(), self.worker.reading_on());
        let now = self.worker.now();
        let verdict = self.tell_at(now, |exchange, env| {
            exchange.disconnected(events, reading_on, env)
        });
        if let (Verdict::ReadToEnd { within, .. }, None) = (&verdict, &self.reading_on) {
            self.reading_on = Some(Box::new(ReadingOn::begin(&self.worker, *within)));
        }
        verdict
    }

    /// Keeps so many more bytes of the request's body; false where there is no room.
    #[inline]
    pub(super) fn keep_body(&mut self, bytes: usize) -> bool {
        let bound = self.view.snapshot().bounds.bodies_bytes;
        let has_room = self.worker.keep_body(bytes, bound);
        if has_room {
            self.kept += bytes;
        }
        has_room
    }

    /// The request's body is kept no longer.
    #[inline]
    pub(super) fn drop_body(&mut self) {
        self.worker.drop_body(std::mem::take(&mut self.kept));
    }

    /// Enters it in the ledger. Whether there is one.
    pub(super) fn enter(&mut self, estimate: Estimate, told: Option<OnDurable>) {
        let (snapshot, record) = (self.view.snapshot(), self.exchange.record());
        let ledger = &self.worker;
        self.entry = ledger.ledger(|ledger| ledger.admit(snapshot, record, estimate, told));
    }

    /// Its entry is worth nothing; `is_late`: it may reach the disk yet.
    #[cold]
    pub(super) fn withdraw(&mut self, is_late: bool) {
        if let Some(entry) = self.entry.take()
            && is_late
        {
            self.worker.ledger(|ledger| ledger.withdraw(entry));
        }
    }

    /// How long the answer may be held back, because there is no room for what there is to count.
    #[inline]
    pub(super) fn backpressure(&self, request: &[Bytes]) -> Option<Duration> {
        if !self.worker.counts {
            return None;
        }
        let (of, exchange) = (self.view.snapshot(), &self.exchange);
        let counts = exchange.is_to_be_counted(of);
        let asked = self.worker.counting(|counting| {
            counts.then(|| counting.backpressure(of, exchange.record(), request))
        });
        asked.flatten().flatten()
    }

    /// Waits until there is room for what there is to count, `most` at most. It is no time of the gate's own.
    #[cold]
    pub(super) async fn await_room_to_count(&mut self, request: &[Bytes], most: Duration) {
        // What is dropped while it waits is not counted either.
        self.exchange.found_no_room_to_count();
        self.worker.counting(|counting| counting.held_back());
        self.exchange.timing.pause(self.worker.now());
        let until = self.worker.now().after(most);
        let mut next = FIRST_LOOK_FOR_ROOM;
        while self.worker.now() < until && self.backpressure(request).is_some() {
            self.worker.timers.sleep(next).await;
            next = (next * 2).min(LAST_LOOK_FOR_ROOM);
        }
        self.exchange.timing.resume(self.worker.now());
    }

    /// No more of the request is needed: it is handed to who counts it, where its model is counted.
    pub(super) fn count(&mut self, request: Vec<Bytes>) {
        if self.is_body_sent {
            self.drop_body();
        }
        if !self.worker.counts {
            return;
        }
        let (of, exchange) = (self.view.snapshot(), &self.exchange);
        let begun = self.worker.counting(|counting| {
            let counts = exchange.is_to_be_counted(of);
            counts.then(|| counting.begin(of, exchange.record(), request))
        });
        match begun.flatten() {
            Some(Begun::Counted(capture)) => {
                self.exchange.found_room_to_count();
                self.capture = Some(capture);
            }
            Some(Begun::NoRoom) => self.exchange.found_no_room_to_count(),
            Some(Begun::NotCounted) | None => {}
        }
    }

    /// This was forwarded.
    #[inline]
    pub(super) fn forwarded(&mut self, data: &[u8]) {
        self.exchange.forwarded(data.len() as u64);
        if let Some(capture) = &mut self.capture
            && capture.keep(self.meter.text(data))
        {
            self.worker.counting(|counting| counting.more(capture));
        }
    }

    /// A stream begins: from now on it notes in the ledger how far it has come.
    pub(super) fn begin_notes(&mut self) {
        let is_stream = self.meter.events().is_some() && self.entry.is_some();
        self.note_at = is_stream.then(|| self.worker.clock.latest().after(NOTE_EVERY));
    }

    /// Notes it when it is time.
    #[inline]
    pub(super) fn note(&mut self) {
        if let (Some(due), Some(entry)) = (self.note_at, self.entry) {
            let now = self.worker.clock.latest();
            if now >= due {
                self.note_at = Some(now.after(NOTE_EVERY));
                let tokens = certain(&self.meter.so_far());
                let bytes = self.exchange.record().bytes_out;
                self.worker
                    .ledger(|ledger| ledger.progress(entry, tokens, bytes));
            }
        }
    }

    /// What is left of the caller's limits.
    pub(super) fn rate_limits(&self) -> RateLimitStatus<'_> {
        RateLimitStatus::of(&self.exchange, &self.view, self.exchange.timing.mark)
    }

    /// Who may read the answer.
    pub(super) fn cors(&self) -> Cors<'_> {
        let snapshot = self.view.snapshot();
        Cors {
            origins: &snapshot.web.origins,
            page: self.exchange.page(),
            takes_sessions: snapshot.login.is_some(),
        }
    }

    /// Ends the exchange: settles, and hands on its record. Only the first end counts.
    ///
    /// By reference: the whole of it would be copied, half a kilobyte.
    pub(super) fn finish(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.drop_body();
        let out = self.exchange.timing.out;
        let (view, worker) = (&self.view, &self.worker);
        let mut env = Env {
            snapshot: view.snapshot(),
            levels: &view.revision.levels,
            shard: &mut view.shard.borrow_mut(),
            now: out.unwrap_or_else(|| worker.now()),
        };
        let is_counted = self.capture.is_some();
        let finished = self.exchange.finish(&mut self.meter, is_counted, &mut env);
        // Before the record, so that whoever reads that finds nothing running.
        self.reading_on = None;
        let (snapshot, record) = (view.snapshot(), self.exchange.record());
        worker.sink(|sink| {
            if let Some(rest) = finished.rest {
                sink.abandoned(rest);
            }
            if let Some(span) = &finished.span {
                sink.span(snapshot, span);
            }
            if !finished.awaits_count {
                sink.exchange(snapshot, record);
            }
        });
        let has_row = self.entry.is_some();
        if let Some(mut entry) = self.entry.take() {
            entry.tally = self.capture.as_ref().map(|capture| capture.id);
            worker.ledger(|ledger| ledger.settle(entry, snapshot, record));
        }
        if let Some(capture) = self.capture.take() {
            let waiting = finished.awaits_count.then(|| {
                Box::new(Uncounted {
                    of: Arc::clone(&view.revision),
                    record: record.clone(),
                    settled: finished.settled,
                    has_row,
                })
            });
            let handed = worker.counting(|counts| counts.end(capture, snapshot, record, waiting));
            if handed.flatten().is_some() {
                worker.sink(|sink| sink.exchange(snapshot, record));
            }
        }
        worker.exchange_ended();
    }
}

impl Drop for ActiveExchange {
    fn drop(&mut self) {
        if !self.is_over {
            let has_stopped = self.worker.has_stopped();
            self.exchange.give_up(has_stopped);
            self.finish();
        }
    }
}
