//! Records become metrics, access-log lines and spans.
//!
//! Exists for *weight and effect*: files, a writer thread and text formats stay out of `policy`.
//! Invariant: a worker that records never waits, never locks, and allocates nothing once its
//! series exist; everything kept is bounded, and what a bound turned away is counted.
//! Not here: when a record is made (`policy`), the admin endpoint that serves the page
//! (`tollgate`), durable accounts (the ledger).

mod access_log;
mod conditions;
mod facts;
mod histogram;
mod merge;
mod names;
mod render;
mod series;
mod table;
mod traces;
mod view;

#[cfg(test)]
mod priced;
#[cfg(test)]
mod sample;

pub use access_log::{AccessLog, Lines, Target};
pub use conditions::{Change, Condition, Conditions, Heard, Phase, Reporter};
pub use facts::{Copied, Facts};
pub use merge::{Gauges, Merged, WorkloadTotals, merge};
pub use render::{Extra, ExtraKind};
pub use series::MAX_SERIES;
pub use traces::{Collector, Service, Spans, TraceStats, Traces, Undelivered};
