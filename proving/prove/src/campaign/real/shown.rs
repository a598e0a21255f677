//! What is shown while a campaign runs, once a second.
//!
//! Not here: how (`live`, `watch`).

use std::time::Duration;

use experiment::telemetry::Span;

use super::{Campaign, lock};
use crate::campaign::queries;

/// Over which the live TTFT is taken.
const LIVE: Duration = Duration::from_secs(30);
/// Over which the live rate is taken.
const RATE: Duration = Duration::from_secs(10);

impl Campaign {
    pub(super) fn show(&mut self, at: Duration) {
        let plan = self.controller.plan();
        let gate = queries::ttft_gate(plan);
        let limit = gate.and_then(|(at, _)| self.controller.limit(at));
        let span = Span {
            from: at.saturating_sub(LIVE),
            to: at,
        };
        let whole = Span {
            from: Duration::ZERO,
            to: at,
        };
        let asked = |query: &str, span| self.telemetry.ask(&queries::ask(query), span);
        let ttft = self.telemetry.ask(&queries::ttft(plan), span);
        let ttft = ttft.map(|seconds| seconds * 1e3);
        let observed = lock(&self.observed);
        let (answered, errors) = observed.counts();
        let rate = observed
            .rates(Span {
                from: at.saturating_sub(RATE),
                to: at,
            })
            .0;
        drop(observed);
        let kv = asked(queries::KV, span);
        let preemptions = asked(queries::PREEMPTIONS, whole);
        let now = &mut self.now;
        now.phase = self.controller.phase().word().to_owned();
        now.seconds = at.as_secs_f64();
        let ends = self.controller.phase_ends();
        let ends = ends.or(self.controller.window_ends());
        now.left_s = ends.map(|ends| ends.saturating_sub(at).as_secs_f64());
        now.left_of = self
            .controller
            .window_ends()
            .map_or(&*now.phase, |_| "step")
            .to_owned();
        now.users = self.controller.users();
        (now.ttft_ms, now.limit_ms) = (ttft, limit.map(|limit| limit * 1e3));
        (now.kv_cache, now.preemptions) = (kv, preemptions);
        (now.requests_per_s, now.answered, now.errors) = (rate, answered, errors);
        now.remember();
        self.lines
            .show(&mut self.now, &self.controller.course().events);
        if let Some(watch) = &self.watch {
            watch.show(&self.now);
        }
    }
}
