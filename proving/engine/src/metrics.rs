//! The engine's own account of its work: what `/metrics` shows, and totals for tests.
//!
//! Invariant: every admitted sequence adds one to `running` and later to exactly one `finished_reason`. Where a
//! scheduler runs, its own figures are shown; where none does (each call at its own pace), nothing ever waits, is
//! preempted or cached, and those figures are truly 0.
//! Not here: when things happen (`generation`, `real_time`), names and labels (`exposition`).

mod exposition;
mod histogram;
pub(crate) mod http;
mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use simulator::scheduler::{SchedulerConfig, SchedulerStats};

use crate::config::{EngineConfig, Hardware};
use histogram::{CHOICES, Histogram, REQUEST_S, STEP_TOKENS, TOKEN_S, TTFT_S, up_to};
use http::HttpMetrics;

/// How a request ended, as `finished_reason` has it.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Admitted sequences now in flight, waiting ones included.
    pub running: u64,
    /// Ended by themselves.
    pub finished_stop: u64,
    /// Ended by their cap.
    pub finished_length: u64,
    /// Abandoned by the client.
    pub finished_abort: u64,
    /// Prompt tokens of sequences that got their first token or were answered without one.
    pub prompt_tokens: u64,
    /// Tokens generated, those of abandoned requests included.
    pub generation_tokens: u64,
    /// KV blocks in use now; 0 where no scheduler runs.
    pub kv_blocks_used: u64,
    /// Times that a running sequence lost its blocks.
    pub preemptions: u64,
}

/// Moments of one sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) arrived: Instant,
    /// The engine took it from its inbox.
    pub(crate) queued: Instant,
    /// Its first step was chosen.
    pub(crate) scheduled: Instant,
    /// By which engine.
    pub(crate) rank: usize,
    /// The engine had its first token, where one engine runs many sequences.
    pub(crate) made_first: Option<Instant>,
    /// Its first token went out.
    pub(crate) first: Option<Instant>,
    pub(crate) last: Instant,
    /// Prompt tokens that were not computed.
    pub(crate) cached: u64,
}

impl Times {
    pub(crate) fn arrived(now: Instant) -> Self {
        Self {
            arrived: now,
            queued: now,
            scheduled: now,
            rank: 0,
            made_first: None,
            first: None,
            last: now,
            cached: 0,
        }
    }
}

/// What a sequence is, before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) model: usize,
    pub(crate) seen: Option<u64>,
    /// The caller's name for it, where the ground truth is kept.
    pub(crate) client_request_id: Option<Box<str>>,
    pub(crate) id: String,
    pub(crate) prompt_tokens: u64,
    /// Where to leave how many of them were cached, for whoever writes usage.
    pub(crate) cached: Arc<AtomicU64>,
    /// The request that it is of, with its other sequences.
    pub(crate) request: Arc<Siblings>,
}

/// The sequences of one request: those of one prompt. Some metrics count them together.
#[derive(Debug)]
pub(crate) struct Siblings {
    /// How many there are.
    n: u64,
    /// Most tokens that each may have, if it generates any.
    max_tokens: Option<u64>,
    open: AtomicU64,
    longest: AtomicU64,
}

impl Siblings {
    pub(crate) fn new(n: u64, max_tokens: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            n,
            max_tokens,
            open: AtomicU64::new(n),
            longest: AtomicU64::new(0),
        })
    }

    /// One of them ended with so many tokens. When it was the last, the most that any had.
    fn ended(&self, tokens: u64) -> Option<u64> {
        let longest = self
            .longest
            .fetch_max(tokens, Ordering::Relaxed)
            .max(tokens);
        (self.open.fetch_sub(1, Ordering::Relaxed) == 1).then_some(longest)
    }
}

/// Everything measured, by model.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) received: u64,
    pub(crate) refused: u64,
    pub(crate) http: HttpMetrics,
    old_names: bool,
    limits: Option<SchedulerConfig>,
    /// Engines in parallel, each with its own figures: its number is vLLM's label `engine`.
    ranks: usize,
    /// Of each engine's scheduler, which all models share; shown with the first. Empty where none runs.
    schedulers: Vec<SchedulerStats>,
    /// Of each engine.
    step_tokens: Vec<Histogram>,
    /// Of the first model in each engine, then of the next.
    models: Vec<ModelMetrics>,
}

#[derive(Debug)]
pub(crate) struct ModelMetrics {
    labels: String,
    in_flight: u64,
    ended: [u64; REASONS.len()],
    prompt_tokens: u64,
    cached_tokens: u64,
    generation_tokens: u64,
    ttft: Histogram,
    inter_token: Histogram,
    per_output_token: Histogram,
    e2e: Histogram,
    queue: Histogram,
    prefill: Histogram,
    decode: Histogram,
    inference: Histogram,
    prompt_lengths: Histogram,
    output_lengths: Histogram,
    most_output: Histogram,
    choices: Histogram,
    caps: Histogram,
    computed: Histogram,
}

