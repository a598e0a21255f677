//! The engine's own account of its work: `/metrics` under vLLM's names, and totals for tests.
//!
//! Invariant: every admitted request adds one to `running` and later to exactly one `finished_reason`;
//! a family is exposed only if this engine really measures it. It has no queue and never preempts, so
//! `num_requests_waiting` and `num_preemptions_total` are truly 0; it has no KV cache, so it says nothing of one.
//! Not here: when things happen (`generation`).

use std::time::Duration;

use serde::Serialize;

use crate::histogram::{Histogram, REQUEST_S, TOKEN_S, TTFT_S, line};

/// How a request ended, as `finished_reason` has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Stop,
    Length,
    Abort,
}

const REASONS: [&str; 4] = ["stop", "length", "abort", "error"];

/// Totals over all models since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests to `/v1/*` whose head and body were read or refused, whatever became of them.
    pub received: u64,
    /// Those answered with a 4xx.
    pub refused: u64,
    /// Admitted requests now in flight.
    pub running: u64,
    /// Ended by themselves.
    pub finished_stop: u64,
    /// Ended by their cap.
    pub finished_length: u64,
    /// Abandoned by the client.
    pub finished_abort: u64,
    /// Prompt tokens of admitted requests.
    pub prompt_tokens: u64,
    /// Tokens generated, those of abandoned requests included.
    pub generation_tokens: u64,
}

/// Everything measured, by model.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) received: u64,
    pub(crate) refused: u64,
    models: Vec<ModelMetrics>,
}

#[derive(Debug)]
pub(crate) struct ModelMetrics {
    labels: String,
    running: u64,
    ended: [u64; REASONS.len()],
    prompt_tokens: u64,
    generation_tokens: u64,
    ttft: Histogram,
    inter_token: Histogram,
    per_output_token: Histogram,
    e2e: Histogram,
}

impl Metrics {
    pub(crate) fn new(models: &[String]) -> Self {
        Self {
            received: 0,
            refused: 0,
            models: models.iter().map(|m| ModelMetrics::new(m)).collect(),
        }
    }

    pub(crate) fn model(&mut self, index: usize) -> &mut ModelMetrics {
        &mut self.models[index]
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats {
            received: self.received,
            refused: self.refused,
            ..Stats::default()
        };
        for m in &self.models {
            stats.running += m.running;
            stats.finished_stop += m.ended[Ended::Stop as usize];
            stats.finished_length += m.ended[Ended::Length as usize];
            stats.finished_abort += m.ended[Ended::Abort as usize];
            stats.prompt_tokens += m.prompt_tokens;
            stats.generation_tokens += m.generation_tokens;
        }
        stats
    }

    /// The Prometheus text exposition.
    pub(crate) fn exposition(&self) -> String {
        let mut out = String::with_capacity(4096 + 8192 * self.models.len());
        self.gauge(
            &mut out,
            "num_requests_running",
            "Number of requests in model execution batches.",
            |m| m.running,
        );
        self.gauge(
            &mut out,
            "num_requests_waiting",
            "Number of requests waiting to be processed.",
            |_| 0,
        );
        self.counter(
            &mut out,
            "num_preemptions",
            "Cumulative number of preemptions.",
            |_| 0,
        );
        self.counter(
            &mut out,
            "prompt_tokens",
            "Number of prefill tokens processed.",
            |m| m.prompt_tokens,
        );
        self.counter(
            &mut out,
            "generation_tokens",
            "Number of generation tokens processed.",
            |m| m.generation_tokens,
        );
        head(
            &mut out,
            "request_success_total",
            "counter",
            "Count of successfully processed requests.",
        );
        for m in &self.models {
            for (reason, count) in REASONS.iter().zip(m.ended) {
                let labels = &m.labels;
                line(
                    &mut out,
                    format_args!(
                        "vllm:request_success_total{{{labels},finished_reason=\"{reason}\"}} {count}"
                    ),
                );
            }
        }
        let h = &mut out;
        self.histogram(
            h,
            "time_to_first_token_seconds",
            "Histogram of time to first token in seconds.",
            |m| &m.ttft,
        );
        self.histogram(
            h,
            "inter_token_latency_seconds",
            "Histogram of inter-token latency in seconds.",
            |m| &m.inter_token,
        );
        self.histogram(
            h,
            "request_time_per_output_token_seconds",
            "Histogram of time per output token.",
            |m| &m.per_output_token,
        );
        self.histogram(
            h,
            "e2e_request_latency_seconds",
            "Histogram of e2e request latency in seconds.",
            |m| &m.e2e,
        );
        out
    }

    fn gauge(&self, out: &mut String, name: &str, help: &str, read: impl Fn(&ModelMetrics) -> u64) {
        head(out, name, "gauge", help);
        for m in &self.models {
            line(out, format_args!("vllm:{name}{{{}}} {}", m.labels, read(m)));
        }
    }

    fn counter(
        &self,
        out: &mut String,
        name: &str,
        help: &str,
        read: impl Fn(&ModelMetrics) -> u64,
    ) {
        head(out, &format!("{name}_total"), "counter", help);
        for m in &self.models {
            line(
                out,
                format_args!("vllm:{name}_total{{{}}} {}", m.labels, read(m)),
            );
        }
    }

    fn histogram(
        &self,
        out: &mut String,
        name: &str,
        help: &str,
        read: impl Fn(&ModelMetrics) -> &Histogram,
    ) {
        head(out, name, "histogram", help);
        for m in &self.models {
            read(m).write(out, &format!("vllm:{name}"), &m.labels);
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    line(
        out,
        format_args!("# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}"),
    );
}

impl ModelMetrics {
    fn new(model: &str) -> Self {
        let name = model
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        Self {
            labels: format!("engine=\"0\",model_name=\"{name}\""),
            running: 0,
            ended: [0; REASONS.len()],
            prompt_tokens: 0,
            generation_tokens: 0,
            ttft: Histogram::new(TTFT_S),
            inter_token: Histogram::new(TOKEN_S),
            per_output_token: Histogram::new(TOKEN_S),
            e2e: Histogram::new(REQUEST_S),
        }
    }

    pub(crate) fn started(&mut self, prompt_tokens: u64) {
        self.running += 1;
        self.prompt_tokens += prompt_tokens;
    }

    pub(crate) fn first_token(&mut self, after: Duration) {
        self.generation_tokens += 1;
        self.ttft.observe(after.as_secs_f64(), 1);
    }

    /// `tokens` more tokens, each `gap` after the one before.
    pub(crate) fn more_tokens(&mut self, gap: Duration, tokens: u64) {
        self.generation_tokens += tokens;
        self.inter_token.observe(gap.as_secs_f64(), tokens);
    }

    pub(crate) fn ended(
        &mut self,
        how: Ended,
        after: Duration,
        decode: Option<Duration>,
        tokens: u64,
    ) {
        self.running -= 1;
        self.ended[how as usize] += 1;
        self.e2e.observe(after.as_secs_f64(), 1);
        if let (Some(decode), true) = (decode, tokens > 1) {
            self.per_output_token
                .observe(decode.as_secs_f64() / (tokens - 1) as f64, 1);
        }
    }
}
