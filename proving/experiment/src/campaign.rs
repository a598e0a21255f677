//! A campaign's course: baseline, ramp, retract, soak; decided by what is scraped, and by nothing else.
//!
//! Users come in steps, one for each window. A window whose gates are quiet is stable, and the next step follows; one
//! that is not is repeated with the same users. A [`Then::Retract`] gate that was open for so many consecutive windows
//! has found the saturation point (T2): users fall to a share of it, and the soak begins, in which it is asked at each
//! window again. A [`Then::Abort`] gate is looked at
//! whenever something was scraped, and ends everything at once (T3). A gate whose target says nothing, or whose metric is
//! not there, holds: no users come while it does.
//! Invariant: a pure machine, the same in real and in virtual time: what it decides follows from the plan and the
//! samples. Users never grow beyond [`Plan::max_users`].
//! Not here: users and clocks (`load`, the simulator), scraping (`prove`).

mod course;
mod plan;
#[cfg(test)]
mod tests;

pub use course::{Course, Ending, Event, EventKind, Limit, Phase, PhaseSpan, Step};
pub use plan::{Baseline, Gate, Plan, PlanFault, Soak, Then, Threshold};

use std::collections::VecDeque;
use std::time::Duration;

use crate::telemetry::{Span, Telemetry};

/// The machine.
#[derive(Debug, Clone)]
pub struct Controller {
    plan: Plan,
    phase: Phase,
    /// When the phase began, and the window in it.
    began: Duration,
    window: Duration,
    users: u32,
    /// What the answer of each relative gate was in the baseline.
    baselines: Vec<Option<f64>>,
    /// Consecutive windows in which each gate was open.
    open: Vec<u32>,
    /// Since when a target of each gate has been silent.
    silent: Vec<Option<Duration>>,
    /// Since when each gate has had no answer in the soak.
    unanswered: Vec<Option<Duration>>,
    /// What each gate said in the soak.
    watched: Vec<Watched>,
    /// Consecutive windows in which no users came.
    held: u32,
    /// When it was called last.
    ticked: Duration,
    course: Course,
}

