//! What a soak has shown.
//!
//! Invariant: only what happened after the warm-up counts, but for preemptions and hits of the prefix cache, of which
//! every one does.
//! Not here: how it is printed.

use experiment::statistics::dispersion;
use serde::Serialize;

use super::{Soak, Tick};
use crate::bounds::Bounds;
use crate::crowd::{Crowd, Exchange};
use crate::gpus::Activity;
use crate::preset::Preset;
use crate::score::Distribution;

/// Windows in which questions are counted, in seconds.
const WINDOW_S: f64 = 10.0;

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
    /// From the queue's entry to the choice of the first step, by the engine's stamps.
    pub queue: Distribution,
    /// From there to the first token at the engine.
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
    /// Variance over mean of the number of questions in 10 s: 1 for a Poisson process, more for bursts.
    pub dispersion_10s: f64,
    /// Share of time in which a step ran.
    pub gpu_utilisation: f64,
    /// Share of time in which a step ran that read a prompt.
    pub prefill_share: f64,
    /// Bytes that each GPU sent over NVLink in a second.
    pub nvlink_tx_bytes_per_s: f64,
    /// Steps that ran.
    pub steps: u64,
    /// Share of them of a kind that the recording behind the preset had not; 0 where the preset says nothing of it.
    pub beyond_bounds: f64,
    /// Profile by profile; without those of which nobody had an answer.
    pub profiles: Vec<ProfileReport>,
}

/// What became of one profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileReport {
    /// Its name.
    pub name: String,
    /// Its users.
    pub users: u32,
    /// Answers that they had in full.
    pub requests: usize,
    /// Those for each second.
    pub requests_per_s: f64,
    /// Mean pause before a question, as it came out.
    pub think_s: f64,
    /// Mean tokens of a prompt.
    pub prompt_tokens: f64,
    /// Share of them that came from the prefix cache.
    pub cached_share: f64,
    /// Mean tokens of an answer.
    pub output_tokens: f64,
    /// Question to first token.
    pub ttft: Distribution,
    /// Question to last token.
    pub e2e: Distribution,
}

#[derive(Default)]
pub(super) struct Observed {
    answers: Vec<Exchange>,
    /// Sums of value times seconds: running, waiting, KV usage.
    held: [f64; 3],
    reading_s: f64,
    kv_usage_max: f64,
    tokens: u64,
    steps: u64,
    bounds: Option<Bounds>,
    beyond_bounds: u64,
}

impl Observed {
    pub(super) fn of(preset: &Preset) -> Self {
        Self {
            bounds: preset.bounds,
            ..Self::default()
        }
    }

    pub(super) fn tick(&mut self, tick: &Tick<'_>) {
        let (seconds, stats) = (tick.passed.as_secs_f64(), &tick.stats);
        let values = [stats.running as f64, stats.waiting as f64, stats.kv_usage];
        self.held
            .iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value * seconds);
        if tick.iteration.load.prefills > 0 {
            self.reading_s += seconds;
        }
        self.kv_usage_max = self.kv_usage_max.max(stats.kv_usage);
        self.tokens += tick.iteration.emitted.len() as u64;
        self.steps += 1;
        let load = &tick.iteration.load;
        self.beyond_bounds += u64::from(self.bounds.is_some_and(|b| b.are_left_by(load)));
        self.answers.extend(&tick.delivered.answers);
    }

    fn distribution(&self, of: impl Fn(&Exchange) -> Option<f64>) -> Option<Distribution> {
        Distribution::of(self.answers.iter().filter_map(of).collect())
    }

    /// `None` when nobody had an answer of at least two tokens.
    pub(super) fn report(
        &self,
        preset: &Preset,
        soak: &Soak,
        crowd: &Crowd,
        activity: &Activity,
    ) -> Option<Report> {
        let span = (soak.length - soak.warm_up).as_secs_f64();
        let counts = crowd.counts();
        let profiles = soak.traffic.profiles.iter().zip(counts).enumerate();
        let totals = crowd.stats().totals;
        Some(Report {
            preset: preset.name.clone(),
            users: counts.iter().sum(),
            requests: self.answers.len(),
            requests_per_s: self.answers.len() as f64 / span,
            ttft: self.distribution(|a| Some(a.ttft_s()))?,
            tpot: self.distribution(Exchange::tpot_s)?,
            e2e: self.distribution(|a| Some(a.e2e_s()))?,
            queue: self.distribution(|a| Some(a.queue_s()))?,
            prefill: self.distribution(|a| Some(a.prefill_s()))?,
            output_tokens_per_s: self.tokens as f64 / span,
            running: self.held[0] / span,
            waiting: self.held[1] / span,
            kv_usage_mean: self.held[2] / span,
            kv_usage_max: self.kv_usage_max,
            preemptions: totals.preemptions,
            prefix_hit_rate: totals.prefix_hits as f64 / totals.prefix_queries.max(1) as f64,
            dispersion_10s: asked_in_bursts(crowd.asked_s(), soak),
            gpu_utilisation: activity.share(),
            prefill_share: self.reading_s / span,
            nvlink_tx_bytes_per_s: activity.nvlink_bytes_per_s(&preset.gpus),
            steps: self.steps,
            beyond_bounds: self.beyond_bounds as f64 / self.steps.max(1) as f64,
            profiles: profiles
                .filter_map(|(i, (profile, &users))| self.profile(i, &profile.name, users, span))
                .collect(),
        })
    }

    fn profile(&self, number: usize, name: &str, users: u32, span: f64) -> Option<ProfileReport> {
        let of = || self.answers.iter().filter(|a| a.profile as usize == number);
        let requests = of().count();
        let mean = |value: fn(&Exchange) -> f64| of().map(value).sum::<f64>() / requests as f64;
        let prompt_tokens = mean(|a| f64::from(a.prompt_tokens));
        Some(ProfileReport {
            name: name.to_owned(),
            users,
            requests,
            requests_per_s: requests as f64 / span,
            think_s: mean(|a| a.thought.unwrap_or_default().as_secs_f64()),
            prompt_tokens,
            cached_share: mean(|a| f64::from(a.cached_tokens)) / prompt_tokens,
            output_tokens: mean(|a| f64::from(a.output_tokens)),
            ttft: Distribution::of(of().map(Exchange::ttft_s).collect())?,
            e2e: Distribution::of(of().map(Exchange::e2e_s).collect())?,
        })
    }
}

/// The index of dispersion of the questions after the warm-up, against their own mean rate; 0 where the soak is
/// shorter than a window.
fn asked_in_bursts(asked_s: &[f64], soak: &Soak) -> f64 {
    let (from, to) = (soak.warm_up.as_secs_f64(), soak.length.as_secs_f64());
    let times: Vec<f64> = asked_s
        .iter()
        .filter(|&&at| at >= from && at < to)
        .map(|at| at - from)
        .collect();
    let rate = times.len() as f64 / (to - from);
    dispersion(&times, to - from, WINDOW_S, rate, WINDOW_S).map_or(0.0, |found| found.index)
}
