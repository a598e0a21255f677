//! A ramp: more and more users, until time to first token says that the engine has enough.
//!
//! It is the beginning of a campaign, whose controller decides: the baseline is that of the first users, who are alone
//! for a while; users come while mean TTFT is below a multiple of it, and are held while it is not.
//! Invariant: profiles keep their shares at every step.
//! Not here: what is decided (`experiment::campaign`), users whose number does not change (`Soak::run`).

use std::time::Duration;

use experiment::campaign::{Baseline, Controller, Ending, Phase, Plan, Then, Threshold};
use experiment::telemetry::{Query, Span};
use serde::Serialize;

use super::{Soak, SoakError};
use crate::campaign::{Campaign, CampaignError, Outcome};
use crate::crowd::Balancer;
use crate::preset::Preset;
use crate::score::Distribution;

/// How users come, and when there are enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// How many come at each step.
    pub users: u32,
    /// A step, and a window.
    pub every: Duration,
    /// How long the first stay alone, for the baseline; the soak's warm-up, during which caches fill, is part of it.
    pub alone: Duration,
    /// Times the baseline that is too much.
    pub factor: f64,
    /// Windows running in which it has to be.
    pub windows: u32,
}

impl Default for Ramp {
    /// Eight users a minute after five minutes, three times the baseline in two windows.
    fn default() -> Self {
        Self {
            users: 8,
            every: Duration::from_secs(60),
            alone: Duration::from_secs(300),
            factor: 3.0,
            windows: 2,
        }
    }
}

/// What a ramp has shown; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RampReport {
    /// The preset.
    pub preset: String,
    /// Mean TTFT of the first users.
    pub baseline_s: f64,
    /// TTFT above which a window is too slow.
    pub line_s: f64,
    /// Users of the windows running that were too slow, if there were any.
    pub t2: Option<u32>,
    /// Why it ended with neither enough users nor all that there are.
    pub stopped: Option<String>,
    /// One after another, the first users' time alone being the first.
    pub windows: Vec<Window>,
}

/// One window of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Users there.
    pub users: u32,
    /// Its end.
    pub to_s: f64,
    /// First tokens in it.
    pub requests: usize,
    /// First tokens a second.
    pub requests_per_s: f64,
    /// Question to first token, the mean; `None` where nobody had one.
    pub ttft_s: Option<f64>,
    /// All but one in a hundred had theirs sooner.
    pub ttft_p99_s: Option<f64>,
    /// Its mean is above the line, or another gate held: no users came after it.
    pub too_slow: bool,
    /// Mean number of requests admitted.
    pub running: f64,
    /// Mean number of requests in the queue.
    pub waiting: f64,
    /// Mean share of KV blocks in use.
    pub kv_usage: f64,
    /// Times that a request lost its blocks, from the very start.
    pub preemptions: u64,
}

/// Numbers of a window that telemetry answers, in the order of [`Window`]'s members.
const QUERIES: [&str; 4] = [
    "sum(engine:vllm:num_requests_running)",
    "sum(engine:vllm:num_requests_waiting)",
    "avg(engine:vllm:kv_cache_usage_perc)",
    "increase(engine:vllm:num_preemptions_total)",
];

