//! Records become metrics, access-log lines and spans.
//!
//! Exists for *weight and effect*: files, writer threads and text formats stay out of `policy`. The OTLP exporter
//! brings hyper, tokio and rustls in: the gate links them anyway, and its thread has a runtime of its own.
//! Invariant: a worker that records never waits, never locks, and allocates nothing once its
//! series exist; everything kept is bounded, and what a bound turned away is counted.
//! Not here: when a record is made (`policy`), the admin endpoint that serves the page
//! (`tollgate`), durable accounts (the ledger).

mod access_log;
pub mod budget;
mod closing;
mod conditions;
pub mod extras;
mod histogram;
mod merge;
mod names;
mod render;
mod series;
mod table;
mod traces;
mod view;
mod worker_metrics;

#[cfg(test)]
mod priced;
#[cfg(test)]
mod sample;

pub use access_log::{AccessLog, Lines, Target};
pub use conditions::{Change, Condition, Conditions, Heard, Phase, Reporter};
pub use extras::{Extra, ExtraKind};
pub use merge::{Gauges, Merged, WorkloadTotals, merge};
pub use series::MAX_SERIES;
pub use traces::{
    Collector, OtlpEndpoint, OtlpExporter, OtlpProtocol, Service, Spans, TraceStats, Traces,
    Undelivered,
};
pub use worker_metrics::{MetricsSnapshot, WorkerMetrics};
