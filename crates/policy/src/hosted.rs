//! An exchange in the hands of a host: what every host has to do beside applying verdicts, done once.
//!
//! That is its entry in the ledger, the copy of what passes for who counts it, its usage, its stopwatch, and its records, which
//! leave with the verdict after which they are known.
//! Invariant: a [`Hosted`] leaves exactly one record and settles what it held, also when it is dropped half-way; but for one whose
//! call another machine takes over, which leaves that record.
//! Not here: what is decided ([`crate::exchange`]), waiting and copying (the host).

use std::cell::RefMut;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::head::RequestHead;
use wire::meter::Meter;

use crate::clock::Mono;
use crate::counting::{Begun, CountCapture, Counting, Uncounted};
use crate::exchange::{Env, Exchange, Verdict, certain};
use crate::record::{AttemptRecord, Sink};
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::shard::Shard;
use crate::trace::AttemptSpan;
use crate::usage_ledger::{Entry, Estimate, OnDurable, UsageLedger};

/// How often an open stream notes in the ledger how far it has come.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// What a host gives the exchanges that it runs. What it keeps of one is the host's for that exchange alone.
pub trait Host {
    /// The configuration of this exchange, to its end.
    fn revision(&self) -> &Arc<Revision>;
    /// The memory of the worker that runs it.
    fn shard(&self) -> RefMut<'_, Shard>;
    /// The monotonic clock.
    fn now(&self) -> Mono;
    /// The same at the latest look, a tick ago at most.
    fn latest(&self) -> Mono;
    /// The wall clock at a moment, milliseconds since the Unix epoch.
    fn unix_ms(&self, at: Mono) -> u64;
    /// Where its facts go.
    fn sink(&self, tell: impl FnOnce(&mut dyn Sink));
    /// Where usage is entered, where there is a ledger.
    fn ledger<T>(&self, enter: impl FnOnce(&mut dyn UsageLedger) -> T) -> Option<T>;
    /// Whether there is counting at all.
    fn counts(&self) -> bool;
    /// Who counts, where there is counting.
    fn counting<T>(&self, hand: impl FnOnce(&mut dyn Counting) -> T) -> Option<T>;
    /// An attempt ended: its facts go where those of the exchange go, and what troubles an endpoint to the log.
    fn attempt_ended(&self, attempt: &AttemptRecord, span: Option<&AttemptSpan>);
    /// Whether exchanges that are dropped now are cut by the gate, whose drain is over.
    fn has_stopped(&self) -> bool;
    /// It begins.
    fn began(&self);
    /// Nothing of it runs any more; what the host keeps for it goes, before its record leaves: whoever reads that finds nothing
    /// running.
    fn over(&mut self);
    /// It has ended: its record has left.
    fn ended(&self);
}

/// An exchange that has begun and must end.
pub struct Hosted<H: Host> {
    /// Who runs it.
    pub host: H,
    /// Its machine.
    pub exchange: Exchange,
    /// Reads the response for its usage.
    pub meter: Meter,
    /// Its entry in the ledger, once it was let in and where there is one.
    entry: Option<Entry>,
    /// When it next notes there how far it has come.
    note_at: Option<Mono>,
    /// What is kept of the response for who counts it.
    capture: Option<Box<CountCapture>>,
    is_over: bool,
}

impl<H: Host> Hosted<H> {
    /// One whose head came at `now`.
    #[inline(always)]
    pub fn begin(host: H, head: &RequestHead, peer: IpAddr, now: Mono) -> Self {
        host.began();
        let exchange = {
            let revision = &**host.revision();
            let env = &mut Env {
                snapshot: &revision.snapshot,
                levels: &revision.levels,
                shard: &mut host.shard(),
                now,
            };
            Exchange::begin(head, peer, host.unix_ms(now), env)
        };
        Self {
            host,
            exchange,
            meter: Meter::default(),
            entry: None,
            note_at: None,
            capture: None,
            is_over: false,
        }
    }

    /// What follows from an event that happened when the gate's own time last began to run.
    #[inline(always)]
    pub fn tell(&mut self, event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> Verdict) -> Verdict {
        let now = self.exchange.timing.mark;
        self.tell_at(now, event)
    }

    /// What follows from an event. The record of an attempt that ended by it is handed on.
    #[inline(always)]
    pub fn tell_at(
        &mut self,
        now: Mono,
        event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> Verdict,
    ) -> Verdict {
        let verdict = {
            let revision = &**self.host.revision();
            let env = &mut Env {
                snapshot: &revision.snapshot,
                levels: &revision.levels,
                shard: &mut self.host.shard(),
                now,
            };
            event(&mut self.exchange, env)
        };
        if self.exchange.has_ended_an_attempt() {
            self.hand_on_attempt();
        }
        verdict
    }

    #[inline]
    fn hand_on_attempt(&mut self) {
        if let Some((attempt, span)) = self.exchange.attempt_record() {
            self.host.attempt_ended(&attempt, span.as_deref());
        }
    }

    /// Refuses what cannot be read, or for what there is no room.
    #[cold]
    pub fn refuse_unread(&mut self, refusal: Refusal) -> Verdict {
        self.exchange.refuse_unread(refusal)
    }

