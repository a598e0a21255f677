//! A worker's end of the pool: what it hands over, and what it does when the memory budget is used up.
//!
//! Invariant: nothing here waits or locks. An exchange that began is always ended at its counter: its end needs no
//! permit of its own, since the permit that it took when it began covers it.
//! Not here: counting (`counter`), rows (`reconciler`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::billing::BilledBy;
use policy::counting::{Begun, CountCapture, Counting, Uncounted, label, tokenizer};
use policy::id::WorkloadId;
use policy::record::{Outcome, Record};
use policy::snapshot::Snapshot;

use crate::counter::{self, CountEvent, Ended};
use crate::exchange_id::{exchange_id, without_output};
use crate::memory::{EXCHANGE_BYTES, MemoryBudget, Reach};
use crate::metrics::{Direction, DriftMetrics, Missed};
use crate::shared_queue::Inlet;

pub(crate) struct CountHandle {
    worker: usize,
    inlet: Inlet<CountEvent>,
    memory: Arc<MemoryBudget>,
    metrics: Arc<DriftMetrics>,
    longest: usize,
    /// How long an answer is held back at most.
    backpressure: Duration,
    /// Exchanges so far.
    exchanges: u64,
    /// The snapshot that was looked at last has a route billed by count.
    bills_by_count: bool,
    /// Which snapshot that was.
    version: Arc<str>,
}

impl CountHandle {
    pub(crate) fn new(
        worker: usize,
        inlet: Inlet<CountEvent>,
        memory: Arc<MemoryBudget>,
        metrics: Arc<DriftMetrics>,
        longest: usize,
        backpressure: Duration,
    ) -> Self {
        Self {
            worker,
            inlet,
            memory,
            metrics,
            longest,
            backpressure,
            exchanges: 0,
            bills_by_count: false,
            version: Arc::default(),
        }
    }

    /// How much an exchange may use that is billed so.
    const fn reach(&self, by: BilledBy) -> Reach {
        match by {
            BilledBy::Reported if self.bills_by_count => Reach::Shared,
            BilledBy::Reported | BilledBy::Counted => Reach::All,
        }
    }

    /// Looks whether a route of this snapshot is billed by count; once for each snapshot, and only under pressure.
    #[cold]
    fn learn(&mut self, of: &Snapshot) {
        if self.version != of.version {
            self.version.clone_from(&of.version);
            self.bills_by_count = of.bills_by_count();
        }
    }
}

/// What an exchange takes while its prompt waits to be counted.
fn bytes_of(request: &[Bytes], longest: usize) -> usize {
    let length: usize = request.iter().map(Bytes::len).sum();
    EXCHANGE_BYTES + if length > longest { 0 } else { length }
}

fn place_of(record: &Record) -> usize {
    record.workload.map_or(0, WorkloadId::index)
}

impl Counting for CountHandle {
    fn backpressure(
        &mut self,
        of: &Snapshot,
        record: &Record,
        request: &[Bytes],
    ) -> Option<Duration> {
        if self.memory.is_under_pressure() {
            self.learn(of);
        }
        let reach = self.reach(of.billed_by(record.route));
        let bytes = bytes_of(request, self.longest);
        let is_full = self.memory.is_full_for(place_of(record), bytes, reach);
        if self.backpressure.is_zero() || !is_full {
            return None;
        }
        record.operation.filter(|of| tokens::is_counted(*of))?;
        tokenizer(of, record.model_sent.as_deref().unwrap_or_default())?;
        Some(self.backpressure)
    }

    fn held_back(&mut self) {
        self.metrics.held_back();
    }

    fn begin(&mut self, of: &Snapshot, record: &Record, request: Vec<Bytes>) -> Begun {
        let Some(operation) = record.operation.filter(|of| tokens::is_counted(*of)) else {
            return Begun::NotCounted;
        };
        let model = record.model_sent.as_deref().unwrap_or_default();
        let Some(tokenizer) = tokenizer(of, model) else {
            return Begun::NotCounted;
        };
        let bytes = bytes_of(&request, self.longest);
        let is_long = bytes == EXCHANGE_BYTES && !request.iter().all(Bytes::is_empty);
        let by = of.billed_by(record.route);
        let has_output = operation.generates();
        if self.memory.is_under_pressure() {
            self.learn(of);
        }
        let reach = self.reach(by);
        let Some(permit) = self.memory.take_for(place_of(record), bytes, reach) else {
            self.metrics.missed(by, Direction::Prompt, Missed::Busy);
            if has_output {
                self.metrics.missed(by, Direction::Output, Missed::Busy);
            }
            return Begun::NoRoom;
        };
        self.exchanges += 1;
        let id = exchange_id(self.worker, self.exchanges, by);
        let id = if has_output { id } else { without_output(id) };
        let begun = counter::Begun {
            key: tokenizer.key,
            operation,
            clock_s: i64::try_from(record.started_unix_ms / 1000).unwrap_or(0),
            streamed: record.streamed,
            request: (!is_long).then_some(request),
            permit,
        };
        let sent = self.inlet.send(id, CountEvent::Begin(Box::new(begun)));
        match sent {
            Ok(()) => Begun::Counted(Box::new(CountCapture::new(id))),
            // Nobody counts any more.
            Err(_) => Begun::NotCounted,
        }
    }

    fn more(&mut self, tally: &mut CountCapture) {
        let batch = std::mem::take(&mut tally.batch);
        let permit = self.memory.take(batch.len(), Reach::Begun);
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
        let mut last = None;
        if !tally.batch.is_empty() && !tally.is_broken {
            let batch = std::mem::take(&mut tally.batch);
            let permit = self.memory.take(batch.len(), Reach::Begun);
            tally.is_broken = permit.is_none();
            last = permit.map(|permit| (batch, permit));
        }
        let model = record.model_sent.as_deref().unwrap_or_default();
        let Some(tokenizer) = tokenizer(of, model) else {
            return rest;
        };
        let backend = record.backend.and_then(|id| of.backend(id));
        let ended = Ended {
            model: label(of, tokenizer, model),
            backend: backend.map(|backend| Arc::clone(&backend.name)),
            tokens: record.tokens,
            is_whole: record.outcome == Outcome::Completed,
            is_broken: tally.is_broken,
            has_answer: !record.is_charged_unanswered(),
            last,
            rest,
        };
        match self.inlet.send(tally.id, CountEvent::End(Box::new(ended))) {
            Err(CountEvent::End(ended)) => ended.rest,
            Ok(()) | Err(CountEvent::Begin(_) | CountEvent::More(..) | CountEvent::Ask(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests;