/// What a gate said in the windows of the soak.
#[derive(Debug, Clone, Default)]
struct Watched {
    /// Of the last consecutive windows, as many as it has to be open for.
    answers: VecDeque<f64>,
    /// The most that it said in all of so many consecutive windows.
    sustained: Option<f64>,
    /// The most that it said in any: all there is to go by where there were never so many.
    single: Option<f64>,
    is_open: bool,
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
    /// At the beginning of the baseline.
    ///
    /// # Errors
    /// The plan makes no sense: every fault of it.
    pub fn new(plan: Plan) -> Result<Self, Vec<PlanFault>> {
        plan.check()?;
        let gates = plan.gates.len();
        let users = plan.baseline.users;
        let mut controller = Self {
            phase: Phase::Baseline,
            began: Duration::ZERO,
            window: plan.baseline.warm_up,
            users,
            baselines: vec![None; gates],
            open: vec![0; gates],
            silent: vec![None; gates],
            unanswered: vec![None; gates],
            watched: vec![Watched::default(); gates],
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
        (self.phase == Phase::Ramp).then(|| self.window + self.plan.window)
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
        match self.plan.gates.get(gate)?.threshold {
            Threshold::Above(limit) => Some(limit),
            Threshold::TimesBaseline(factor) => {
                Some(factor * self.baselines.get(gate).copied().flatten()?)
            }
        }
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
        if self.is_after_a_gap(before, now)
            || self.abort_if_open(now, telemetry)
            || self.is_silent_for_too_long(now)
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

    fn is_after_a_gap(&mut self, before: Duration, now: Duration) -> bool {
        let gap = now - before;
        let is_long = gap > self.plan.patience;
        if is_long {
            self.end(now, Ending::Lapsed(gap));
        }
        is_long
    }

    fn baseline(&mut self, now: Duration, telemetry: &Telemetry) {
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
        if !is_long || !rests_on_enough {
            if now >= asked.warm_up + asked.max {
                self.end(now, Ending::NoBaseline);
            }
            return;
        }
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
        if !is_heard || !gates.clone().all(is_known) {
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
        self.baselines = answers;
        self.course.baselines = self
            .plan
            .names()
            .zip(self.baselines.iter().copied())
            .collect();
        self.note(now, EventKind::Baseline, told);
        self.enter(now, Phase::Ramp);
        self.add_users(now);
    }

    fn ramp(&mut self, now: Duration, telemetry: &Telemetry) {
        if now < self.window + self.plan.window {
            return;
        }
        let span = Span {
            from: self.window,
            to: now,
        };
        let (mut found, mut holds, mut told) = (false, false, Vec::new());
        for (at, gate) in self.plan.gates.iter().enumerate() {
            let says = self.says(at, gate, span, telemetry);
            let open = self.open.get_mut(at);
            match says {
                Says::Quiet { .. } => {
                    if let Some(open) = open {
                        *open = 0;
                    }
                }
                Says::Unknown => {
                    if let Some(open) = open {
                        *open = 0;
                    }
                    holds = true;
                    told.push(format!("{} has no answer", gate.name));
                }
                Says::Open { value, limit } => {
                    holds = true;
                    told.push(format!(
                        "{}: {} above {}",
                        gate.name,
                        short(value),
                        short(limit)
                    ));
                    if let Some(open) = open {
                        *open += 1;
                        found |= gate.then == Then::Retract && *open >= gate.windows;
                    }
                }
            }
        }
        let told = told.join("; ");
        self.course.steps.push(Step {
            users: self.users,
            from: span.from,
            to: span.to,
            is_stable: !holds,
            says: told.clone(),
        });
        self.window = now;
        if found {
            self.course.t2_users = Some(self.users);
            let says = format!("saturated at {} users: {told}", self.users);
            self.note(now, EventKind::Saturated, says);
            self.retract(now);
        } else if holds {
            self.note(
                now,
                EventKind::Held,
                format!("held at {} users: {told}", self.users),
            );
            self.held += 1;
            if self.held >= self.plan.max_held {
                self.end(now, Ending::Held);
            }
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

    /// Gates are asked at each window, as in the ramp: users stay, and what a gate says is kept.
    fn soak(&mut self, now: Duration, telemetry: &Telemetry) {
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
        if self.is_unanswered_for_too_long(now, telemetry) {
            return;
        }
        // A soak is not complete while nobody could see a gate open.
        let mut blind = self.silent.iter().chain(&self.unanswered);
        if is_over && blind.all(Option::is_none) {
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
    fn is_unanswered_for_too_long(&mut self, now: Duration, telemetry: &Telemetry) -> bool {
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
                        EventKind::Heard,
                        format!("{} has an answer again", gate.name),
                    ));
                }
                (false, None) => {
                    *since = Some(now);
                    told.push((EventKind::Silent, format!("{} has no answer", gate.name)));
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

    fn add_users(&mut self, now: Duration) {
        let users = self.users.saturating_add(self.plan.step);
        self.users = users.min(self.plan.max_users);
        (self.window, self.held) = (now, 0);
        self.note(now, EventKind::Advanced, format!("{} users", self.users));
    }

    /// The share is rounded down, and one user is left.
    fn retract(&mut self, now: Duration) {
        // 0.29 times 100 is a little less than 29.
        let users = f64::from(self.users) * self.plan.retract + 1e-9;
        self.users = (users as u32).max(1);
        let says = format!("back to {} users", self.users);
        self.enter(now, Phase::Retract);
        self.note(now, EventKind::Retracted, says);
    }

    /// What a gate says of a window.
    fn says(&self, at: usize, gate: &Gate, span: Span, telemetry: &Telemetry) -> Says {
        let Some(limit) = self.limit(at) else {
            return Says::Unknown; // of a relative gate before there is a baseline
        };
        let last = gate
            .query
            .targets()
            .map(|target| telemetry.last_heard(&target));
        // A target that was silent at the end of a window may never have told what happened in that window.
        let is_heard = last
            .into_iter()
            .all(|last| last.is_some_and(|last| last + self.plan.silence > span.to));
        match telemetry.ask(&gate.query, span) {
            _ if !is_heard => Says::Unknown,
            Some(value) if value > limit => Says::Open { value, limit },
            Some(value) => Says::Quiet { value },
            None => Says::Unknown,
        }
    }

    fn abort_if_open(&mut self, now: Duration, telemetry: &Telemetry) -> bool {
        let mut opened = None;
        for (at, gate) in self.plan.gates.iter().enumerate() {
            if gate.then != Then::Abort {
                continue;
            }
            let span = Span {
                from: now.saturating_sub(gate.over),
                to: now,
            };
            // What was heard last counts, as long as it is in the span: a stop is not put off by a moment's silence.
            let (Some(limit), Some(value)) = (self.limit(at), telemetry.ask(&gate.query, span))
            else {
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

    /// Tells once when a target of a gate falls silent, and once when it is back.
    fn hear_silence(&mut self, now: Duration, telemetry: &Telemetry) {
        let mut told = Vec::new();
        for (gate, silent) in self.plan.gates.iter().zip(&mut self.silent) {
            let since = gate
                .query
                .targets()
                .map(|target| (telemetry.last_heard(&target).unwrap_or_default(), target))
                .min();
            let Some((last, target)) = since else {
                continue;
            };
            let is_silent = now > last + self.plan.silence;
            match (is_silent, *silent) {
                (true, None) => {
                    *silent = Some(last);
                    told.push((
                        EventKind::Silent,
                        format!("{target} says nothing: {} holds", gate.name),
                    ));
                }
                // One of its targets may be back while another is silent since later.
                (true, Some(since)) => *silent = Some(last.max(since)),
                (false, Some(_)) => {
                    *silent = None;
                    told.push((EventKind::Heard, format!("{target} is back: {}", gate.name)));
                }
                (false, None) => {}
            }
        }
        for (kind, says) in told {
            self.note(now, kind, says);
        }
    }

    fn is_silent_for_too_long(&mut self, now: Duration) -> bool {
        let patience = self.plan.patience;
        let mut silent = self.silent.iter().flatten();
        let is_over = silent.any(|&since| now > since + patience);
        if is_over {
            self.end(now, Ending::Unreachable);
        }
        is_over
    }

    fn enter(&mut self, now: Duration, phase: Phase) {
        self.course.phases.push(PhaseSpan {
            phase: self.phase,
            from: self.began,
            to: now,
        });
        (self.phase, self.began, self.window) = (phase, now, now);
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
        let repeats = matches!(kind, EventKind::Held | EventKind::Silent | EventKind::Heard);
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
