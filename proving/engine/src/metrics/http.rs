//! The families that vLLM's instrumentation of its web framework shows: calls by path, their sizes and times.
//!
//! Invariant: names, labels and buckets are those of prometheus-fastapi-instrumentator 7 with its defaults: statuses
//! by their class, an answer without a declared length counts 0 bytes. Labels are a closed set.
//! Not here: which calls are counted, and when they end (`route::metered`).

use std::collections::BTreeMap;
use std::time::Duration;

use super::histogram::{Histogram, line};

const DURATION_S: &[f64] = &[0.1, 0.5, 1.0];
const FINE_DURATION_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0,
    7.5, 10.0, 30.0, 60.0,
];

/// One call that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) handler: &'static str,
    pub(crate) method: &'static str,
    pub(crate) status: u16,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
}

/// All calls so far.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    /// Calls for a model that are in flight.
    pub(crate) load: u64,
    requests: BTreeMap<(&'static str, &'static str, u16), u64>,
    /// Of each handler: calls, bytes of requests, bytes of answers.
    sizes: BTreeMap<&'static str, (u64, u64, u64)>,
    durations: BTreeMap<(&'static str, &'static str), Histogram>,
    fine_durations: Histogram,
}

impl HttpMetrics {
    pub(super) fn new() -> Self {
        Self {
            load: 0,
            requests: BTreeMap::new(),
            sizes: BTreeMap::new(),
            durations: BTreeMap::new(),
            fine_durations: Histogram::new(FINE_DURATION_S),
        }
    }

    pub(crate) fn ended(&mut self, call: &Call, took: Duration) {
        let seconds = took.as_secs_f64();
        let key = (call.handler, call.method, call.status / 100);
        *self.requests.entry(key).or_default() += 1;
        let (calls, asked, answered) = self.sizes.entry(call.handler).or_default();
        *calls += 1;
        *asked += call.request_bytes;
        *answered += call.response_bytes;
        self.durations
            .entry((call.handler, call.method))
            .or_insert_with(|| Histogram::new(DURATION_S))
            .observe(seconds, 1);
        self.fine_durations.observe(seconds, 1);
    }

    pub(super) fn write(&self, out: &mut String) {
        let help = "Total number of requests by method, status and handler.";
        head(out, "http_requests_total", "counter", help);
        for ((handler, method, class), count) in &self.requests {
            line(
                out,
                format_args!(
                    "http_requests_total{{handler=\"{handler}\",method=\"{method}\",status=\"{class}xx\"}} {count}.0"
                ),
            );
        }
        type Read = fn(&(u64, u64, u64)) -> u64;
        let sizes: [(&str, &str, Read); 2] = [
            (
                "http_request_size_bytes",
                "Content length of incoming requests by handler. Only value of header is respected. Otherwise ignored. No percentile calculated.",
                |s| s.1,
            ),
            (
                "http_response_size_bytes",
                "Content length of outgoing responses by handler. Only value of header is respected. Otherwise ignored. No percentile calculated.",
                |s| s.2,
            ),
        ];
        for (name, help, read) in sizes {
            head(out, name, "summary", help);
            for (handler, size) in &self.sizes {
                let labels = format_args!("handler=\"{handler}\"").to_string();
                line(out, format_args!("{name}_count{{{labels}}} {}.0", size.0));
                line(out, format_args!("{name}_sum{{{labels}}} {}.0", read(size)));
            }
        }
        let name = "http_request_duration_highr_seconds";
        let help = "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations.";
        head(out, name, "histogram", help);
        self.fine_durations.write(out, name, "");
        let name = "http_request_duration_seconds";
        let help = "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important.";
        head(out, name, "histogram", help);
        for ((handler, method), histogram) in &self.durations {
            let labels = format!("handler=\"{handler}\",method=\"{method}\"");
            histogram.write(out, name, &labels);
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    line(
        out,
        format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"),
    );
}
