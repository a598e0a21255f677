//! A campaign's course: baseline, ramp, retract, soak; decided by what is scraped, and by nothing else.
//!
//! Users come in steps, one for each window. A window whose gates are quiet is stable, and the next step follows; one
//! that is not is repeated with the same users. A [`Then::Retract`] gate that was open for so many consecutive windows
//! has found the saturation point (T2): users fall to a share of it, and the soak begins, in which it is asked at each
//! window again. A [`Then::Abort`] gate is looked at whenever something was scraped, and ends everything at once (T3). A
//! gate whose target says nothing, or whose metric is not there, holds: no users come while it does.
//! Invariant: a pure machine, the same in real and in virtual time: what it decides follows from the plan and the
//! samples. Users never grow beyond [`Plan::max_users`].
//! Not here: users and clocks (`load`, the simulator), scraping (`prove`).

mod baseline;
mod course;
mod plan;
mod ramp;
mod silence;
mod soak;
#[cfg(test)]
mod tests;

pub use course::{Course, Ending, Event, EventKind, Limit, Phase, PhaseSpan, Step};
pub use plan::{Baseline, Gate, Plan, PlanFault, Soak, Then, Threshold};

use std::time::Duration;

use crate::telemetry::{Span, Telemetry};
use silence::Silence;
use soak::Windows;

/// The machine.
#[derive(Debug, Clone)]
pub struct Controller {
    plan: Plan,
    phase: Phase,
    /// When the phase began.
    began: Duration,
    /// When the window in it began.
    window_began: Duration,
    users: u32,
    /// What is known of each gate, in the plan's order.
    gates: Vec<Watch>,
    /// Consecutive windows in which no users came.
    held: u32,
    /// When it was called last.
    ticked: Duration,
    course: Course,
}

/// What is known of a gate.
#[derive(Debug, Clone, Default)]
struct Watch {
    /// What a relative one answered in the baseline.
    baseline: Option<f64>,
    /// Consecutive windows in which it was open.
    open: u32,
    /// Which of its targets is silent.
    silent: Option<Silence>,
    /// Since when it has had no answer in the soak.
    unanswered: Option<Duration>,
    /// What it said in the soak.
    soak: Windows,
}

/// What a gate says of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Quiet {
        value: f64,
    },
    Open {
        value: f64,
        limit: f64,
    },
    /// There is nothing to go by.
    Unknown,
}

impl Controller {
    /// At the beginning of the baseline.
    ///
    /// # Errors
    /// The plan makes no sense: every fault of it.
    pub fn new(plan: Plan) -> Result<Self, Vec<PlanFault>> {
        plan.check()?;
        let users = plan.baseline.users;
        let mut controller = Self {
            phase: Phase::Baseline,
            began: Duration::ZERO,
            window_began: plan.baseline.warm_up,
            users,
            gates: vec![Watch::default(); plan.gates.len()],
            held: 0,
            ticked: Duration::ZERO,
            course: Course::default(),
            plan,
        };
        let says = format!("{users} users, for the baseline");
        controller.note(Duration::ZERO, EventKind::Phase, says);
        Ok(controller)
    }

    /// How many users are to be at work.
    #[must_use]
    pub const fn users(&self) -> u32 {
        self.users
    }

    /// What goes on.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// When the phase began.
    #[must_use]
    pub const fn phase_began(&self) -> Duration {
        self.began
    }

    /// When the phase ends if nothing changes: a baseline at the earliest, and later at the latest. `None` where that is
    /// not known.
    #[must_use]
    pub fn phase_ends(&self) -> Option<Duration> {
        match self.phase {
            Phase::Baseline => {
                let asked = self.plan.baseline;
                let earliest = asked.warm_up + asked.min;
                let is_late = self.ticked >= earliest;
                Some(if is_late {
                    asked.warm_up + asked.max
                } else {
                    earliest
                })
            }
            Phase::Retract => Some(self.began + self.plan.soak.settle),
            Phase::Soak => Some(self.began + self.plan.soak.length),
            Phase::Ramp | Phase::Over => None,
        }
    }

    /// When the window of the ramp ends.
    #[must_use]
    pub fn window_ends(&self) -> Option<Duration> {
        (self.phase == Phase::Ramp).then(|| self.window_began + self.plan.window)
    }

