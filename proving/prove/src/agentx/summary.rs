//! What lanes came to: the columns that are published of AgentX, and whether its rules were kept.
//!
//! Invariant: only what was sent in the measured time counts, whenever it ended; what was cancelled is counted and has no times.
//! Not here: pages (`page`).

use std::io;

use experiment::lanes::{Kind, Lanes, Rules, Sent};
use experiment::statistics::quantile;
use serde::Serialize;
use simulator::lanes::Answered;

/// More errors than this make a submission invalid.
const MOST_ERRORS: f64 = 0.05;

/// A request, and what came of it; seconds since the start.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) sent: Sent,
    pub(super) at_s: f64,
    pub(super) first_s: Option<f64>,
    /// `None` of what was cancelled.
    pub(super) ended_s: Option<f64>,
    pub(super) prompt: u64,
    pub(super) output: u64,
    pub(super) cached: Option<u64>,
    pub(super) failure: Option<String>,
}

impl Row {
    pub(super) fn of_virtual(one: &Answered) -> Self {
        Self {
            sent: one.sent,
            at_s: one.at.as_secs_f64(),
            first_s: one.first.map(|first| first.as_secs_f64()),
            ended_s: one.last.map(|last| last.as_secs_f64()),
            prompt: one.prompt.into(),
            output: one.output.into(),
            cached: Some(one.cached.into()),
            failure: None,
        }
    }

    fn is_good(&self) -> bool {
        self.ended_s.is_some() && self.failure.is_none()
    }
}

/// Traces that were not played.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct LeftOut {
    /// Longer than may be.
    pub(super) long: u64,
    pub(super) unread: Vec<String>,
}

/// What lanes came to.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    pub(super) schema: &'static str,
    /// What is under test, where it is no real engine.
    pub(super) engine: Option<String>,
    pub(super) seed: u64,
    pub(super) lanes: u32,
    pub(super) traces: u64,
    pub(super) left_out: LeftOut,
    /// Traces that were begun, those in whose middle lanes began among them.
    pub(super) plays: u64,
    pub(super) measured_s: f64,
    pub(super) warm_up_s: f64,
    pub(super) primers: u64,
    pub(super) warm_ups: u64,
    pub(super) warm_up_errors: u64,
    /// Sent in the measured time.
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) errors: u64,
    pub(super) cancelled: u64,
    pub(super) said: Option<String>,
    /// Time that was left out, and how often.
    pub(super) idle: Idle,
    pub(super) prompt_tokens_mean: Option<f64>,
    pub(super) output_tokens_mean: Option<f64>,
    /// Of the tokens of prompts those that the engine's cache had, where it tells.
    pub(super) cached_share: Option<f64>,
    pub(super) requests_per_s: f64,
    pub(super) output_tokens_per_s: f64,
    pub(super) total_tokens_per_s: f64,
    pub(super) gpus: Option<u32>,
    pub(super) output_tokens_per_s_per_gpu: Option<f64>,
    pub(super) total_tokens_per_s_per_gpu: Option<f64>,
    pub(super) ttft_s: Option<Figures>,
    pub(super) itl_s: Option<Figures>,
    pub(super) request_latency_s: Option<Figures>,
    pub(super) submission_valid: bool,
    pub(super) submission_invalid_reasons: Vec<&'static str>,
}

/// Time that was left out.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Idle {
    pub(super) lanes_times: u64,
    pub(super) lanes_s: f64,
    pub(super) all_times: u64,
    pub(super) all_s: f64,
}

/// As the published table has them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 requests")]
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut all: Vec<f64> = values.collect();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| quantile(&all, share);
        Some(Self {
            mean: all.iter().sum::<f64>() / all.len().max(1) as f64,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
        })
    }
}

