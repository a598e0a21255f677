//! One run: the parts at rest, then iterations of so many requests, while the parts are looked at.
//!
//! Invariant: CPU is the scheduler's count of all processes of a part; a peak is of one sample of `SAMPLE` at least.
//! Not here: starting and ending the parts (`rig`).

#![expect(
    clippy::cast_precision_loss,
    reason = "counts, bytes and nanoseconds below 2^53"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::{Target, Trust};
use load::observer::Observations;
use load::run::{Plan, Shape, start};
use load::source::Fixed;
use serde::Serialize;

use super::scenario::{Figures, Scenario};
use crate::host::usage::{Process, Usage, cpu_ns, usage};

const SAMPLE: Duration = Duration::from_millis(100);
const MIB: f64 = 1024.0 * 1024.0;
/// A request that is not answered by then has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One iteration.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Iteration {
    /// Good answers: of status 200, and of the body that the backend gives.
    pub(super) answered: u64,
    /// Requests that were to be sent.
    pub(super) requests: u64,
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// By kind.
    pub(super) failures: BTreeMap<String, u64>,
}

/// What one part used.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Part {
    pub(super) part: &'static str,
    pub(super) cores_rest: f64,
    /// Over all iterations.
    pub(super) cores_mean: f64,
    pub(super) cores_peak: f64,
    pub(super) mib_rest: f64,
    pub(super) mib_peak: f64,
    pub(super) cpu_us_per_request: f64,
}

/// Whose processes are looked at.
pub(super) struct Watched {
    pub(super) part: &'static str,
    pub(super) processes: Vec<Process>,
}

/// What is asked.
pub(super) struct Asked {
    pub(super) target: Target,
    pub(super) trust: Trust,
    pub(super) requests: Fixed,
    /// The body of every good answer; `None`: bodies are not looked at.
    pub(super) expects: Option<Bytes>,
}

/// Sums over the iterations, for one part.
#[derive(Debug, Default)]
struct Sum {
    rest: (f64, u64),
    spent_ns: u64,
    seconds: f64,
    peak_cores: f64,
    peak_bytes: u64,
}

/// Looks at the parts at rest, then runs the iterations.
pub(super) fn run(
    scenario: &Scenario,
    asked: &Asked,
    watched: &[Watched],
    progress: impl Fn(usize),
) -> Result<(Vec<Iteration>, Vec<Part>), String> {
    let mut sums: Vec<Sum> = watched.iter().map(|_| Sum::default()).collect();
    if !watched.is_empty() {
        rest(scenario.rest_seconds, watched, &mut sums);
    }
    let mut iterations = Vec::new();
    for number in 1..=scenario.iterations {
        progress(number);
        iterations.push(iterate(scenario, asked, watched, &mut sums)?);
    }
    let answered = iterations.iter().map(|iteration| iteration.answered).sum();
    let parts = watched.iter().zip(&sums);
    let parts = parts.map(|(watched, sum)| sum.part(watched.part, answered));
    Ok((iterations, parts.collect()))
}

fn rest(seconds: f64, watched: &[Watched], sums: &mut [Sum]) {
    let (before, began) = (look(watched), Instant::now());
    thread::sleep(Duration::from_secs_f64(seconds));
    let after = look(watched);
    let took = began.elapsed();
    for ((sum, before), after) in sums.iter_mut().zip(&before).zip(&after) {
        sum.rest = (cores(cpu_ns(before, after).0, took), after.rss_bytes);
    }
}

