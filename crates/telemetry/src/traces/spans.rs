//! One worker's spans on their way to the thread that sends.
//!
//! Invariant: at most [`FULL`] spans are held; handing over never waits; what is held when the worker
//! ends is handed over.
//! Not here: the thread (`traces`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use policy::record::Record;
use policy::snapshot::Snapshot;
use policy::trace::AttemptSpan;

use super::fact::Fact;
use super::{Message, Shared};

/// A buffer that holds so many spans is handed over without waiting for a tick.
pub(super) const FULL: usize = 64;

/// A worker's buffer of spans.
#[derive(Debug)]
pub struct Spans {
    facts: Vec<Fact>,
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

impl Spans {
    pub(super) fn new(queue: SyncSender<Message>, shared: Arc<Shared>) -> Self {
        Self {
            facts: Vec::new(),
            queue,
            shared,
        }
    }

    /// Adds the span of an exchange, if it is sampled.
    pub(crate) fn exchange(&mut self, snapshot: &Snapshot, record: &Record) {
        if let Some(trace) = record.trace.filter(|trace| trace.is_sampled) {
            self.push(Fact::exchange(trace, snapshot, record));
        }
    }

    /// Adds the span of an attempt.
    pub(crate) fn attempt(&mut self, snapshot: &Snapshot, span: &AttemptSpan) {
        self.push(Fact::attempt(snapshot, span));
    }

    fn push(&mut self, fact: Fact) {
        self.facts.push(fact);
        if self.facts.len() >= FULL {
            self.flush();
        }
    }

    /// Hands over what there is; when the queue is full, drops and counts it.
    pub(crate) fn flush(&mut self) {
        if self.facts.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.facts);
        let lost = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        if self.queue.try_send(Message::Batch(batch)).is_err() {
            self.shared.crowded_out.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

/// Exchanges that are cut when their worker ends leave spans after its last tick.
impl Drop for Spans {
    fn drop(&mut self) {
        self.flush();
    }
}
