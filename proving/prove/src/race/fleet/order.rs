//! What travels between a race and the processes that send for it.
//!
//! Invariant: what a process sends follows from its order alone; of requests that are sent in turn each process has its share,
//! and of bodies that never come twice no two processes make the same.
//! Not here: the pipes that it travels by (`fleet`, `worker`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;
use experiment::workload::Part;
use load::run::{Outcome, Plan};
use load::source::{Fixed, Head, HeadError, Payload, Secret};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::race::bodies::{self, Bodies, Requests};
use crate::race::cell;
use crate::race::scenario::{Scenario, Timing};

/// What one process is to send.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// Which it is.
    index: u64,
    /// Of how many.
    of: u64,
    targets: Vec<SocketAddr>,
    scenario: Scenario,
    timing: Timing,
    heads: Vec<WrittenHead>,
    /// How often they were sent before.
    turns: usize,
    /// Parts of the payload.
    payload: Vec<Vec<u8>>,
    /// What stands behind it, and of which round.
    bodies: Option<(bodies::Plan, u64)>,
}

/// A head of requests.
#[derive(Serialize, Deserialize)]
struct WrittenHead {
    is_get: bool,
    path: String,
    /// Name, value, and whether it is secret.
    headers: Vec<(String, Vec<u8>, bool)>,
}

/// What a process is told behind its order.
#[derive(Serialize, Deserialize)]
pub(super) enum Word {
    /// When to begin.
    Start(Moment),
    /// To end at once.
    Stop,
}

/// What a process says.
#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    /// It waits for its start.
    Ready,
    /// Answers that have begun and not ended.
    Open(u64),
    /// All that it saw.
    Ended(Box<Seen>),
    /// Why it cannot send.
    Failed(String),
}

/// What one process saw.
#[derive(Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    /// Turns that were taken of its requests, those before it included.
    pub(super) turns: usize,
}

/// A moment by the clock that all processes of a machine share.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Moment(Duration);

impl Moment {
    pub(super) fn of(instant: Instant) -> Self {
        Self(monotonic() + instant.saturating_duration_since(Instant::now()))
    }

    pub(super) fn instant(self) -> Instant {
        Instant::now() + self.0.saturating_sub(monotonic())
    }
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

impl Order {
    pub(super) fn new(
        targets: &[SocketAddr],
        requests: &Requests,
        (scenario, timing): (&Scenario, Timing),
        part: Part,
    ) -> Self {
        let fixed = requests.fixed();
        let all = fixed.heads();
        let is_shared = all.len() as u64 >= part.of;
        let own = all.iter().enumerate();
        let own = own.filter(|(at, _)| !is_shared || part.has(*at as u64));
        let parts = fixed.payload().parts().iter();
        let bodies = requests.bodies().map(Bodies::plan);
        let senders = usize::try_from(part.of).unwrap_or(usize::MAX);
        Self {
            index: part.index,
            of: part.of,
            targets: targets.to_vec(),
            scenario: scenario.clone(),
            timing,
            heads: own.map(|(_, head)| WrittenHead::of(head)).collect(),
            turns: fixed.turns_taken() / senders,
            payload: parts.map(|part| part.to_vec()).collect(),
            bodies: bodies.map(|(plan, round)| {
                let own = round.wrapping_mul(part.of).wrapping_add(part.index);
                (plan.shared_by(senders), own)
            }),
        }
    }

    /// The run that it orders, and the requests that are sent in it.
    pub(super) fn plan(self) -> Result<(Plan, Arc<Requests>), String> {
        let heads: Result<Vec<Head>, HeadError> =
            self.heads.into_iter().map(WrittenHead::read).collect();
        let heads = heads.map_err(|error| error.to_string())?;
        let parts: Vec<Bytes> = self.payload.into_iter().map(Bytes::from).collect();
        let payload = Payload::new(&parts).map_err(|error| error.to_string())?;
        let turn = Arc::new(AtomicUsize::new(self.turns));
        let fixed = Fixed::in_turn(heads, payload, turn).map_err(|error| error.to_string())?;
        let bodies = self
            .bodies
            .map(|(plan, round)| Bodies::new(Arc::new(plan.make()), round));
        let sent = cell::Sent::from(Requests::new(fixed, bodies));
        let requests = sent.requests.clone().ok_or("bug: requests without any")?;
        let part = Part {
            index: self.index,
            of: self.of,
        };
        let plan = cell::plan(&self.targets, sent, (&self.scenario, self.timing), part);
        Ok((plan, requests))
    }
}

impl WrittenHead {
    fn of(head: &Head) -> Self {
        let host = head
            .host()
            .map(|host| ("host".to_owned(), host.as_bytes().to_vec(), false));
        let headers = head.headers().iter();
        let headers = headers.map(|(name, value)| {
            (
                name.as_str().to_owned(),
                value.as_bytes().to_vec(),
                value.is_sensitive(),
            )
        });
        Self {
            is_get: head.method().as_str() == "GET",
            path: head.path().to_owned(),
            headers: host.into_iter().chain(headers).collect(),
        }
    }

    fn read(self) -> Result<Head, HeadError> {
        let head = if self.is_get {
            Head::get(&self.path)?
        } else {
            Head::post(&self.path)?
        };
        let mut headers = self.headers.into_iter();
        headers.try_fold(head, |head, (name, value, is_secret)| {
            let Ok(value) = String::from_utf8(value) else {
                return Err(HeadError::Value(name));
            };
            if is_secret {
                head.with_secret(&name, &Secret::from(value))
            } else {
                head.with(&name, &value)
            }
        })
    }
}
