//! What a run is to do.
//!
//! Invariant: every plan ends by time, whatever the peer does.
//! Not here: how (`thread`, `user`, `lanes`).

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bytes::Bytes;
use experiment::arrivals::{Process, Scope};
use experiment::workload::{Enter, Load, Part, Profile, Stay, Workload};

use super::LoadError;
use crate::client::{Reach, Target};
use crate::observer::{Answers, Record};
use crate::source::{Head, IdHeader, Source};

/// Threads at most.
pub const MOST_THREADS: usize = 1024;

/// A run.
#[derive(Clone)]
pub struct Plan {
    /// Where to, and how.
    pub reach: Reach,
    /// What.
    pub source: Arc<dyn Source>,
    /// When, and who: users of a closed profile are as many as there may ever be.
    pub workload: Workload,
    /// What else is to be known of each profile, in the workload's order.
    pub traffic: Vec<Traffic>,
    /// Each has the users and arrivals whose number leaves its own as the remainder.
    pub threads: usize,
    /// Which of several runs in step this is, each with so many threads: users and arrivals are shared out over all.
    pub fleet: Part,
    /// Time from the start that is not measured.
    pub warm_up: Duration,
    /// Time that is measured, after the warm-up.
    pub measure: Duration,
    /// How long answers may take after the end; what is under way then is left, and counted.
    pub drain: Duration,
    /// No more than so many requests in all; where they are not of an open loop, the run ends with the last of them.
    pub most: Option<u64>,
    /// Whether who gets no good answer waits before going on, longer with each in a row: a target that is down, or refuses
    /// a key, is not to be overrun.
    pub backs_off: bool,
    /// Whether who is refused with 429 or 503 and a `retry-after` of no more than this waits so long and sends the same
    /// request again, in the place of giving its session up.
    pub heeds_retry_after: Option<Duration>,
    /// Whether answers are searched for usage.
    pub usage: bool,
    /// Where a row for each exchange goes, in batches.
    pub records: Option<SyncSender<Vec<Record>>>,
    /// Whether send times are kept for a certificate of arrivals.
    pub certify: bool,
}

/// A profile, as far as its workload does not say it.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Of its requests, where they have none of their own.
    pub head: Head,
    /// What a good answer is.
    pub answers: Answers,
    /// The body that every good answer has; another is a failure. `None`: bodies are not looked at.
    pub expects: Option<Bytes>,
    /// Open loop: sessions that may be under way at once; when all are, arrivals wait and their wait counts.
    pub connections: usize,
    /// Closed loop: how many users are at work from the start; `None`: all of them.
    pub users_at_first: Option<u32>,
    /// The header of each request that carries what its row knows it by ([`Record::request_id`]); `None`: there is none.
    pub request_id: Option<IdHeader>,
}

/// The plain shapes of load, of one profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Each user sends, waits for the whole answer, thinks, and sends again.
    Closed {
        /// Users, each with one keep-alive connection.
        users: usize,
        /// Pause between an answer and the next request.
        think: Duration,
    },
    /// A constant rate; latency counts from the moment a request was due.
    Open {
        /// Requests a second.
        per_second: f64,
        /// Connections that may be busy at once; when all are, requests wait and their wait counts.
        connections: usize,
    },
    /// Each of so many streams is opened once and read to its end; its answer counts whenever it ends.
    Hold {
        /// Streams, each on its own connection.
        streams: usize,
    },
}

impl Shape {
    /// Connections at most.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match *self {
            Self::Closed { users, .. } => users,
            Self::Open { connections, .. } => connections,
            Self::Hold { streams } => streams,
        }
    }

    /// The workload of one profile; connections open evenly over `ramp`.
    #[must_use]
    pub fn workload(&self, ramp: Duration) -> Workload {
        let closed = |users: usize, think: Duration, stay| Load::Closed {
            users: u32::try_from(users).unwrap_or(u32::MAX),
            think: Process::Constant {
                mean_s: think.as_secs_f64(),
            },
            enter: Enter::Asking,
            stay,
        };
        let load = match *self {
            Self::Closed { users, think } => closed(users, think, Stay::Always),
            Self::Hold { streams } => closed(streams, Duration::ZERO, Stay::Sessions(1)),
            Self::Open { per_second, .. } => Load::Open {
                arrivals: Process::Constant {
                    mean_s: 1.0 / per_second,
                },
                think: Process::Recorded,
            },
        };
        Workload {
            seed: 0,
            ramp,
            profiles: vec![Profile {
                name: "all".into(),
                load,
                scope: Scope::User,
            }],
        }
    }
}

impl Plan {
    /// One profile of a plain shape, over HTTP/1.1 from one thread, with no warm-up; `head` is that of requests that have
    /// none of their own.
    #[must_use]
    pub fn plain(
        target: impl Into<Target>,
        (head, source): (Head, Arc<dyn Source>),
        shape: Shape,
        ramp: Duration,
        measure: Duration,
        timeout: Duration,
    ) -> Self {
        Self {
            reach: Reach::plain(target.into(), timeout),
            source,
            workload: shape.workload(ramp),
            traffic: vec![Traffic {
                head,
                answers: Answers::Any,
                expects: None,
                connections: shape.connections(),
                users_at_first: None,
                request_id: None,
            }],
            threads: 1,
            fleet: Part::WHOLE,
            warm_up: Duration::ZERO,
            measure,
            drain: timeout * 2,
            most: None,
            backs_off: false,
            heeds_retry_after: None,
            usage: false,
            records: None,
            certify: false,
        }
    }

    /// What falls to one of our threads.
    pub(super) const fn part_of(&self, thread: u64) -> Part {
        let threads = self.threads as u64;
        Part {
            index: self.fleet.index * threads + thread,
            of: self.fleet.of * threads,
        }
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        self.workload.check()?;
        let fault = |says: &str| Err(LoadError::Plan(says.to_owned()));
        if self.reach.targets.is_empty() {
            return fault("there is no target");
        }
        if self.threads == 0 || self.threads > MOST_THREADS {
            return fault("a run has 1 to 1024 threads");
        }
        if self.fleet.index >= self.fleet.of {
            return fault("bug: a run that is none of its fleet");
        }
        if self.traffic.len() != self.workload.profiles.len() {
            return fault("bug: not every profile of the workload has its traffic");
        }
        for (at, (traffic, profile)) in self.traffic.iter().zip(&self.workload.profiles).enumerate()
        {
            let fault =
                |says: &str| Err(LoadError::Plan(format!("profile {}: {says}", profile.name)));
            if self.source.sessions(at) == 0 {
                return fault("there are no sessions to send");
            }
            let has_own = |id: &IdHeader| {
                let mut own = traffic.head.headers().iter();
                own.any(|(name, _)| name == id.name())
            };
            if traffic.request_id.as_ref().is_some_and(has_own) {
                return fault("the header that is to carry ids has a value of its own");
            }
            if matches!(profile.load, Load::Open { .. }) && traffic.connections == 0 {
                return fault("an open loop needs at least one connection");
            }
        }
        Ok(())
    }
}
