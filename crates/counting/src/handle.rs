//! A worker's end of the pool: what it hands over, and what it does when the memory budget is used up.
//!
//! Invariant: nothing here waits or locks. An exchange that began is always ended at its counter: its end needs no
//! permit of its own, since the permit that it took when it began covers it.
//! Not here: counting (`counter`), rows (`reconciler`).

use std::sync::Arc;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use policy::counting::{CountCapture, Counting, Uncounted, label, tokenizer};
use policy::record::{Outcome, Record};
use policy::snapshot::Snapshot;

use crate::counter::{Begun, CountEvent, Ended};
use crate::memory::MemoryBudget;
use crate::metrics::{Direction, DriftMetrics, Missed};

/// What an exchange takes besides its bytes: what its counter keeps of it.
const EXCHANGE_BYTES: usize = 4 << 10;

pub(crate) struct CountHandle {
    counters: Vec<Sender<CountEvent>>,
    memory: Arc<MemoryBudget>,
    metrics: Arc<DriftMetrics>,
    longest: usize,
    next: u64,
}

impl CountHandle {
    pub(crate) fn new(
        worker: usize,
        counters: Vec<Sender<CountEvent>>,
        memory: Arc<MemoryBudget>,
        metrics: Arc<DriftMetrics>,
        longest: usize,
    ) -> Self {
        Self {
            counters,
            memory,
            metrics,
            longest,
            next: (worker as u64) << 48,
        }
    }

    /// All events of one exchange go to one thread. An error when that thread is gone.
    fn send(&self, id: u64, event: CountEvent) -> Result<(), CountEvent> {
        let at = usize::try_from(id % self.counters.len() as u64).unwrap_or(0);
        self.counters[at].send(event).map_err(|unsent| unsent.0)
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
        let Some(permit) = self.memory.take(EXCHANGE_BYTES + held) else {
            self.metrics.missed(Direction::Prompt, Missed::Busy);
            self.metrics.missed(Direction::Output, Missed::Busy);
            return None;
        };
        self.next += 1;
        let id = self.next;
        let begun = Begun {
            id,
            key: tokenizer.key,
            operation,
            clock_s: i64::try_from(record.started_unix_ms / 1000).unwrap_or(0),
            streamed: record.streamed,
            request: (!is_long).then_some(request),
            permit,
        };
        let sent = self.send(id, CountEvent::Begin(Box::new(begun)));
        sent.is_ok().then(|| Box::new(CountCapture::new(id)))
    }

    fn more(&mut self, tally: &mut CountCapture) {
        let batch = std::mem::take(&mut tally.batch);
        let permit = self.memory.take(batch.len());
        let id = tally.id;
        let sent = permit.map(|permit| self.send(id, CountEvent::More(id, batch, permit)));
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
            id: tally.id,
            model: label(of, tokenizer, model),
            tokens: record.tokens,
            is_whole: record.outcome == Outcome::Completed,
            is_broken: tally.is_broken,
            has_answer: !record.is_charged_unanswered(),
            rest,
        };
        match self.send(tally.id, CountEvent::End(Box::new(ended))) {
            Err(CountEvent::End(ended)) => ended.rest,
            Ok(()) | Err(CountEvent::Begin(_) | CountEvent::More(..)) => None,
        }
    }
}
