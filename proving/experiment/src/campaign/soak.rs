//! The soak: gates are asked at each window, and whether they can answer at every moment.
//!
//! Invariant: a soak is complete only where every gate could have been seen open throughout.
//! Not here: what a gate says of a window, and ends (`campaign`).

use std::collections::VecDeque;
use std::time::Duration;

use super::{Controller, Ending, EventKind, Says, Then, short};
use crate::telemetry::{Span, Telemetry};

/// What a gate said in the windows of the soak.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    /// Of the last consecutive windows, as many as it has to be open for.
    answers: VecDeque<f64>,
    /// The most that it said in all of so many consecutive windows.
    sustained: Option<f64>,
    /// The most that it said in any: all there is to go by where there were never so many.
    single: Option<f64>,
    is_open: bool,
}

impl Watched {
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
        let rest = now.saturating_sub(self.window);
        // The last window may be a short one, but no moment of it.
        let is_window = rest >= self.plan.window
            || is_over && (self.window == self.began || rest * 2 >= self.plan.window);
        // While a target is silent a window goes on: its answer is of all of it, or of nothing.
        let is_heard = self.silent.iter().all(Option::is_none);
        if is_window && is_heard {
            self.soak_window(now, telemetry);
        }
        if self.end_if_unanswered(now, telemetry) {
            return;
        }
        // A soak is not complete while nobody could see a gate open.
        let can_see =
            self.silent.iter().all(Option::is_none) && self.unanswered.iter().all(Option::is_none);
        if is_over && can_see {
            self.end(now, Ending::Completed);
        }
    }

    fn soak_window(&mut self, now: Duration, telemetry: &Telemetry) {
        let span = Span {
            from: self.window,
            to: now,
        };
        self.window = now;
        let mut reopened = Vec::new();
        for (at, gate) in self.plan.gates.iter().enumerate() {
            if gate.then != Then::Retract {
                continue;
            }
            let says = self.says(at, gate, span, telemetry);
            let Some(watched) = self.watched.get_mut(at) else {
                continue;
            };
            let was_open = watched.is_open;
            match says {
                Says::Unknown => watched.answers.clear(),
                Says::Quiet { value } => watched.hear(value, f64::INFINITY, gate.windows),
                Says::Open { value, limit } => {
                    watched.hear(value, limit, gate.windows);
                    if watched.is_open && !was_open {
                        let (value, limit) = (short(value), short(limit));
                        reopened.push(format!("{}: {value} above {limit}", gate.name));
                    }
                }
            }
        }
        let most = self
            .watched
            .iter()
            .map(|watched| watched.sustained.or(watched.single));
        self.course.soak = self.plan.names().zip(most).collect();
        for says in reopened {
            let says = format!("open again at {} users: {says}", self.users);
            self.note(now, EventKind::Reopened, says);
        }
    }

    /// Tells once when a gate of the soak has no answer, and once when it has; whether one had none for too long.
    pub(super) fn end_if_unanswered(&mut self, now: Duration, telemetry: &Telemetry) -> bool {
        let (mut told, mut given_up) = (Vec::new(), None);
        for (gate, since) in self.plan.gates.iter().zip(&mut self.unanswered) {
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
            match (is_answered, *since) {
                (true, Some(_)) => {
                    *since = None;
                    told.push((
                        EventKind::Answered,
                        format!("{} has an answer again", gate.name),
                    ));
                }
                (false, None) => {
                    *since = Some(now);
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
