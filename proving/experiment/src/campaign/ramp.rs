//! The ramp: window after window, until a gate has found the saturation point, holds for too long, or all users are there.
//!
//! Not here: what a gate says of a window (`campaign`), gates that end the campaign at once (`campaign`).

use std::time::Duration;

use super::{Controller, Ending, EventKind, Phase, Says, Step, Then, short};
use crate::telemetry::{Span, Telemetry};

/// What the gates came to in a window.
#[derive(Debug, Default)]
struct Asked {
    /// Whether the saturation point was found.
    found: bool,
    /// Whether no users may come.
    holds: bool,
    /// Which gates were not quiet, and by how much.
    told: Vec<String>,
}

impl Controller {
    pub(super) fn ramp(&mut self, now: Duration, telemetry: &Telemetry) {
        if now < self.window_began + self.plan.window {
            return;
        }
        let span = Span {
            from: self.window_began,
            to: now,
        };
        self.window_began = now;
        let Asked { found, holds, told } = self.ask_gates(span, telemetry);
        let told = told.join("; ");
        self.course.steps.push(Step {
            users: self.users,
            from: span.from,
            to: span.to,
            is_stable: !holds,
            says: told.clone(),
        });
        if found {
            self.saturated(now, &told);
        } else if holds {
            self.hold(now, &told);
        } else if self.users >= self.plan.max_users {
            let says = format!(
                "not saturated at {} users, the most that are asked for",
                self.users
            );
            self.note(now, EventKind::Unsaturated, says);
            self.enter(now, Phase::Retract);
        } else {
            self.add_users(now);
        }
    }

    /// Asks each gate of a window, and counts the windows in which it is open.
    fn ask_gates(&mut self, span: Span, telemetry: &Telemetry) -> Asked {
        let all = self.says(span, telemetry);
        let mut asked = Asked::default();
        for ((gate, watch), says) in self.plan.gates.iter().zip(&mut self.gates).zip(all) {
            match says {
                Says::Quiet { .. } => watch.open = 0,
                Says::Unknown => {
                    watch.open = 0;
                    asked.holds = true;
                    asked.told.push(format!("{} has no answer", gate.name));
                }
                Says::Open { value, limit } => {
                    watch.open += 1;
                    asked.holds = true;
                    asked.found |= gate.then == Then::Retract && watch.open >= gate.windows;
                    let (value, limit) = (short(value), short(limit));
                    let says = format!("{}: {value} above {limit}", gate.name);
                    asked.told.push(says);
                }
            }
        }
        asked
    }

    pub(super) fn add_users(&mut self, now: Duration) {
        let users = self.users.saturating_add(self.plan.step);
        self.users = users.min(self.plan.max_users);
        (self.window_began, self.held) = (now, 0);
        self.note(now, EventKind::Advanced, format!("{} users", self.users));
    }

    /// No users come, and after too many such windows none ever.
    fn hold(&mut self, now: Duration, told: &str) {
        let says = format!("held at {} users: {told}", self.users);
        self.note(now, EventKind::Held, says);
        self.held += 1;
        if self.held >= self.plan.max_held {
            self.end(now, Ending::Held);
        }
    }

    /// T2, from which users fall to a share. It is rounded down, and one user is left.
    fn saturated(&mut self, now: Duration, told: &str) {
        self.course.t2_users = Some(self.users);
        let says = format!("saturated at {} users: {told}", self.users);
        self.note(now, EventKind::Saturated, says);
        // 0.29 times 100 is a little less than 29.
        let users = f64::from(self.users) * self.plan.retract + 1e-9;
        self.users = (users as u32).max(1);
        let says = format!("back to {} users", self.users);
        self.enter(now, Phase::Retract);
        self.note(now, EventKind::Retracted, says);
    }
}
