//! What a soak has shown.
//!
//! Invariant: only what happened after the warm-up counts, but for preemptions, of which every one does.
//! Not here: how it is printed.

use serde::Serialize;

use super::users::Answer;
use super::{Iteration, Plan};
use crate::gpus::Activity;
use crate::preset::Preset;
use crate::scheduler::SchedulerStats;
use crate::score::Distribution;

/// The outcome; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The preset.
    pub preset: String,
    /// Users.
    pub users: u32,
    /// Answers that users had in full.
    pub requests: usize,
    /// Those for each second.
    pub requests_per_s: f64,
    /// Question to first token, at the user.
    pub ttft: Distribution,
    /// For each token after the first, at the user.
    pub tpot: Distribution,
    /// Question to last token, at the user.
    pub e2e: Distribution,
    /// In the queue until the first step began.
    pub queue: Distribution,
    /// First step to first token.
    pub prefill: Distribution,
    /// Tokens generated for each second.
    pub output_tokens_per_s: f64,
    /// Mean number of requests admitted, over time.
    pub running: f64,
    /// Mean number of requests in the queue, over time.
    pub waiting: f64,
    /// Mean share of KV blocks in use, over time.
    pub kv_usage_mean: f64,
    /// Greatest share of KV blocks in use.
    pub kv_usage_max: f64,
    /// Times that a running request lost its blocks, from the very start.
    pub preemptions: u64,
    /// Share of prompt tokens that came from the prefix cache.
    pub prefix_hit_rate: f64,
    /// Share of time in which a step ran.
    pub gpu_utilisation: f64,
    /// Share of time in which a step ran that read a prompt.
    pub prefill_share: f64,
    /// Bytes that each GPU sent over NVLink in a second.
    pub nvlink_tx_bytes_per_s: f64,
    /// Steps that ran.
    pub steps: u64,
}

#[derive(Default)]
pub(super) struct Observed {
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    e2e: Vec<f64>,
    queue: Vec<f64>,
    prefill: Vec<f64>,
    /// Sums of value times seconds: running, waiting, KV usage.
    held: [f64; 3],
    reading_s: f64,
    kv_usage_max: f64,
    tokens: u64,
    steps: u64,
}

impl Observed {
    pub(super) fn iteration(&mut self, iteration: &Iteration, stats: &SchedulerStats) {
        let seconds = (iteration.at - iteration.began).as_secs_f64();
        let values = [stats.running as f64, stats.waiting as f64, stats.kv_usage];
        self.held
            .iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value * seconds);
        if iteration.load.prefills > 0 {
            self.reading_s += seconds;
        }
        self.kv_usage_max = self.kv_usage_max.max(stats.kv_usage);
        self.tokens += iteration.emitted.len() as u64;
        self.steps += 1;
    }

    pub(super) fn answer(&mut self, answer: &Answer) {
        self.ttft.push((answer.first - answer.asked).as_secs_f64());
        self.e2e.push((answer.last - answer.asked).as_secs_f64());
        self.queue
            .push(answer.began.saturating_sub(answer.queued).as_secs_f64());
        self.prefill
            .push((answer.made - answer.began).as_secs_f64());
        if answer.output_tokens > 1 {
            let decode = answer.last - answer.first;
            self.tpot
                .push(decode.as_secs_f64() / f64::from(answer.output_tokens - 1));
        }
    }

    /// `None` when nobody had an answer of at least two tokens.
    pub(super) fn report(
        self,
        preset: &Preset,
        plan: &Plan,
        stats: &SchedulerStats,
        activity: &Activity,
    ) -> Option<Report> {
        let span = (plan.length - plan.warm_up).as_secs_f64();
        let requests = self.ttft.len();
        let totals = stats.totals;
        Some(Report {
            preset: preset.name.clone(),
            users: plan.users,
            requests,
            requests_per_s: requests as f64 / span,
            ttft: Distribution::of(self.ttft)?,
            tpot: Distribution::of(self.tpot)?,
            e2e: Distribution::of(self.e2e)?,
            queue: Distribution::of(self.queue)?,
            prefill: Distribution::of(self.prefill)?,
            output_tokens_per_s: self.tokens as f64 / span,
            running: self.held[0] / span,
            waiting: self.held[1] / span,
            kv_usage_mean: self.held[2] / span,
            kv_usage_max: self.kv_usage_max,
            preemptions: totals.preemptions,
            prefix_hit_rate: totals.prefix_hits as f64 / totals.prefix_queries.max(1) as f64,
            gpu_utilisation: activity.share(),
            prefill_share: self.reading_s / span,
            nvlink_tx_bytes_per_s: activity.nvlink_bytes_per_s(&preset.gpus),
            steps: self.steps,
        })
    }
}