impl Metrics {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let ranks = config.hardware.as_ref().map_or(1, Hardware::ranks);
        Self {
            received: 0,
            refused: 0,
            http: HttpMetrics::new(),
            old_names: config.old_metric_names,
            limits: config.hardware.as_ref().map(|hardware| hardware.scheduler),
            ranks,
            schedulers: Vec::new(),
            step_tokens: vec![Histogram::new(STEP_TOKENS); ranks],
            models: config
                .models
                .iter()
                .flat_map(|model| (0..ranks).map(move |rank| (model, rank)))
                .map(|(model, rank)| ModelMetrics::new(model, rank, config.max_model_len))
                .collect(),
        }
    }

    /// A model's figures in one engine.
    pub(crate) fn model(&mut self, model: usize, rank: usize) -> &mut ModelMetrics {
        &mut self.models[model * self.ranks + rank]
    }

    /// A step of an engine that computed `tokens`.
    pub(crate) fn step(&mut self, rank: usize, tokens: u64) {
        if let Some(histogram) = self.step_tokens.get_mut(rank) {
            histogram.observe(tokens as f64, 1);
        }
    }

    /// A sequence is in this engine; until now it counted as the first one's.
    pub(crate) fn placed(&mut self, model: usize, rank: usize) {
        self.model(model, 0).in_flight -= 1;
        self.model(model, rank).in_flight += 1;
    }

    pub(crate) fn schedulers(&mut self, stats: impl Iterator<Item = SchedulerStats>) {
        self.schedulers.clear();
        self.schedulers.extend(stats);
    }

    pub(crate) fn stats(&self) -> Stats {
        let of_all = SchedulerStats::sum(self.schedulers.iter().copied());
        let mut stats = Stats {
            received: self.received,
            refused: self.refused,
            kv_blocks_used: u64::from(of_all.kv_blocks_used),
            preemptions: of_all.totals.preemptions,
            ..Stats::default()
        };
        for m in &self.models {
            stats.running += m.in_flight;
            stats.finished_stop += m.ended[Ended::Stop as usize];
            stats.finished_length += m.ended[Ended::Length as usize];
            stats.finished_abort += m.ended[Ended::Abort as usize];
            stats.prompt_tokens += m.prompt_tokens;
            stats.generation_tokens += m.generation_tokens;
        }
        stats
    }
}

impl ModelMetrics {
    fn new(model: &str, rank: usize, max_model_len: usize) -> Self {
        let name = model
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let lengths = up_to(max_model_len);
        let [token, request] = [TOKEN_S, REQUEST_S].map(|edges| move || Histogram::new(edges));
        let length = || Histogram::new(&lengths);
        Self {
            labels: format!("engine=\"{rank}\",model_name=\"{name}\""),
            in_flight: 0,
            ended: [0; REASONS.len()],
            prompt_tokens: 0,
            cached_tokens: 0,
            generation_tokens: 0,
            ttft: Histogram::new(TTFT_S),
            inter_token: token(),
            per_output_token: token(),
            e2e: request(),
            queue: request(),
            prefill: request(),
            decode: request(),
            inference: request(),
            prompt_lengths: length(),
            output_lengths: length(),
            most_output: length(),
            choices: Histogram::new(CHOICES),
            caps: length(),
            computed: length(),
        }
    }

    pub(crate) fn arrived(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) fn first_token(&mut self, times: &Times, prompt_tokens: u64) {
        self.generation_tokens += 1;
        self.prompt_tokens += prompt_tokens;
        self.cached_tokens += times.cached;
        if let Some(first) = times.first {
            self.ttft.observe(since(first, times.arrived), 1);
        }
    }

    /// `tokens` more tokens, each `gap` after the one before.
    pub(crate) fn more_tokens(&mut self, gap: Duration, tokens: u64) {
        self.generation_tokens += tokens;
        self.inter_token.observe(gap.as_secs_f64(), tokens);
    }

    pub(crate) fn ended(&mut self, how: Ended, times: &Times, subject: &Subject, tokens: u64) {
        self.in_flight -= 1;
        self.ended[how as usize] += 1;
        let end = if tokens == 0 {
            Instant::now()
        } else {
            times.last
        };
        self.e2e.observe(since(end, times.arrived), 1);
        self.queue.observe(since(times.scheduled, times.queued), 1);
        self.inference.observe(since(end, times.scheduled), 1);
        if let Some(first) = times.first {
            let decode = since(times.last, first);
            let made = times.made_first.unwrap_or(first);
            self.prefill.observe(since(made, times.scheduled), 1);
            self.decode.observe(decode, 1);
            if tokens > 1 {
                self.per_output_token
                    .observe(decode / (tokens - 1) as f64, 1);
            }
        } else if matches!(how, Ended::Stop) {
            // An answer without a token, such as an embedding.
            self.prompt_tokens += subject.prompt_tokens;
        }
        self.prompt_lengths.observe(subject.prompt_tokens as f64, 1);
        self.output_lengths.observe(tokens as f64, 1);
        self.computed
            .observe(subject.prompt_tokens.saturating_sub(times.cached) as f64, 1);
        let request = &subject.request;
        if let Some(longest) = request.ended(tokens) {
            self.most_output.observe(longest as f64, 1);
            self.choices.observe(request.n as f64, 1);
            if let Some(cap) = request.max_tokens {
                self.caps.observe(cap as f64, 1);
            }
        }
    }
}

fn since(later: Instant, earlier: Instant) -> f64 {
    later.saturating_duration_since(earlier).as_secs_f64()
}
