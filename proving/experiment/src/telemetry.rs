//! What was scraped, and questions to it: `mean(engine:vllm:time_to_first_token_seconds)` over a minute.
//!
//! A [`Telemetry`] keeps only what the [`Query`]s it was made with ask for. Counters are kept as what they grew by since
//! the first sample: a counter that falls was reset, and counts from 0; a series that appears later began at 0.
//! Invariant: the same samples give the same answers; a question about a time in which a target said nothing has no
//! answer, and never 0; what is divided by one another comes from the same moments.
//! Not here: fetching and reading pages (`prove`), what is decided by the answers (`campaign`).

mod query;
mod record;
#[cfg(test)]
mod tests;
mod together;

pub use query::{Query, QueryError, Selector};
pub use record::{Telemetry, growth};

use std::time::Duration;

/// What one target said at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Since the start of the campaign.
    pub at: Duration,
    /// Which target, such as `engine`.
    pub target: String,
    /// Every series, but for buckets of histograms.
    pub values: Vec<Value>,
}

/// One series at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The metric, such as `vllm:num_preemptions_total`.
    pub metric: String,
    /// Names and values, sorted by name.
    pub labels: Vec<(String, String)>,
    /// What it stands at.
    pub value: f64,
}

/// A span of time, without its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// After this moment.
    pub from: Duration,
    /// Up to this one.
    pub to: Duration,
}
