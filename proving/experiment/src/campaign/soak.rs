//! The soak: gates are asked at each window, and whether they can answer at every moment.
//!
//! Invariant: a soak is complete only where every gate could have been seen open throughout.
//! Not here: what a gate says of a window, and ends (`campaign`).

use std::collections::VecDeque;
use std::time::Duration;

use super::{Controller, Ending, EventKind, Says, Then, Watch, short};
use crate::telemetry::{Span, Telemetry};

/// What a gate said in the windows of the soak.
#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    /// Of the last consecutive windows, as many as it has to be open for.
    answers: VecDeque<f64>,
    /// The most that it said in all of so many consecutive windows.
    sustained: Option<f64>,
    /// The most that it said in any: all there is to go by where there were never so many.
    single: Option<f64>,
    is_open: bool,
}

impl Windows {
    fn hear(&mut self, value: f64, limit: f64, windows: u32) {
        self.single = Some(self.single.map_or(value, |most| most.max(value)));
        self.answers.push_back(value);
        if self.answers.len() > windows as usize {
            self.answers.pop_front();
        }
        let least = self.answers.iter().copied().fold(f64::INFINITY, f64::min);
        let is_whole = self.answers.len() == windows as usize;
        if is_whole {
            self.sustained = Some(self.sustained.map_or(least, |most| most.max(least)));
        }
        self.is_open = is_whole && least > limit;
    }
}

impl Controller {
    /// Gates are asked at each window, as in the ramp: users stay, and what a gate says is kept.
    pub(super) fn soak(&mut self, now: Duration, telemetry: &Telemetry) {
        let is_over = now >= self.began + self.plan.soak.length;
        let rest = now.saturating_sub(self.window_began);
        // The last window may be a short one, but no moment of it.
        let is_window = rest >= self.plan.window
            || is_over && (self.window_began == self.began || rest * 2 >= self.plan.window);
        // While a target is silent a window goes on: its answer is of all of it, or of nothing.
        let is_heard = self.gates.iter().all(|watch| watch.silent.is_none());
        if is_window && is_heard {
            self.soak_window(now, telemetry);
        }
        if self.end_if_unanswered(now, telemetry) {
            return;
        }
        // A soak is not complete while nobody could see a gate open.
        let can_see = |watch: &Watch| watch.silent.is_none() && watch.unanswered.is_none();
        if is_over && self.gates.iter().all(can_see) {
            self.end(now, Ending::Completed);
        }
    }

    fn soak_window(&mut self, now: Duration, telemetry: &Telemetry) {
        let span = Span {
            from: self.window_began,
            to: now,
        };
        self.window_began = now;
        let all = self.says(span, telemetry);
        let mut reopened = Vec::new();
        for ((gate, watch), says) in self.plan.gates.iter().zip(&mut self.gates).zip(all) {
            if gate.then != Then::Retract {
                continue;
            }
            let soak = &mut watch.soak;
            let was_open = soak.is_open;
            match says {
                Says::Unknown => soak.answers.clear(),
                Says::Quiet { value } => soak.hear(value, f64::INFINITY, gate.windows),
                Says::Open { value, limit } => {
                    soak.hear(value, limit, gate.windows);
                    if soak.is_open && !was_open {
                        let (value, limit) = (short(value), short(limit));
                        reopened.push(format!("{}: {value} above {limit}", gate.name));
                    }
                }
            }
        }
        let soaks = self.gates.iter().map(|watch| &watch.soak);
        let most = soaks.map(|soak| soak.sustained.or(soak.single));
        self.course.soak = self.plan.names().zip(most).collect();
        for says in reopened {
            let says = format!("open again at {} users: {says}", self.users);
            self.note(now, EventKind::Reopened, says);
        }
    }

    /// Tells once when a gate of the soak has no answer, and once when it has; whether one had none for too long.
    pub(super) fn end_if_unanswered(&mut self, now: Duration, telemetry: &Telemetry) -> bool {
        let (mut told, mut given_up) = (Vec::new(), None);
        for (gate, watch) in self.plan.gates.iter().zip(&mut self.gates) {
            let over = match gate.then {
                Then::Abort => gate.over,
                Then::Hold | Then::Retract => self.plan.window,
            };
            let span = Span {
                from: now.saturating_sub(over),
                to: now,
            };
            // Under load a count that stands still says no more than one that is gone.
            let moves = |support: f64| support > 0.0;
            let is_answered = telemetry.ask(&gate.query, span).is_some()
                && telemetry.support(&gate.query, span).is_none_or(moves);
            match (is_answered, watch.unanswered) {
                (true, Some(_)) => {
                    watch.unanswered = None;
                    told.push((
                        EventKind::Answered,
                        format!("{} has an answer again", gate.name),
                    ));
                }
                (false, None) => {
                    watch.unanswered = Some(now);
                    told.push((
                        EventKind::Unanswered,
                        format!("{} has no answer", gate.name),
                    ));
                }
                (false, Some(began)) if now > began + self.plan.patience => {
                    given_up = Some(gate.name.clone());
                }
                _ => {}
            }
        }
        for (kind, says) in told {
            self.note(now, kind, says);
        }
        let is_over = given_up.is_some();
        if let Some(gate) = given_up {
            self.end(now, Ending::Unanswered(gate));
        }
        is_over
    }
}