    /// What was waited for did not come in time.
    #[cold]
    pub fn stalled(&mut self) -> Verdict {
        self.tell(|exchange, env| exchange.stalled(env))
    }

    /// The gate waits from now on: the time is not its own.
    pub fn pause(&mut self) {
        let now = self.host.now();
        self.exchange.timing.pause(now);
    }

    /// What it waited for has come: the time is its own again.
    pub fn resume(&mut self) {
        let now = self.host.now();
        self.exchange.timing.resume(now);
    }

    /// Enters it in the ledger, where there is one; `told` hears when that is on disk.
    #[inline]
    pub fn enter(&mut self, estimate: Estimate, told: Option<OnDurable>) {
        let (of, record) = (&self.host.revision().snapshot, self.exchange.record());
        let ledger = &self.host;
        self.entry = ledger.ledger(|ledger| ledger.admit(of, record, estimate, told));
    }

    /// Its entry is worth nothing; `is_late`: it may reach the disk yet.
    #[cold]
    pub fn withdraw(&mut self, is_late: bool) {
        if let Some(entry) = self.entry.take()
            && is_late
        {
            self.host.ledger(|ledger| ledger.withdraw(entry));
        }
    }

    /// How long the answer may be held back, because there is no room for what there is to count.
    #[inline]
    pub fn backpressure(&self, request: &[Bytes]) -> Option<Duration> {
        if !self.host.counts() {
            return None;
        }
        let (of, exchange) = (&self.host.revision().snapshot, &self.exchange);
        let counts = exchange.is_to_be_counted(of);
        let asked = self.host.counting(|counting| {
            counts.then(|| counting.backpressure(of, exchange.record(), request))
        });
        asked.flatten().flatten()
    }

    /// The answer is held back from now on: what is dropped while it waits is not counted either.
    #[cold]
    pub fn hold_back(&mut self) {
        self.exchange.found_no_room_to_count();
        self.host.counting(|counting| counting.held_back());
        self.pause();
    }

    /// No more of the request is needed: it is handed to who counts it, where its model is counted.
    #[inline]
    pub fn count(&mut self, request: Vec<Bytes>) {
        if !self.host.counts() {
            return;
        }
        let (of, exchange) = (&self.host.revision().snapshot, &self.exchange);
        let begun = self.host.counting(|counting| {
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
    pub fn forwarded(&mut self, data: &[u8]) {
        self.exchange.forwarded(data.len() as u64);
        if let Some(capture) = &mut self.capture
            && capture.keep(self.meter.text(data))
        {
            self.host.counting(|counting| counting.more(capture));
        }
    }

    /// A stream begins: from now on it notes in the ledger how far it has come.
    #[inline]
    pub fn begin_notes(&mut self) {
        let is_stream = self.meter.events().is_some() && self.entry.is_some();
        self.note_at = is_stream.then(|| self.host.latest().after(NOTE_EVERY));
    }

    /// Notes it when it is time.
    #[inline]
    pub fn note(&mut self) {
        if let (Some(due), Some(entry)) = (self.note_at, self.entry) {
            let now = self.host.latest();
            if now >= due {
                self.note_at = Some(now.after(NOTE_EVERY));
                let tokens = certain(&self.meter.so_far());
                let bytes = self.exchange.record().bytes_out;
                self.host
                    .ledger(|ledger| ledger.progress(entry, tokens, bytes));
            }
        }
    }

    /// Its call is of another machine, which leaves the record of it: this exchange never was.
    #[cold]
    pub fn hand_over(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.host.over();
            self.host.ended();
        }
    }

    /// Ends the exchange: settles, and hands on its record. Only the first end counts.
    ///
    /// By reference: the whole of it would be copied, half a kilobyte.
    pub fn finish(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let out = self.exchange.timing.out;
        let is_counted = self.capture.is_some();
        let finished = {
            let revision = &**self.host.revision();
            let env = &mut Env {
                snapshot: &revision.snapshot,
                levels: &revision.levels,
                shard: &mut self.host.shard(),
                now: out.unwrap_or_else(|| self.host.now()),
            };
            self.exchange.finish(&mut self.meter, is_counted, env)
        };
        self.host.over();
        let (host, record) = (&self.host, self.exchange.record());
        let snapshot = &host.revision().snapshot;
        host.sink(|sink| {
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
            host.ledger(|ledger| ledger.settle(entry, snapshot, record));
        }
        if let Some(capture) = self.capture.take() {
            let waiting = finished.awaits_count.then(|| {
                Box::new(Uncounted {
                    of: Arc::clone(host.revision()),
                    record: record.clone(),
                    settled: finished.settled,
                    has_row,
                })
            });
            let handed = host.counting(|counts| counts.end(capture, snapshot, record, waiting));
            if handed.flatten().is_some() {
                host.sink(|sink| sink.exchange(snapshot, record));
            }
        }
        host.ended();
    }
}

impl<H: Host> Drop for Hosted<H> {
    fn drop(&mut self) {
        if !self.is_over {
            let has_stopped = self.host.has_stopped();
            self.exchange.give_up(has_stopped);
            self.finish();
        }
    }
}