impl Soak {
    /// Lets more and more users at the engine, `self.users` at most, and stops when there are enough. An open loop
    /// comes in full from the start. `self.length` says nothing here.
    ///
    /// # Errors
    /// When soak or ramp make no sense, a request could never run, or the first users had no answer.
    pub fn ramp(&self, preset: &Preset, ramp: &Ramp) -> Result<RampReport, SoakError> {
        let queries = QUERIES.map(|query| query.parse().expect("a query that is written here"));
        let campaign = Campaign {
            traffic: self.traffic.clone(),
            plan: ramp.plan(self)?,
            seed: self.seed,
            replicas: 1,
            balancer: Balancer::default(),
            queries: queries.to_vec(),
        };
        let (mut ttft, mut line_s) = (Vec::new(), None);
        let mut outcome = campaign.run(preset, |tick| {
            ttft.extend(tick.first_tokens_s.iter().map(|&ttft| (tick.at, ttft)));
            line_s = tick.controller.limit(0);
            is_ramping(tick.controller)
        })?;
        if let Some(fault) = outcome.fault.take() {
            return Err(fault.into());
        }
        let (Some(line_s), Some(baseline)) = (line_s, outcome.course.span(Phase::Baseline)) else {
            return Err(SoakError::Nothing);
        };
        let window =
            |users, span, too_slow| Window::of(users, span, too_slow, &outcome, &queries, &ttft);
        let alone = Span {
            from: self.warm_up,
            to: baseline.to,
        };
        let first = window(campaign.plan.baseline.users, alone, false);
        let steps = outcome.course.steps.iter();
        let later = steps.map(|step| {
            let span = Span {
                from: step.from,
                to: step.to,
            };
            window(step.users, span, !step.is_stable)
        });
        let ending = outcome.course.ending.as_ref();
        let stopped = ending.filter(|ending| **ending != Ending::Interrupted);
        Ok(RampReport {
            preset: preset.name.clone(),
            baseline_s: line_s / ramp.factor,
            line_s,
            t2: outcome.course.t2_users,
            stopped: stopped.map(ToString::to_string),
            windows: std::iter::once(first).chain(later).collect(),
        })
    }
}

/// Not when the users that were found go on.
fn is_ramping(controller: &Controller) -> bool {
    matches!(controller.phase(), Phase::Baseline | Phase::Ramp)
}

impl Ramp {
    /// The published plan with this ramp in it.
    fn plan(&self, soak: &Soak) -> Result<Plan, SoakError> {
        if self.alone <= soak.warm_up {
            return Err(SoakError::Plan(
                "the first users of a ramp have to be alone for longer than the warm-up",
            ));
        }
        let mut plan = Plan {
            step: self.users,
            window: self.every,
            max_users: soak.users,
            ..Plan::default()
        };
        plan.baseline = Baseline {
            users: self.users.min(soak.users),
            warm_up: soak.warm_up,
            min: self.alone - soak.warm_up,
            requests: 1,
            max: self.alone - soak.warm_up,
        };
        for gate in &mut plan.gates {
            if gate.then == Then::Retract {
                gate.windows = self.windows;
                gate.threshold = Threshold::TimesBaseline(self.factor);
            }
        }
        plan.check().map_err(CampaignError::Plan)?;
        Ok(plan)
    }
}

impl Window {
    fn of(
        users: u32,
        span: Span,
        too_slow: bool,
        outcome: &Outcome,
        queries: &[Query; 4],
        ttft: &[(Duration, f64)],
    ) -> Self {
        let [running, waiting, kv_usage, _] = queries
            .each_ref()
            .map(|query| outcome.telemetry.ask(query, span).unwrap_or(0.0));
        let so_far = Span {
            from: Duration::ZERO,
            to: span.to,
        };
        let preemptions = outcome.telemetry.ask(&queries[3], so_far);
        let is_in = |at: Duration| at > span.from && at <= span.to;
        let ttft: Vec<f64> = ttft
            .iter()
            .filter(|(at, _)| is_in(*at))
            .map(|&(_, ttft)| ttft)
            .collect();
        let requests = ttft.len();
        let ttft = Distribution::of(ttft);
        Self {
            users,
            to_s: span.to.as_secs_f64(),
            requests,
            requests_per_s: requests as f64 / (span.to - span.from).as_secs_f64(),
            ttft_s: ttft.map(|ttft| ttft.mean),
            ttft_p99_s: ttft.map(|ttft| ttft.p99),
            too_slow,
            running,
            waiting,
            kv_usage,
            preemptions: preemptions.unwrap_or(0.0) as u64,
        }
    }
}
