//! What a run saw: histograms over answered requests, failures by kind, counts.
//!
//! Invariant: a failed request is in `failures` and never in a histogram.
//! Not here: what the subject cost (`prove`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency kept apart, in microseconds; longer ones count as this.
const LONGEST_US: u64 = 600_000_000;

/// Why a request has no good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection.
    Connect,
    /// The request could not be written whole.
    Send,
    /// The connection ended before a byte of the response.
    Closed,
    /// The response ended before its body did.
    Truncated,
    /// No complete response in time.
    Timeout,
    /// The bytes were no HTTP/1.1 response, or more than one.
    Malformed,
    /// A whole response with a status other than 2xx.
    Status(u16),
    /// A whole response of 2xx with another body than the plan expects.
    Body,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => out.write_str("connect"),
            Self::Send => out.write_str("send"),
            Self::Closed => out.write_str("closed"),
            Self::Truncated => out.write_str("truncated"),
            Self::Timeout => out.write_str("timeout"),
            Self::Malformed => out.write_str("malformed"),
            Self::Status(code) => write!(out, "status_{code}"),
            Self::Body => out.write_str("body"),
        }
    }
}

/// Quantiles of a histogram, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// Half are at or below.
    pub p50: u64,
    /// 90 of 100 are at or below.
    pub p90: u64,
    /// 95 of 100 are at or below.
    pub p95: u64,
    /// 99 of 100 are at or below.
    pub p99: u64,
    /// 999 of 1,000 are at or below.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

/// Everything counted between the end of the warm-up and the end of the measurement.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Requests answered 2xx and whole.
    pub answered: u64,
    /// Requests without a good answer, by kind; those of the warm-up too, for nothing may hide there.
    pub failures: BTreeMap<Failure, u64>,
    /// Server-sent events that ended.
    pub events: u64,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Open loop: requests that were due and not sent when the time was over.
    pub unsent: u64,
    /// Length of the measurement.
    pub measured: Duration,
    /// CPU time of the client's thread in it.
    pub client_cpu: Duration,
    latency_us: Histogram<u64>,
    first_byte_us: Histogram<u64>,
}

impl Observations {
    pub(crate) fn new() -> Self {
        let histogram =
            || Histogram::new_with_bounds(1, LONGEST_US, 3).expect("1 ≤ 600,000,000 / 2 and 3 ≤ 5");
        Self {
            answered: 0,
            failures: BTreeMap::new(),
            events: 0,
            body_bytes: 0,
            unsent: 0,
            measured: Duration::ZERO,
            client_cpu: Duration::ZERO,
            latency_us: histogram(),
            first_byte_us: histogram(),
        }
    }

    pub(crate) fn answer(&mut self, latency: Duration, first_byte: Duration) {
        self.answered += 1;
        self.latency_us.saturating_record(micros(latency));
        self.first_byte_us.saturating_record(micros(first_byte));
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Requests without a good answer.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Time from the intended send to the last byte; `None` when nothing was answered.
    #[must_use]
    pub fn latency(&self) -> Option<Quantiles> {
        quantiles(&self.latency_us)
    }

    /// Time from the intended send to the first body byte; `None` when nothing was answered.
    #[must_use]
    pub fn first_byte(&self) -> Option<Quantiles> {
        quantiles(&self.first_byte_us)
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Option<Quantiles> {
    (!histogram.is_empty()).then(|| Quantiles {
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p95: histogram.value_at_quantile(0.95),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(LONGEST_US).max(1)
}
