//! Which objectives the soak kept: the scenario's own, and that no gate of the ramp would have been open.

use experiment::campaign::{PhaseSpan, Then, Threshold};
use experiment::telemetry::{Query, Span};

use super::{View, of};
use crate::report::document::Objective;

impl View<'_> {
    /// Those of the scenario, and that no gate of the ramp would have been open; none without a soak.
    pub(super) fn objectives(&self, soak: Option<PhaseSpan>) -> Vec<Objective> {
        let Some(soak) = soak.map(of) else {
            return Vec::new();
        };
        let gates = self.parts.plan().gates.iter().enumerate();
        let limits = gates
            .filter(|(_, gate)| gate.then == Then::Retract)
            .filter_map(|(at, gate)| {
                let limit = match gate.threshold {
                    Threshold::Above(limit) => limit,
                    Threshold::TimesBaseline(factor) => {
                        factor * self.parts.course.baselines.get(at)?.1?
                    }
                };
                // Not the mean of all of it, in which minutes of saturation are lost: the ramp's own rule.
                let sustained = self.parts.course.soak.get(at).and_then(|(_, most)| *most);
                let value = self.measured(&gate.query, soak).and(sustained);
                let says = match gate.windows {
                    1 => "of any window".to_owned(),
                    n => format!("held for {n} consecutive windows"),
                };
                let name = format!("{} stays closed: the most {says}", gate.name);
                Some((name, &gate.query, limit, value))
            });
        let own = self.parts.scenario.objectives.iter().map(|own| {
            let value = self.measured(&own.query, soak);
            (own.name.clone(), &own.query, own.below, value)
        });
        let objectives = own
            .chain(limits)
            .map(|(name, query, limit, value)| Objective {
                name,
                query: query.to_string(),
                limit,
                value,
                kept: value.is_some_and(|value| value <= limit),
            });
        objectives.collect()
    }

    /// The answer of what was heard throughout; of a target that was silent, or a metric that was gone from its page, for
    /// too long there is none.
    fn measured(&self, query: &Query, span: Span) -> Option<f64> {
        let telemetry = self.parts.telemetry;
        let patience = self.parts.plan().patience;
        let mut selectors = query.selectors().into_iter();
        let is_there = selectors.all(|of| telemetry.longest_absence(&of, span) <= patience);
        is_there.then(|| telemetry.ask(query, span)).flatten()
    }
}
