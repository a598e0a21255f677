//! What a campaign came to, in a word and a sentence.
//!
//! Not here: whether an objective was kept (`objectives`).

use experiment::campaign::{Ending, Phase as CoursePhase};

use super::{View, seconds};
use crate::campaign::live::clock;
use crate::report::document::{Objective, Verdict};

impl View<'_> {
    /// How it ended, and what gates asked for that was never there.
    pub(super) fn ended(&self) -> String {
        let ending = self.parts.course.ending.as_ref();
        let says = ending.map(ToString::to_string).unwrap_or_default();
        let gates = self.parts.plan().gates.iter();
        let missing = gates.flat_map(|gate| self.parts.telemetry.missing(&gate.query));
        let missing: Vec<String> = missing.map(|selector| selector.to_string()).collect();
        // Of what was not even begun nothing was heard.
        if missing.is_empty() || self.parts.course.phases.is_empty() {
            return says;
        }
        format!("{says}; no sample had {}", missing.join(", "))
    }

    /// With what a reader has to know besides.
    pub(super) fn verdict(&self, objectives: &[Objective]) -> (Verdict, String) {
        let (verdict, mut says) = self.bare_verdict(objectives);
        if matches!(
            verdict,
            Verdict::Passed | Verdict::SloFailed | Verdict::T3Stop
        ) {
            for remark in &self.parts.remarks {
                says = format!("{says}; {remark}");
            }
        }
        (verdict, says)
    }

    fn bare_verdict(&self, objectives: &[Objective]) -> (Verdict, String) {
        let parts = self.parts;
        let ending = parts.course.ending.as_ref();
        let failed = parts.verify.as_ref().map_or(0, |verify| verify.failed);
        // Where it has another end, that is why nothing was loaded.
        if failed > 0 && ending.is_none() {
            let says = format!("{failed} of the suite's cases failed; nothing was loaded");
            return (Verdict::VerifyFailed, says);
        }
        match ending {
            Some(Ending::Aborted(limit)) => {
                let says = format!(
                    "{} stopped the campaign at {} users: {:.4} is above {}",
                    limit.gate, limit.users, limit.value, limit.limit
                );
                return (Verdict::T3Stop, says);
            }
            Some(Ending::Interrupted) | None => {
                return (Verdict::Interrupted, "it was ended before its end".into());
            }
            Some(Ending::Lapsed(_) | Ending::Broken(_)) => {
                return (Verdict::GeneratorVoid, self.ended());
            }
            Some(Ending::NoBaseline) if parts.observed.counts().0 > 0 => {
                return (Verdict::SloFailed, self.ended());
            }
            Some(
                Ending::Unreachable
                | Ending::Unanswered(_)
                | Ending::NoBaseline
                | Ending::Failed(_),
            ) => {
                return (Verdict::Unreachable, self.ended());
            }
            Some(Ending::Completed | Ending::Held) => {}
        }
        if let Err(says) = &parts.generator_fit {
            return (Verdict::GeneratorVoid, says.clone());
        }
        if matches!(ending, Some(Ending::Held)) {
            let says = ending.map(ToString::to_string).unwrap_or_default();
            return (Verdict::SloFailed, says);
        }
        let soak = parts
            .course
            .span(CoursePhase::Soak)
            .map(|span| self.phase(span));
        if let Some(soak) = soak.as_ref().filter(|soak| soak.requests == 0) {
            let says = format!(
                "nobody had an answer in the soak of {:.0} s",
                soak.to_s - soak.from_s
            );
            return (Verdict::SloFailed, says);
        }
        let errors = soak.map_or(0.0, |soak| soak.error_share);
        if errors > parts.scenario.error_share {
            let says = format!(
                "{:.3} % of the soak's requests failed, more than {:.3} %",
                errors * 100.0,
                parts.scenario.error_share * 100.0
            );
            return (Verdict::SloFailed, says);
        }
        let missed: Vec<String> = objectives
            .iter()
            .filter(|objective| !objective.kept)
            .map(|objective| match objective.value {
                Some(value) => format!(
                    "{}: {value:.4} is above {}",
                    objective.name, objective.limit
                ),
                None => format!("{}: was not measured", objective.name),
            })
            .collect();
        if !missed.is_empty() {
            return (Verdict::SloFailed, missed.join("; "));
        }
        let share = parts.prefix_cache.unique_share();
        if let (Some(least), Some(share)) = (parts.strict, share)
            && share < least
        {
            let says = format!(
                "--strict: {:.2} % of the sessions were no repetition, less than {:.2} %",
                share * 100.0,
                least * 100.0
            );
            return (Verdict::SloFailed, says);
        }
        (Verdict::Passed, self.passed())
    }

    fn passed(&self) -> String {
        let course = self.parts.course;
        let soak = course.span(CoursePhase::Soak);
        let users = soak.map_or(0, |span| self.users_in(span));
        let held = clock(soak.map_or(0.0, seconds));
        match course.t2_users {
            Some(t2) => {
                format!("saturated at {t2} users, and held {users} for {held}")
            }
            None => format!(
                "not saturated by {} users, and held {users} for {held}",
                self.parts.plan().max_users
            ),
        }
    }
}
