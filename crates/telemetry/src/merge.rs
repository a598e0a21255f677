//! The workers' copies as one.
//!
//! Invariant: a merged count is the exact sum of the copies' counts, in whatever order they come.
//! Not here: asking the workers (`tollgate`), the text page (`render`).

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::record::{Gauge, Outcome};
use policy::snapshot::Snapshot;

use crate::series::{CellKey, Series};
use crate::view::register;
use crate::worker_metrics::{MetricsSnapshot, gauge_index};

/// Everything that all workers counted.
#[derive(Debug, Default)]
pub struct Merged {
    pub(crate) series: Series,
    registered: Vec<Arc<str>>,
}

/// Adds up the workers' copies.
#[must_use]
pub fn merge(copies: Vec<MetricsSnapshot>) -> Merged {
    let mut merged = Merged::default();
    for MetricsSnapshot(series) in &copies {
        merged.series.absorb(series);
    }
    merged
}

/// What one workload did since the gate started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadTotals {
    /// Its name; empty for callers that were not recognised.
    pub name: Arc<str>,
    /// Exchanges that ended, however they did.
    pub exchanges: u64,
    /// Answered whole.
    pub completed: u64,
    /// Refused by the gate.
    pub refused: u64,
    /// Failed upstream or in the gate.
    pub failed: u64,
    /// Left by the client.
    pub aborted: u64,
    /// Prompt tokens, whatever their witness.
    pub prompt_tokens: u64,
    /// Completion tokens, whatever their witness.
    pub completion_tokens: u64,
}

/// Things that rise and fall, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Downstream connections open.
    pub connections: i64,
    /// Exchanges begun and not ended.
    pub exchanges: i64,
    /// Event streams being forwarded.
    pub streams: i64,
    /// Upstream connections open.
    pub upstream_connections: i64,
    /// Answers being read on without a client.
    pub reads_to_end: i64,
    /// Bytes of request bodies that are kept.
    pub body_bytes: i64,
}

impl Merged {
    /// Makes everything that `snapshot` configures exist, at 0 where nothing was counted.
    pub fn register(&mut self, snapshot: &Snapshot) {
        register(snapshot, &mut self.series);
        let names = snapshot.workloads.iter().map(|w| Arc::clone(&w.name));
        self.registered.extend(names);
    }

    /// Totals by workload, ordered by name: those registered and those that were counted.
    #[must_use]
    pub fn by_workload(&self) -> Vec<WorkloadTotals> {
        let mut totals: BTreeMap<&str, WorkloadTotals> = BTreeMap::new();
        for name in &self.registered {
            totals.entry(name).or_default();
        }
        for (key, cell) in self.series.cells.rows() {
            let name = self.series.names.text(CellKey::unpack(key).workload);
            let total = totals.entry(name).or_default();
            for (ending, n) in &cell.endings {
                total.exchanges += n;
                match ending.outcome {
                    Outcome::Completed => total.completed += n,
                    Outcome::Refused => total.refused += n,
                    Outcome::Failed => total.failed += n,
                    Outcome::Aborted => total.aborted += n,
                }
            }
            let [prompt, completion] = &cell.tokens;
            let sum = |n: u64, by: &[u64; 3]| by.iter().fold(n, |n, more| n.saturating_add(*more));
            total.prompt_tokens = sum(total.prompt_tokens, prompt);
            total.completion_tokens = sum(total.completion_tokens, completion);
        }
        let named = |(name, total)| WorkloadTotals {
            name: Arc::from(name),
            ..total
        };
        totals.into_iter().map(named).collect()
    }

    /// What is open now.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let of = |gauge| self.series.gauges[gauge_index(gauge)];
        Gauges {
            connections: of(Gauge::Connections),
            exchanges: of(Gauge::Exchanges),
            streams: of(Gauge::Streams),
            upstream_connections: of(Gauge::UpstreamConnections),
            reads_to_end: of(Gauge::ReadsToEnd),
            body_bytes: of(Gauge::BodyBytes),
        }
    }
}

#[cfg(test)]
mod tests;