impl Summary {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 tokens")]
    pub(super) fn of(
        rules: &Rules,
        lanes: &Lanes,
        rows: &[Row],
        (left_out, gpus, engine): (LeftOut, Option<u32>, Option<String>),
    ) -> Self {
        let of_kind = |kind: Kind| rows.iter().filter(move |row| row.sent.kind == kind);
        let measured: Vec<&Row> = of_kind(Kind::Measured).collect();
        let good: Vec<&Row> = measured
            .iter()
            .filter(|row| row.is_good())
            .copied()
            .collect();
        let sum = |of: fn(&Row) -> u64| good.iter().map(|row| of(row)).sum::<u64>() as f64;
        let (prompt, output) = (sum(|row| row.prompt), sum(|row| row.output));
        let told: Vec<&Row> = good
            .iter()
            .filter(|row| row.cached.is_some())
            .copied()
            .collect();
        let cached = told.iter().filter_map(|row| row.cached).sum::<u64>() as f64;
        let cached_of = told.iter().map(|row| row.prompt).sum::<u64>() as f64;
        let seconds = rules.measure.as_secs_f64();
        let count = good.len() as f64;
        let each = |all: f64| (count > 0.0).then(|| all / count);
        let by_gpu = |rate: f64| gpus.map(|gpus| rate / f64::from(gpus));
        let (of_lanes, of_all) = lanes.left_out();
        let errors = measured.iter().filter(|row| row.failure.is_some()).count() as u64;
        let mut summary = Self {
            schema: "tollgate.agentx/1",
            engine,
            seed: rules.seed,
            lanes: rules.lanes,
            traces: lanes.traces().len() as u64,
            left_out,
            plays: lanes.plays(),
            measured_s: seconds,
            warm_up_s: lanes.begun().map_or(0.0, |begun| begun.as_secs_f64()),
            primers: of_kind(Kind::Primer).count() as u64,
            warm_ups: of_kind(Kind::WarmUp).count() as u64,
            warm_up_errors: rows
                .iter()
                .filter(|row| row.sent.kind != Kind::Measured && row.failure.is_some())
                .count() as u64,
            requests: measured.len() as u64,
            answered: good.len() as u64,
            errors,
            cancelled: measured.iter().filter(|row| row.ended_s.is_none()).count() as u64,
            said: rows.iter().find_map(|row| row.failure.clone()),
            idle: Idle {
                lanes_times: of_lanes.times,
                lanes_s: of_lanes.time.as_secs_f64(),
                all_times: of_all.times,
                all_s: of_all.time.as_secs_f64(),
            },
            prompt_tokens_mean: each(prompt),
            output_tokens_mean: each(output),
            cached_share: (cached_of > 0.0).then(|| cached / cached_of),
            requests_per_s: count / seconds,
            output_tokens_per_s: output / seconds,
            total_tokens_per_s: (prompt + output) / seconds,
            gpus,
            output_tokens_per_s_per_gpu: by_gpu(output / seconds),
            total_tokens_per_s_per_gpu: by_gpu((prompt + output) / seconds),
            ttft_s: Figures::of(good.iter().filter_map(|row| Some(row.first_s? - row.at_s))),
            itl_s: Figures::of(good.iter().filter_map(|row| {
                let after = row.output.checked_sub(1).filter(|after| *after > 0)?;
                Some((row.ended_s? - row.first_s?) / after as f64)
            })),
            request_latency_s: Figures::of(
                good.iter().filter_map(|row| Some(row.ended_s? - row.at_s)),
            ),
            submission_valid: false,
            submission_invalid_reasons: Vec::new(),
        };
        summary.submission_invalid_reasons = summary.reasons(rules);
        summary.submission_valid = summary.submission_invalid_reasons.is_empty();
        summary
    }

    /// Which rules of AgentX were broken.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 requests")]
    fn reasons(&self, rules: &Rules) -> Vec<&'static str> {
        let theirs = Rules::agentx(rules.lanes, rules.seed);
        let as_theirs = Rules {
            measure: theirs.measure,
            ..rules.clone()
        };
        let share = self.errors as f64 / self.requests.max(1) as f64;
        let reasons = [
            (rules.measure < theirs.measure, "duration_below_an_hour"),
            (as_theirs != theirs, "rules_changed"),
            (self.answered == 0, "nothing_measured"),
            (share > MOST_ERRORS, "failed_requests_above_5_percent"),
            (self.warm_up_errors > 0, "warm_up_failed"),
            (crate::interrupt::was_heard(), "run_cancelled"),
        ];
        let broken = reasons.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, reason)| reason).collect()
    }
}

/// A request as a line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    lane: u32,
    play: u64,
    trace: &'a str,
    stream: &'a str,
    request: usize,
    kind: &'static str,
    due_s: f64,
    sent_s: f64,
    first_s: Option<f64>,
    ended_s: Option<f64>,
    prompt_tokens: u64,
    output_tokens: u64,
    cached_tokens: Option<u64>,
    is_cancelled: bool,
    failure: Option<&'a str>,
}

/// All requests, a line each.
pub(super) fn records(lanes: &Lanes, rows: &[Row]) -> io::Result<String> {
    let mut out = String::new();
    for row in rows {
        let trace = lanes.traces().get(row.sent.trace);
        let stream = trace.and_then(|trace| trace.streams.get(row.sent.stream));
        let line = Line {
            lane: row.sent.lane,
            play: row.sent.play,
            trace: trace.map_or("", |trace| &trace.id),
            stream: stream.map_or("", |stream| &stream.id),
            request: row.sent.request,
            kind: match row.sent.kind {
                Kind::Primer => "primer",
                Kind::WarmUp => "warm_up",
                Kind::Measured => "measured",
            },
            due_s: row.sent.due.as_secs_f64(),
            sent_s: row.at_s,
            first_s: row.first_s,
            ended_s: row.ended_s,
            prompt_tokens: row.prompt,
            output_tokens: row.output,
            cached_tokens: row.cached,
            is_cancelled: row.ended_s.is_none(),
            failure: row.failure.as_deref(),
        };
        out.push_str(&serde_json::to_string(&line).map_err(io::Error::other)?);
        out.push('\n');
    }
    Ok(out)
}
