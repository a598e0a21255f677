//! The result file: its schema is stable, and a figure that was not measured is absent.
//!
//! Not here: how it looks (`table`).

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::json;

use super::measure::{Iteration, Part};
use super::rig::Check;
use super::scenario::{Figures, Limit, Reference, Scenario, Variant};
use super::stages::Stage;
use crate::host::machine::Machine;
use crate::host::quota::Throttling;
use crate::issuer::Asked;

/// Name and version of the schema.
pub(super) const SCHEMA: &str = "tollgate.oauth-rbac/1";

/// Everything that was run.
pub(super) struct Outcome {
    pub(super) machine: Machine,
    /// What the gate says of its version.
    pub(super) gate: Option<String>,
    /// Whom else was asked.
    pub(super) target: Option<String>,
    pub(super) scenario: Scenario,
    pub(super) runs: Vec<Run>,
}

/// One variant under one limit.
#[derive(Debug, Default, Serialize)]
pub(super) struct Run {
    pub(super) variant: String,
    pub(super) summary: String,
    pub(super) limit: String,
    /// Cores that it may use; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gate_cores: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_cores: Option<f64>,
    /// Why there are no figures, or why they are not to be trusted.
    pub(super) problem: Option<String>,
    pub(super) checks: Vec<Check>,
    pub(super) iterations: Vec<Iteration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) average: Option<Figures>,
    pub(super) parts: Vec<Part>,
    pub(super) stages: Vec<Stage>,
    /// What the service was asked in all iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gate_throttled: Option<Throttled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_throttled: Option<Throttled>,
}

/// What a quota did to a part: the kernel's own count.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Throttled {
    pub(super) periods: u64,
    pub(super) throttled: u64,
    pub(super) throttled_ms: u64,
}

impl From<Throttling> for Throttled {
    fn from(spent: Throttling) -> Self {
        Self {
            periods: spent.periods,
            throttled: spent.throttled,
            throttled_ms: spent.throttled_us / 1_000,
        }
    }
}

impl Run {
    pub(super) fn new(variant: &Variant, limit: &Limit) -> Self {
        Self {
            variant: variant.name.clone(),
            summary: variant.summary.clone(),
            limit: limit.name.clone(),
            gate_cores: limit.gate,
            service_cores: limit.service,
            ..Self::default()
        }
    }

    /// Of a gateway that runs already, whose processes are not ours to look at.
    pub(super) fn elsewhere(url: &str) -> Self {
        Self {
            variant: "target".into(),
            summary: format!("GET {url}"),
            limit: "none".into(),
            ..Self::default()
        }
    }

    /// The first caller that was treated as it must not be.
    pub(super) fn wrong(&self) -> Option<Check> {
        let mut checks = self.checks.iter();
        checks.find(|check| check.status != check.expected).cloned()
    }

    /// Whether every request had a good answer.
    pub(super) fn is_sound(&self) -> bool {
        let is_whole = |one: &Iteration| one.answered == one.requests;
        self.problem.is_none() && self.iterations.iter().all(is_whole)
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'static str,
    finished_at_unix_seconds: u64,
    trusted: bool,
    machine: &'a Machine,
    gate: Option<&'a str>,
    target: Option<&'a str>,
    iterations: usize,
    requests: u64,
    connections: usize,
    objectives: Vec<Objective>,
    reference: &'a Reference,
    runs: &'a [Run],
}

/// Whether a run kept an objective.
#[derive(Debug, Serialize)]
pub(super) struct Objective {
    pub(super) variant: String,
    /// The figure's name.
    pub(super) figure: &'static str,
    /// The most that it may be, or the least.
    pub(super) bound: f64,
    /// `None` where nothing was measured.
    pub(super) value: Option<f64>,
    pub(super) is_kept: bool,
}

impl Outcome {
    /// Whether every run was, and every request had a good answer.
    pub(super) fn trusted(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(Run::is_sound)
    }

    /// Whether each run without a limit kept what was asked of it.
    pub(super) fn keeps_objectives(&self) -> bool {
        self.objectives().iter().all(|objective| objective.is_kept)
    }

    /// Of runs without a limit on anybody's CPU: a limit is there to show what it does.
    pub(super) fn objectives(&self) -> Vec<Objective> {
        let asked = &self.scenario.objectives;
        let free = |run: &&Run| run.gate_cores.is_none() && run.service_cores.is_none();
        let of_run = |run: &Run| {
            let is = run.average.unwrap_or_default();
            let all = [
                ("p50_ms", asked.p50_ms, is.p50_ms, true),
                ("p95_ms", asked.p95_ms, is.p95_ms, true),
                ("p99_ms", asked.p99_ms, is.p99_ms, true),
                ("rps", asked.rps, is.rps, false),
                (
                    "success_percent",
                    asked.success_percent,
                    is.success_percent,
                    false,
                ),
            ];
            let variant = run.variant.clone();
            all.into_iter()
                .filter_map(move |(figure, bound, value, is_most)| {
                    let bound = bound?;
                    let holds = |value: f64| {
                        if is_most {
                            value <= bound
                        } else {
                            value >= bound
                        }
                    };
                    Some(Objective {
                        variant: variant.clone(),
                        figure,
                        bound,
                        value,
                        is_kept: value.is_some_and(holds),
                    })
                })
        };
        self.runs.iter().filter(free).flat_map(of_run).collect()
    }

    pub(super) fn to_json(&self) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let whole = Whole {
            schema: SCHEMA,
            finished_at_unix_seconds: since.map_or(0, |since| since.as_secs()),
            trusted: self.trusted(),
            machine: &self.machine,
            gate: self.gate.as_deref(),
            target: self.target.as_deref(),
            iterations: self.scenario.iterations,
            requests: self.scenario.requests,
            connections: self.scenario.connections,
            objectives: self.objectives(),
            reference: &self.scenario.reference,
            runs: &self.runs,
        };
        format!("{:#}", json!(whole))
    }
}
