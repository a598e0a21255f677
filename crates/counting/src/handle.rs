//! A worker's end of the pool: what it hands over, and what it does when the memory budget is used up.
//!
//! Invariant: nothing here waits or locks. An exchange that began is always ended at its counter: its end needs no
//! permit of its own, since the permit that it took when it began covers it.
//! Not here: counting (`counter`), rows (`reconciler`).

use std::sync::Arc;

use bytes::Bytes;
use policy::billing::BilledBy;
use policy::counting::{CountCapture, Counting, Uncounted, label, tokenizer};
use policy::record::{Outcome, Record};
use policy::snapshot::Snapshot;

use crate::counter::{Begun, CountEvent, Ended};
use crate::exchange_id::{billed_by, exchange_id};
use crate::memory::{MemoryBudget, Permit, Reach};
use crate::metrics::{Direction, DriftMetrics, Missed};
use crate::shared_queue::Inlet;

/// What an exchange takes besides its bytes: what its counter keeps of it.
const EXCHANGE_BYTES: usize = 4 << 10;

pub(crate) struct CountHandle {
    worker: usize,
    inlet: Inlet<CountEvent>,
    memory: Arc<MemoryBudget>,
    metrics: Arc<DriftMetrics>,
    longest: usize,
    /// Exchanges so far.
    exchanges: u64,
    /// Whether some of the memory is kept for routes that are billed by count, as far as it was asked.
    keeps: bool,
    /// Of which snapshot.
    version: String,
}

impl CountHandle {
    pub(crate) fn new(
        worker: usize,
        inlet: Inlet<CountEvent>,
        memory: Arc<MemoryBudget>,
        metrics: Arc<DriftMetrics>,
        longest: usize,
    ) -> Self {
        Self {
            worker,
            inlet,
            memory,
            metrics,
            longest,
            exchanges: 0,
            keeps: false,
            version: String::new(),
        }
    }

    /// Room for so many bytes of an exchange that is billed so.
    fn take(&self, bytes: usize, by: BilledBy) -> Option<Permit> {
        if by == BilledBy::Counted {
            return self.memory.take(bytes, Reach::All);
        }
        let shared = self.memory.take(bytes, Reach::Shared);
        let is_refused = shared.is_none() && !self.keeps;
        if is_refused {
            self.memory.take(bytes, Reach::All)
        } else {
            shared
        }
    }

    /// Looks whether a route of this snapshot is billed by count; once for each snapshot, and only under pressure.
    #[cold]
    fn learn(&mut self, of: &Snapshot) {
        if self.version != of.version {
            self.version.clone_from(&of.version);
            self.keeps = of.bills_by_count();
        }
    }
}

impl Counting for CountHandle {
    fn begin(
        &mut self,
        of: &Snapshot,
        record: &Record,
        request: Vec<Bytes>,
    ) -> Option<Box<CountCapture>> {
        let operation = record.operation.filter(|of| tokens::is_counted(*of))?;
        let model = record.model_sent.as_deref().unwrap_or_default();
        let tokenizer = tokenizer(of, model)?;
        let length: usize = request.iter().map(Bytes::len).sum();
        let is_long = length > self.longest;
        let held = if is_long { 0 } else { length };
        let by = of.billed_by(record.route);
        if self.memory.is_under_pressure() {
            self.learn(of);
        }
        let Some(permit) = self.take(EXCHANGE_BYTES + held, by) else {
            self.metrics.missed(by, Direction::Prompt, Missed::Busy);
            self.metrics.missed(by, Direction::Output, Missed::Busy);
            return None;
        };
        self.exchanges += 1;
        let id = exchange_id(self.worker, self.exchanges, by);
        let begun = Begun {
            key: tokenizer.key,
            operation,
            clock_s: i64::try_from(record.started_unix_ms / 1000).unwrap_or(0),
            streamed: record.streamed,
            request: (!is_long).then_some(request),
            permit,
        };
        let sent = self.inlet.send(id, CountEvent::Begin(Box::new(begun)));
        sent.is_ok().then(|| Box::new(CountCapture::new(id)))
    }

    fn more(&mut self, tally: &mut CountCapture) {
        let batch = std::mem::take(&mut tally.batch);
        let permit = self.take(batch.len(), billed_by(tally.id));
        let sent = permit.map(|permit| self.inlet.send(tally.id, CountEvent::More(batch, permit)));
        tally.is_broken = !matches!(sent, Some(Ok(())));
    }

    fn end(
        &mut self,
        mut tally: Box<CountCapture>,
        of: &Snapshot,
        record: &Record,
        rest: Option<Box<Uncounted>>,
    ) -> Option<Box<Uncounted>> {
        if !tally.batch.is_empty() && !tally.is_broken {
            self.more(&mut tally);
        }
        let model = record.model_sent.as_deref().unwrap_or_default();
        let Some(tokenizer) = tokenizer(of, model) else {
            return rest;
        };
        let ended = Ended {
            model: label(of, tokenizer, model),
            tokens: record.tokens,
            is_whole: record.outcome == Outcome::Completed,
            is_broken: tally.is_broken,
            has_answer: !record.is_charged_unanswered(),
            rest,
        };
        match self.inlet.send(tally.id, CountEvent::End(Box::new(ended))) {
            Err(CountEvent::End(ended)) => ended.rest,
            Ok(()) | Err(CountEvent::Begin(_) | CountEvent::More(..)) => None,
        }
    }
}
