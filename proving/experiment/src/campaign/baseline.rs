//! The baseline: what relative gates are measured against, once it rests on enough.
//!
//! Not here: warm-up and length (`plan`).

use std::time::Duration;

use super::{Controller, Ending, EventKind, Gate, Phase, short};
use crate::telemetry::{Span, Telemetry};

impl Controller {
    pub(super) fn baseline(&mut self, now: Duration, telemetry: &Telemetry) {
        let asked = self.plan.baseline;
        let span = Span {
            from: asked.warm_up,
            to: now,
        };
        let has_enough = |gate: &Gate| {
            let support = telemetry.support(&gate.query, span);
            support.is_none_or(|support| support >= asked.requests as f64)
        };
        let gates = self.plan.gates.iter();
        let mut relative = gates.clone().filter(|gate| gate.is_relative()).peekable();
        let rests_on_enough = if relative.peek().is_some() {
            relative.all(has_enough)
        } else {
            let mut rest = gates
                .filter(|gate| gate.query.rests_on_a_count())
                .peekable();
            rest.peek().is_none() || rest.any(has_enough)
        };
        let is_long = now >= asked.warm_up + asked.min;
        let answers = self.plan.gates.iter().map(|gate| {
            gate.is_relative()
                .then(|| telemetry.ask(&gate.query, span))
                .flatten()
        });
        let answers: Vec<Option<f64>> = answers.collect();
        let gates = self.plan.gates.iter().zip(&answers);
        let is_known = |(gate, answer): (&Gate, &Option<f64>)| {
            !gate.is_relative() || answer.is_some_and(|value| value > 0.0)
        };
        // A series that was never heard can open no gate.
        let mut all = self.plan.gates.iter();
        let is_heard = all.all(|gate| telemetry.missing(&gate.query).is_empty());
        let is_ready = is_long && rests_on_enough && is_heard && gates.clone().all(is_known);
        if !is_ready {
            if now >= asked.warm_up + asked.max {
                self.end(now, Ending::NoBaseline);
            }
            return;
        }
        let told = gates.filter_map(|(gate, answer)| {
            let (value, limit) = ((*answer)?, gate.threshold);
            Some(format!(
                "{}: {} is {}; {limit}",
                gate.name,
                gate.query,
                short(value)
            ))
        });
        let told = told.collect::<Vec<_>>().join("; ");
        self.course.baselines = self.plan.names().zip(answers.iter().copied()).collect();
        for (watch, answer) in self.gates.iter_mut().zip(answers) {
            watch.baseline = answer;
        }
        self.note(now, EventKind::Baseline, told);
        self.enter(now, Phase::Ramp);
        self.add_users(now);
    }
}
