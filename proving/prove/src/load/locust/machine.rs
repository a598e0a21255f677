//! What a worker does when: one event in, actions out.
//!
//! Read in Locust 2.47.0 (`runners.py`): the master knows a worker by its id from `client_ready` on, tells it how many
//! users to have as absolute numbers, marks it missing after some four seconds without a heartbeat, and forgets it at
//! `client_stopped` until the next `client_ready`.
//! Invariant: time is an argument and nothing here waits; users are told to stop before the worker is a stranger to
//! its master, so that no load runs that no master knows.
//! Not here: sockets (`worker`), bytes (`message`), which reports have arrived (`delivery`).

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use super::delivery::{Delivered, Delivery, Ending};
use super::message::{Doing, FromMaster, Health, Job, ToMaster, Users};
use super::stats::LocustStats;

/// How often things are done and how long they are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Between two heartbeats.
    pub(crate) heartbeat: Duration,
    /// Between two reports.
    pub(crate) report: Duration,
    /// After which an unanswered `client_ready` is sent again.
    pub(crate) ask_again: Duration,
    /// After which a master that never answered is given up.
    pub(crate) give_up: Duration,
    /// After which a master that was there and says nothing more is lost.
    pub(crate) silence: Duration,
    /// After which a master that answers no heartbeat on a *new* connection has forgotten us.
    pub(crate) forgotten: Duration,
}

impl Default for Pace {
    /// Those of Locust's own workers; the last is ours.
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            report: Duration::from_secs(3),
            ask_again: Duration::from_secs(5),
            give_up: Duration::from_mins(5),
            silence: Duration::from_mins(1),
            forgotten: Duration::from_secs(10),
        }
    }
}

/// What the load run must do or know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The master knows this worker now, by this number.
    Joined { index: Option<u32> },
    /// From now on these users, no more and no fewer; answered by [`super::Worker::users_are`].
    Spawn {
        users: Users,
        /// What was typed in as the host to test.
        host: Option<String>,
        /// Whether a new run begins with it.
        new_run: bool,
    },
    /// No users any more, within this time; answered by [`super::Worker::stopped`].
    Stop { within: Duration },
    /// The master ends; answered by [`super::Worker::leave`].
    Quit,
    /// There is no master any more: the worker is over.
    Lost { why: String },
    /// Something that is odd and changes nothing.
    Warning(String),
}

/// What the shell must do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Send(ToMaster),
    Tell(Event),
    /// Leave the connection and open another.
    Reconnect,
    /// Send what is queued, then end.
    End,
}

enum State {
    /// Unknown to the master.
    Joining {
        asked: Option<Instant>,
        until: Instant,
    },
    /// Known, with no users wanted.
    Ready,
    /// Users wanted; the run has not said that it has them.
    Spawning,
    Running,
    /// The run was told to stop its users; a job that came meanwhile waits.
    Stopping {
        why: Why,
        held: Option<Job>,
    },
    /// The run was told to end.
    Quitting,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Told,
    /// The master does not know us any more.
    Forgotten,
}

/// A worker's side of the protocol.
pub(super) struct Machine {
    pace: Pace,
    name: String,
    /// Grows when the worker joins anew, under another id.
    generation: u32,
    classes: Vec<String>,
    state: State,
    /// As the run says.
    users: Users,
    last_job: f64,
    stop_within: Duration,
    delivery: Delivery,
    up: bool,
    /// When a word of the master was last heard, or the worker began.
    heard: Instant,
    /// Since when no word has come on a new connection.
    unanswered: Option<Instant>,
    next_heartbeat: Instant,
    next_report: Instant,
    actions: VecDeque<Action>,
}

impl Machine {
    pub(super) fn new(
        name: String,
        classes: Vec<String>,
        pace: Pace,
        now: Instant,
        wall: SystemTime,
    ) -> Self {
        Self {
            pace,
            name,
            generation: 1,
            users: none_of(&classes),
            classes,
            state: State::Joining {
                asked: None,
                until: now + pace.give_up,
            },
            last_job: -1.0,
            stop_within: Duration::ZERO,
            delivery: Delivery::new(wall),
            up: false,
            heard: now,
            unanswered: None,
            next_heartbeat: now,
            next_report: now,
            actions: VecDeque::new(),
        }
    }