fn iterate(
    scenario: &Scenario,
    asked: &Asked,
    watched: &[Watched],
    sums: &mut [Sum],
) -> Result<Iteration, String> {
    let shape = Shape::Closed {
        users: scenario.connections,
        think: Duration::ZERO,
    };
    let requests = asked.requests.clone();
    let what = (requests.head().clone(), Arc::new(requests) as _);
    let measure = Duration::from_secs(scenario.iteration_seconds);
    let target = asked.target.clone();
    let mut plan = Plan::plain(target, what, shape, Duration::ZERO, measure, TIMEOUT);
    plan.reach.trust = asked.trust.clone();
    plan.most = Some(scenario.requests);
    for traffic in &mut plan.traffic {
        traffic.expects.clone_from(&asked.expects);
    }
    let first = look(watched);
    let running = start(plan).map_err(|error| error.to_string())?;
    thread::sleep(running.begin.saturating_duration_since(Instant::now()));
    let (mut before, mut began) = (look(watched), Instant::now());
    sampled(|| {
        let (after, now) = (look(watched), Instant::now());
        for ((sum, before), after) in sums.iter_mut().zip(&before).zip(&after) {
            let cores = cores(cpu_ns(before, after).0, now - began);
            sum.peak_cores = sum.peak_cores.max(cores);
            sum.peak_bytes = sum.peak_bytes.max(after.rss_bytes);
        }
        (before, began) = (after, now);
        running.is_over()
    });
    let last = look(watched);
    let outcome = running.finish().map_err(|error| error.to_string())?;
    for ((sum, first), last) in sums.iter_mut().zip(&first).zip(&last) {
        sum.spent_ns += cpu_ns(first, last).0;
        sum.seconds += outcome.measured.as_secs_f64();
    }
    Ok(iteration(
        &outcome.total(),
        outcome.measured,
        scenario.requests,
    ))
}

/// Looks after every sample until one was the last; an iteration that is over already has one sample, too.
fn sampled(mut is_last: impl FnMut() -> bool) {
    loop {
        thread::sleep(SAMPLE);
        if is_last() {
            return;
        }
    }
}

fn iteration(seen: &Observations, measured: Duration, requests: u64) -> Iteration {
    let ms = |us: u64| Some(us as f64 / 1e3);
    let latency = seen.latency();
    let seconds = measured.as_secs_f64();
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, count) in seen.all_failures() {
        *failures.entry(kind.to_string()).or_default() += count;
    }
    let missing = requests.saturating_sub(seen.answered + seen.failed());
    if missing > 0 {
        failures.insert("not_in_time".into(), missing);
    }
    Iteration {
        answered: seen.answered,
        requests,
        seconds,
        figures: Figures {
            p50_ms: latency.and_then(|latency| ms(latency.p50)),
            p95_ms: latency.and_then(|latency| ms(latency.p95)),
            p99_ms: latency.and_then(|latency| ms(latency.p99)),
            rps: (seconds > 0.0).then(|| seen.completed as f64 / seconds),
            success_percent: Some(seen.answered as f64 / requests as f64 * 100.0),
        },
        failures,
    }
}

/// The average over iterations of each figure that all of them have.
pub(super) fn average(iterations: &[Iteration]) -> Figures {
    let mean = |of: fn(&Figures) -> Option<f64>| {
        let all: Option<Vec<f64>> = iterations.iter().map(|one| of(&one.figures)).collect();
        let all = all.filter(|all| !all.is_empty())?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    };
    Figures {
        p50_ms: mean(|figures| figures.p50_ms),
        p95_ms: mean(|figures| figures.p95_ms),
        p99_ms: mean(|figures| figures.p99_ms),
        rps: mean(|figures| figures.rps),
        success_percent: mean(|figures| figures.success_percent),
    }
}

impl Sum {
    fn part(&self, part: &'static str, answered: u64) -> Part {
        let (cores_rest, bytes_rest) = self.rest;
        let spent_us = self.spent_ns as f64 / 1e3;
        Part {
            part,
            cores_rest,
            cores_mean: spent_us / 1e6 / self.seconds.max(1e-9),
            cores_peak: self.peak_cores,
            mib_rest: bytes_rest as f64 / MIB,
            mib_peak: self.peak_bytes as f64 / MIB,
            cpu_us_per_request: spent_us / answered.max(1) as f64,
        }
    }
}

fn look(watched: &[Watched]) -> Vec<Usage> {
    let used = |watched: &Watched| usage(&watched.processes);
    watched.iter().map(used).collect()
}

fn cores(ns: u64, over: Duration) -> f64 {
    ns as f64 / 1e9 / over.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests;
