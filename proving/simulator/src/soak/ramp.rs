//! A ramp: more and more users, until time to first token says that the engine has enough.
//!
//! The rule is the published one: mean TTFT over a window against a multiple of a baseline, in some windows running.
//! The baseline is the mean of the first users, who are alone for a while before others come.
//! Invariant: profiles keep their shares at every step; a user who has come stays.
//! Not here: users whose number does not change (`Soak::run`).

use std::time::Duration;

use experiment::workload::apportion;
use serde::Serialize;

use super::users::Users;
use super::{Soak, SoakError, Tick};
use crate::preset::Preset;
use crate::score::Distribution;

/// A step at most, and the time of the first users alone.
const LONGEST_STEP: Duration = Duration::from_secs(86_400);

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
    /// Users at the end of the last of the windows running that were too slow, if there were any.
    pub t2: Option<u32>,
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
    /// Its mean is above the line, or nobody had a token though somebody waited.
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

/// A ramp under way.
struct Course<'a> {
    ramp: &'a Ramp,
    warm_up: Duration,
    most_users: u32,
    filling: Filling,
    /// The first users had answers.
    has_baseline: bool,
    /// Windows running that were too slow.
    slow: u32,
    report: RampReport,
}

/// A window being filled: sums of value times seconds, and what ended in it.
#[derive(Default)]
struct Filling {
    ttft: Vec<f64>,
    running: f64,
    waiting: f64,
    kv: f64,
    preemptions: u64,
}

impl Soak {
    /// Lets more and more users at the engine, `self.users` at most, and stops when there are enough. An open loop
    /// comes in full from the start. `self.length` says nothing here.
    ///
    /// # Errors
    /// When soak or ramp make no sense, a request could never run, or the first users had no answer.
    pub fn ramp(&self, preset: &Preset, ramp: &Ramp) -> Result<RampReport, SoakError> {
        self.traffic.check(self.users, preset)?;
        ramp.check(self.warm_up)?;
        let steps = self.users.div_ceil(ramp.users).max(1);
        let all = Self {
            length: ramp.alone + ramp.every * steps,
            ..self.clone()
        };
        let there = self.there(ramp, steps);
        let comes_in = |profile: usize, number: u32| {
            let counts = there.get(profile).map_or(&[][..], Vec::as_slice);
            let step = counts.partition_point(|&count| count <= number) as u32;
            let later = step.checked_sub(1);
            later.map_or(Duration::ZERO, |later| ramp.alone + ramp.every * later)
        };
        let mut course = Course {
            ramp,
            warm_up: self.warm_up,
            most_users: self.users,
            filling: Filling::default(),
            has_baseline: false,
            slow: 0,
            report: RampReport {
                preset: preset.name.clone(),
                baseline_s: 0.0,
                line_s: f64::INFINITY,
                t2: None,
                windows: Vec::new(),
            },
        };
        let mut users = Users::new(&all, preset);
        all.drive(preset, &mut users, comes_in, |tick| {
            course.see(tick);
            course.goes_on()
        })?;
        if !course.has_baseline {
            return Err(SoakError::Nothing);
        }
        Ok(course.report)
    }

    /// For each profile, how many of its users are there from each step on.
    fn there(&self, ramp: &Ramp, steps: u32) -> Vec<Vec<u32>> {
        let weights = self.traffic.weights();
        let mut there = vec![Vec::new(); weights.len()];
        for step in 1..=steps {
            let now = apportion(self.users.min(step.saturating_mul(ramp.users)), &weights);
            for (counts, now) in there.iter_mut().zip(now) {
                let before = counts.last().copied().unwrap_or(0);
                counts.push(now.max(before));
            }
        }
        there
    }
}

impl Ramp {
    fn check(&self, warm_up: Duration) -> Result<(), SoakError> {
        if self.users == 0 || self.windows == 0 {
            return Err(SoakError::Plan(
                "a ramp's step and its windows have to be at least 1",
            ));
        }
        if self.every < Duration::from_secs(1) || self.alone <= warm_up {
            return Err(SoakError::Plan(
                "a ramp's step has to be at least 1 s, and the first users alone for longer than the warm-up",
            ));
        }
        if self.every > LONGEST_STEP || self.alone > LONGEST_STEP {
            return Err(SoakError::Plan(
                "a ramp's step, and the first users' time alone, are at most a day",
            ));
        }
        if !(self.factor > 0.0 && self.factor.is_finite()) {
            return Err(SoakError::Plan("a ramp's factor has to be above 0"));
        }
        Ok(())
    }
}

impl Course<'_> {
    fn see(&mut self, tick: &Tick<'_>) {
        while tick.iteration.at >= self.end() {
            self.close();
        }
        if tick.iteration.at >= self.warm_up {
            self.filling.add(tick);
        }
    }

    /// Until there are enough, and only if the first users had answers to compare with.
    fn goes_on(&self) -> bool {
        let report = &self.report;
        report.t2.is_none() && (report.windows.is_empty() || self.has_baseline)
    }

    /// Of the window that is being filled.
    fn end(&self) -> Duration {
        self.ramp.alone + self.ramp.every * self.report.windows.len() as u32
    }

    fn close(&mut self) {
        let number = self.report.windows.len() as u32;
        let span = if number == 0 {
            self.ramp.alone - self.warm_up
        } else {
            self.ramp.every
        };
        let users = self.ramp.users.saturating_mul(number + 1);
        let mut window = std::mem::take(&mut self.filling).close(
            users.min(self.most_users),
            self.end().as_secs_f64(),
            span.as_secs_f64(),
        );
        let report = &mut self.report;
        if let (0, Some(ttft_s)) = (number, window.ttft_s) {
            self.has_baseline = true;
            report.baseline_s = ttft_s;
            report.line_s = ttft_s * self.ramp.factor;
        }
        // Where nobody had a token though somebody waits for one, the engine stands still.
        window.too_slow = match window.ttft_s {
            Some(ttft_s) => ttft_s > report.line_s,
            None => number > 0 && window.running + window.waiting > 0.0,
        };
        let too_slow = window.too_slow;
        self.slow = if too_slow { self.slow + 1 } else { 0 };
        if self.slow >= self.ramp.windows && report.t2.is_none() {
            report.t2 = Some(window.users);
        }
        report.windows.push(window);
    }
}

impl Filling {
    fn add(&mut self, tick: &Tick<'_>) {
        let (seconds, stats) = (tick.passed.as_secs_f64(), &tick.stats);
        self.ttft.extend(&tick.delivered.first_after_s);
        self.running += stats.running as f64 * seconds;
        self.waiting += stats.waiting as f64 * seconds;
        self.kv += stats.kv_usage * seconds;
        self.preemptions = stats.totals.preemptions;
    }

    fn close(self, users: u32, to_s: f64, span_s: f64) -> Window {
        let requests = self.ttft.len();
        let ttft = Distribution::of(self.ttft);
        Window {
            users,
            to_s,
            requests,
            requests_per_s: requests as f64 / span_s,
            ttft_s: ttft.map(|ttft| ttft.mean),
            ttft_p99_s: ttft.map(|ttft| ttft.p99),
            too_slow: false,
            running: self.running / span_s,
            waiting: self.waiting / span_s,
            kv_usage: self.kv / span_s,
            preemptions: self.preemptions,
        }
    }
}