    /// The worker's id at the master, and its identity at the socket.
    pub(super) fn id(&self) -> String {
        match self.generation {
            1 => self.name.clone(),
            more => format!("{}-{more}", self.name),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    pub(super) fn take_actions(&mut self) -> VecDeque<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Counts of the load run. To be given before whatever happens next.
    pub(super) fn add(&mut self, tally: LocustStats) {
        self.delivery.add(tally);
    }

    /// A connection is there.
    pub(super) fn up(&mut self, now: Instant) {
        self.up = true;
        self.next_heartbeat = now;
        self.next_report = now;
        match &mut self.state {
            State::Joining { asked, .. } => *asked = None,
            _ => self.unanswered = Some(now),
        }
    }

    /// It ended, and `written` of the messages sent on it were handed over whole.
    pub(super) fn down(&mut self, how: Ending, written: u64) {
        self.up = false;
        self.unanswered = None;
        self.delivery.ended(how, written);
        if matches!(self.state, State::Quitting) {
            self.end();
        }
    }

    /// What became of all that was counted, once nothing more is sent.
    pub(super) fn finish(mut self, wall: SystemTime) -> Delivered {
        self.delivery.forget(wall);
        self.delivery.delivered()
    }

    /// The master said something.
    pub(super) fn hear(&mut self, message: FromMaster, now: Instant, wall: SystemTime) {
        self.heard = now;
        match message {
            FromMaster::Ack { index } => self.acked(index),
            FromMaster::Heartbeat => {
                self.unanswered = None;
                self.delivery.echoed();
            }
            FromMaster::Spawn(job) => self.spawn(job, wall),
            FromMaster::Ramped => {}
            FromMaster::Stop => self.stop(Why::Told),
            // To a worker that it does not know, a master says this too.
            FromMaster::Quit if self.unanswered.is_some() => self.forgotten(now),
            FromMaster::Quit => self.quit(wall),
            FromMaster::Reconnect => self.actions.push_back(Action::Reconnect),
            FromMaster::Other(kind) => self.warn(format!(
                "the master sent a message of the type {kind:?}, which means nothing here"
            )),
        }
    }

    /// The master said something that cannot be read.
    pub(super) fn damaged(&mut self, says: String) {
        self.send(ToMaster::Exception { says: says.clone() });
        self.warn(says);
    }

    /// The run has these users.
    pub(super) fn users_are(&mut self, users: Users) {
        for (class, count) in &mut self.users {
            *count = users.get(class).copied().unwrap_or(0);
        }
        if matches!(self.state, State::Spawning | State::Running) {
            self.state = State::Running;
            let users = self.users.clone();
            self.send(ToMaster::SpawningComplete { users });
        }
    }

    /// The run has no users any more.
    pub(super) fn stopped(&mut self, now: Instant, wall: SystemTime) {
        self.users = none_of(&self.classes);
        let State::Stopping { why, held } = &mut self.state else {
            return;
        };
        match (*why, held.take()) {
            (Why::Forgotten, _) => self.join_anew(now),
            // The master has cleared its statistics for this job: what is left of the run before comes too late.
            (Why::Told, Some(job)) => self.begin(job, true, wall),
            (Why::Told, None) if self.up => {
                self.report(now, wall);
                self.send(ToMaster::Stopped);
                self.send(ToMaster::Ready);
                self.state = State::Ready;
            }
            (Why::Told, None) => self.join(now),
        }
    }

    /// The run ends: what was counted is sent, and the master told.
    pub(super) fn leave(&mut self, now: Instant, wall: SystemTime) {
        self.users = none_of(&self.classes);
        let known = !matches!(self.state, State::Joining { .. } | State::Over);
        if self.up && known {
            self.report(now, wall);
            self.send(ToMaster::Quit);
        }
        self.end();
    }

    /// The time has come for whatever is due. To be called after everything else, and at [`Self::wakes_at`].
    pub(super) fn tick(&mut self, now: Instant, wall: SystemTime, health: Health) {
        if let Some(why) = self.why_lost(now) {
            self.tell(Event::Lost { why });
            self.end();
        }
        let forgotten = self.unanswered.map(|since| since + self.pace.forgotten);
        if forgotten.is_some_and(|at| at <= now) {
            self.forgotten(now);
        }
        if !self.up {
            return;
        }
        match &mut self.state {
            State::Joining { asked, .. } => {
                if asked.is_none_or(|asked| asked + self.pace.ask_again <= now) {
                    *asked = Some(now);
                    self.send(ToMaster::Ready);
                }
            }
            State::Quitting | State::Over => {}
            State::Stopping { why, .. } if *why == Why::Forgotten => {}
            State::Ready | State::Spawning | State::Running | State::Stopping { .. } => {
                self.beat(now, wall, health);
            }
        }
    }

    /// When [`Self::tick`] has something to do, if nothing happens before.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        let lost = self.heard + self.pace.silence;
        let due = match &self.state {
            State::Quitting | State::Over => return None,
            State::Joining { asked, until } => {
                let again = asked.filter(|_| self.up).map(|at| at + self.pace.ask_again);
                return Some(again.map_or(*until, |again| again.min(*until)));
            }
            State::Stopping {
                why: Why::Forgotten,
                ..
            } => lost,
            _ if !self.up => lost,
            _ => self.next_heartbeat.min(lost),
        };
        let forgotten = self.unanswered.map(|since| since + self.pace.forgotten);
        Some(forgotten.map_or(due, |forgotten| due.min(forgotten)))
    }

    fn why_lost(&self, now: Instant) -> Option<String> {
        match &self.state {
            State::Joining { until, .. } => (*until <= now).then(|| {
                format!(
                    "no answer from the master within {:?}: is it there, and does it expect workers (--master)?",
                    self.pace.give_up
                )
            }),
            State::Quitting | State::Over => None,
            State::Ready | State::Spawning | State::Running | State::Stopping { .. } => (self.heard
                + self.pace.silence
                <= now)
                .then(|| format!("no word from the master for {:?}", self.pace.silence)),
        }
    }

    /// A heartbeat, behind the report that its answer will confirm.
    fn beat(&mut self, now: Instant, wall: SystemTime, health: Health) {
        if now < self.next_heartbeat {
            return;
        }
        // A master that does not know us adds a report up all the same, and answers nothing that would confirm it.
        if self.next_report <= now && self.unanswered.is_none() {
            self.report(now, wall);
        }
        self.next_heartbeat = now + self.pace.heartbeat;
        let doing = match self.state {
            State::Spawning => Doing::Spawning,
            State::Running | State::Stopping { .. } => Doing::Running,
            State::Joining { .. } | State::Ready | State::Quitting | State::Over => Doing::Ready,
        };
        self.send(ToMaster::Heartbeat { doing, health });
    }

    fn report(&mut self, now: Instant, wall: SystemTime) {
        if !self.up {
            return;
        }
        // Heartbeats are late by a little, and a report is not to wait for one more of them.
        self.next_report = now + self.pace.report - self.pace.heartbeat / 2;
        let (tally, users) = (self.delivery.report(wall), self.users.clone());
        self.actions
            .push_back(Action::Send(ToMaster::Stats { tally, users }));
    }

    fn acked(&mut self, index: Option<u32>) {
        self.delivery.acked();
        self.unanswered = None;
        if matches!(self.state, State::Joining { .. }) {
            self.state = State::Ready;
            self.tell(Event::Joined { index });
        }
    }

    fn spawn(&mut self, job: Job, wall: SystemTime) {
        if job.timestamp <= self.last_job {
            return;
        }
        self.last_job = job.timestamp;
        match &mut self.state {
            State::Stopping { held, .. } => *held = Some(job),
            State::Joining { .. } | State::Ready => self.begin(job, true, wall),
            State::Spawning | State::Running => self.begin(job, false, wall),
            State::Quitting | State::Over => {}
        }
    }

    fn begin(&mut self, job: Job, new_run: bool, wall: SystemTime) {
        if new_run {
            self.delivery.forget(wall);
        }
        let is_known = |class: &String| self.classes.contains(class);
        let unknown = job
            .users
            .iter()
            .find(|(class, count)| **count > 0 && !is_known(class));
        if let Some((class, _)) = unknown {
            let says = format!(
                "this worker has no users of the class {class:?}, only of {}: the locustfile of the master must \
                 declare the same",
                self.classes.join(", ")
            );
            self.damaged(says);
        }
        let wanted = |class: &String| job.users.get(class).copied().unwrap_or(0);
        let classes = self.classes.iter();
        let users = classes
            .map(|class| (class.clone(), wanted(class)))
            .collect();
        self.state = State::Spawning;
        self.stop_within = seconds(job.stop_timeout.unwrap_or(0.0));
        self.send(ToMaster::Spawning);
        self.tell(Event::Spawn {
            users,
            host: job.host,
            new_run,
        });
    }

    fn stop(&mut self, why: Why) {
        match &mut self.state {
            State::Spawning | State::Running => {
                self.state = State::Stopping { why, held: None };
                let within = self.stop_within;
                self.tell(Event::Stop { within });
            }
            // A job that waits was for the run that is now over.
            State::Stopping { why: before, held } => {
                *held = None;
                if why == Why::Forgotten {
                    *before = why;
                }
            }
            State::Ready if why == Why::Told => {
                self.send(ToMaster::Stopped);
                self.send(ToMaster::Ready);
            }
            State::Joining { .. } | State::Ready | State::Quitting | State::Over => {}
        }
    }

    /// This master does not know us: the users stop, then the worker joins anew.
    fn forgotten(&mut self, now: Instant) {
        self.unanswered = None;
        match self.state {
            State::Ready => self.join_anew(now),
            State::Spawning | State::Running | State::Stopping { .. } => self.stop(Why::Forgotten),
            State::Joining { .. } | State::Quitting | State::Over => {}
        }
    }

    fn quit(&mut self, wall: SystemTime) {
        if matches!(self.state, State::Quitting | State::Over) {
            return;
        }
        // At once: the master waits half a second for it.
        self.report(self.heard, wall);
        self.state = State::Quitting;
        self.tell(Event::Quit);
    }

    fn join(&mut self, now: Instant) {
        self.unanswered = None;
        self.state = State::Joining {
            asked: None,
            until: now + self.pace.give_up,
        };
    }

    /// Under another id: a master that still holds our old connection open ignores a second one of the same id.
    fn join_anew(&mut self, now: Instant) {
        self.generation += 1;
        self.last_job = -1.0;
        self.join(now);
        // Nothing more goes over the connection that is left.
        self.up = false;
        self.actions.push_back(Action::Reconnect);
    }

    fn end(&mut self) {
        if !self.is_over() {
            self.state = State::Over;
            self.actions.push_back(Action::End);
        }
    }

    /// Without a connection nothing is said: what is still true is said on the next one.
    fn send(&mut self, message: ToMaster) {
        if !self.up {
            return;
        }
        match message {
            ToMaster::Ready => self.delivery.sent_ready(),
            ToMaster::Heartbeat { .. } => self.delivery.sent_heartbeat(),
            _ => self.delivery.sent_other(),
        }
        self.actions.push_back(Action::Send(message));
    }

    fn tell(&mut self, event: Event) {
        self.actions.push_back(Action::Tell(event));
    }

    fn warn(&mut self, says: String) {
        self.tell(Event::Warning(says));
    }
}

fn none_of(classes: &[String]) -> Users {
    classes.iter().map(|class| (class.clone(), 0)).collect()
}

fn seconds(number: f64) -> Duration {
    // Up to the year 9999.
    Duration::from_secs_f64(number.clamp(0.0, 253_402_300_799.0))
}

#[cfg(test)]
mod tests;
