//! Where a run's facts and rows go.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record, Sink};
use policy::snapshot::Snapshot;
use policy::usage_ledger::{Entry, Estimate, OnDurable, UsageLedger};
use tokio::time::sleep;

use super::Rng;

/// What the sink and the ledger were told.
#[derive(Default)]
pub(crate) struct Facts {
    pub(super) records: Vec<Record>,
    pub(super) attempts: usize,
    pub(super) abandoned: usize,
    /// Why connections were closed.
    pub(super) closed: Vec<Closed>,
    /// Where each stands.
    pub(super) gauges: HashMap<Gauge, i64>,
    /// By entry: what became of it, in the order that it was told.
    pub(super) rows: HashMap<u64, Row>,
}

/// An entry in the ledger.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(super) record: String,
    /// It did not reach the disk.
    pub(super) is_lost: bool,
    pub(super) settled: usize,
    pub(super) withdrawn: usize,
}

/// A worker's sink.
pub(crate) struct Recorder(pub(crate) Arc<Mutex<Facts>>);

impl Recorder {
    fn facts(&self, tell: impl FnOnce(&mut Facts)) {
        tell(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for Recorder {
    fn exchange(&mut self, _: &Snapshot, record: &Record) {
        self.facts(|facts| facts.records.push(record.clone()));
    }

    fn attempt(&mut self, _: &Snapshot, _: &AttemptRecord) {
        self.facts(|facts| facts.attempts += 1);
    }

    fn abandoned(&mut self, _: DisconnectOutcome) {
        self.facts(|facts| facts.abandoned += 1);
    }

    fn closed(&mut self, at: Closed) {
        self.facts(|facts| facts.closed.push(at));
    }

    fn gauge(&mut self, gauge: Gauge, delta: i64) {
        self.facts(|facts| *facts.gauges.entry(gauge).or_default() += delta);
    }

    fn tick(&mut self) {}

    fn copy(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// A worker's way to a ledger that loses one row in thirty.
pub(super) struct Rows {
    facts: Arc<Mutex<Facts>>,
    rng: Rng,
    count: u64,
}

impl Rows {
    pub(super) fn new(facts: &Arc<Mutex<Facts>>, rng: Rng) -> Self {
        Self {
            facts: Arc::clone(facts),
            rng,
            count: 0,
        }
    }

    fn row(&self, entry: Entry, tell: impl FnOnce(&mut Row)) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let [id, ..] = entry.id.as_chunks().0 else {
            return;
        };
        tell(facts.rows.entry(u64::from_le_bytes(*id)).or_default());
    }
}

impl UsageLedger for Rows {
    fn admit(
        &mut self,
        _: &Snapshot,
        record: &Record,
        estimate: Estimate,
        told: Option<OnDurable>,
    ) -> Entry {
        self.count += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.count.to_le_bytes());
        let entry = Entry {
            id,
            reserved: estimate.reserved,
            tally: None,
        };
        let is_lost = told.is_some() && self.rng.chance(3);
        self.row(entry, |row| {
            row.record = record.id.to_string();
            row.is_lost = is_lost;
        });
        if let Some(told) = told {
            let late = self.rng.chance(1);
            let wait = if late { 8_000 } else { 40 };
            let wait = self.rng.millis(wait);
            tokio::task::spawn_local(async move {
                sleep(wait).await;
                told(!is_lost);
            });
        }
        entry
    }

    fn progress(&mut self, _: Entry, _: u64, _: u64) {}

    fn settle(&mut self, entry: Entry, _: &Snapshot, record: &Record) {
        let id = record.id.to_string();
        self.row(entry, |row| {
            assert_eq!(row.record, id, "a row of another exchange");
            row.settled += 1;
        });
    }

    fn withdraw(&mut self, entry: Entry) {
        self.row(entry, |row| row.withdrawn += 1);
    }
}