    /// What happened so far.
    #[must_use]
    pub const fn course(&self) -> &Course {
        &self.course
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The limit of a gate, once it is known: of a relative one after the baseline.
    #[must_use]
    pub fn limit(&self, gate: usize) -> Option<f64> {
        let watch = self.gates.get(gate)?;
        self.plan.gates.get(gate)?.limit(watch.baseline)
    }

    /// Goes on, after something was scraped: to be called at least once a second. Time never goes back here; where it
    /// jumps by more than the plan's patience, nobody knows what happened meanwhile, and the campaign ends.
    pub fn tick(&mut self, now: Duration, telemetry: &Telemetry) {
        if self.phase == Phase::Over {
            return;
        }
        let (before, now) = (self.ticked, now.max(self.ticked));
        self.ticked = now;
        self.hear_silence(now, telemetry);
        // Nobody knows what happened in a gap: no gate is asked about it.
        if self.end_after_gap(before, now)
            || self.abort_if_open(now, telemetry)
            || self.end_if_silent(now)
        {
            return;
        }
        match self.phase {
            Phase::Baseline => self.baseline(now, telemetry),
            Phase::Ramp => self.ramp(now, telemetry),
            Phase::Retract => {
                if now >= self.began + self.plan.soak.settle {
                    self.enter(now, Phase::Soak);
                }
            }
            Phase::Soak => self.soak(now, telemetry),
            Phase::Over => {}
        }
    }

    /// Somebody wants the campaign to end, or something outside makes it.
    pub fn stop(&mut self, now: Duration, ending: Ending) {
        if self.phase != Phase::Over {
            self.end(now.max(self.ticked), ending);
        }
    }

    /// Ends after a gap longer than the plan's patience, and says whether.
    fn end_after_gap(&mut self, before: Duration, now: Duration) -> bool {
        let gap = now - before;
        let is_long = gap > self.plan.patience;
        if is_long {
            self.end(now, Ending::Lapsed(gap));
        }
        is_long
    }

    /// What each gate says of a window.
    fn says(&self, span: Span, telemetry: &Telemetry) -> Vec<Says> {
        let gates = self.plan.gates.iter().zip(&self.gates);
        let says = gates.map(|(gate, watch)| {
            let Some(limit) = gate.limit(watch.baseline) else {
                return Says::Unknown; // of a relative gate before there is a baseline
            };
            let mut last = gate
                .query
                .targets()
                .map(|target| telemetry.last_heard(&target));
            // A target that was silent at the end of a window may never have told what happened in that window.
            let is_heard =
                last.all(|last| last.is_some_and(|last| last + self.plan.silence > span.to));
            match telemetry.ask(&gate.query, span) {
                _ if !is_heard => Says::Unknown,
                Some(value) if value > limit => Says::Open { value, limit },
                Some(value) => Says::Quiet { value },
                None => Says::Unknown,
            }
        });
        says.collect()
    }

    fn abort_if_open(&mut self, now: Duration, telemetry: &Telemetry) -> bool {
        let mut opened = None;
        for (gate, watch) in self.plan.gates.iter().zip(&self.gates) {
            if gate.then != Then::Abort {
                continue;
            }
            let span = Span {
                from: now.saturating_sub(gate.over),
                to: now,
            };
            // What was heard last counts, as long as it is in the span: a stop is not put off by a moment's silence.
            let limit = gate.limit(watch.baseline);
            let (Some(limit), Some(value)) = (limit, telemetry.ask(&gate.query, span)) else {
                continue;
            };
            if value > limit {
                opened = Some((gate.name.clone(), gate.query.to_string(), value, limit));
                break;
            }
        }
        let Some((gate, query, value, limit)) = opened else {
            return false;
        };
        let users = self.users;
        let says = format!(
            "{gate} at {users} users: {query} is {}, above {}",
            short(value),
            short(limit)
        );
        self.note(now, EventKind::Aborted, says);
        let limit = Limit {
            gate,
            value,
            limit,
            users,
        };
        self.end(now, Ending::Aborted(limit));
        true
    }

    fn enter(&mut self, now: Duration, phase: Phase) {
        self.course.phases.push(PhaseSpan {
            phase: self.phase,
            from: self.began,
            to: now,
        });
        (self.phase, self.began, self.window_began) = (phase, now, now);
        if phase != Phase::Over {
            let says = format!("{} with {} users", phase.word(), self.users);
            self.note(now, EventKind::Phase, says);
        }
    }

    fn end(&mut self, now: Duration, ending: Ending) {
        let says = ending.to_string();
        self.enter(now, Phase::Over);
        self.note(now, EventKind::Ended, says);
        self.course.ending = Some(ending);
        self.users = 0;
    }

    fn note(&mut self, at: Duration, kind: EventKind, says: String) {
        // These repeat themselves; what is decided is always told.
        let repeats = matches!(
            kind,
            EventKind::Held
                | EventKind::Silent
                | EventKind::Heard
                | EventKind::Unanswered
                | EventKind::Answered
        );
        if !repeats || self.course.events.len() < Course::MOST_EVENTS {
            let users = self.users;
            self.course.events.push(Event {
                at,
                kind,
                users,
                says,
            });
        }
    }
}

/// A number with four digits that matter.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}
