//! One user: a connection that is kept, requests one after another, every outcome counted.
//!
//! Invariant: each request ends in exactly one answer or one failure.
//! Not here: bytes on the wire (`connection`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::connection::{Answer, Buffer, Connection};
use crate::expected::Expected;
use crate::observations::{Failure, Observations};
use crate::pace::Schedule;
use crate::plan::{Arrivals, Plan};
use crate::sse::EventCounter;

/// Pause after a connection that could not be opened, so that a dead peer is not a busy loop.
const AFTER_REFUSAL: Duration = Duration::from_millis(10);

/// What the users of one run share; they live on one thread.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) start: Instant,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
    pub(crate) schedule: Option<Rc<Schedule>>,
    pub(crate) seen: RefCell<Observations>,
    pub(crate) buffer: Buffer,
    pub(crate) sent: Cell<u64>,
    pub(crate) open: Arc<AtomicU64>,
    /// Told once no further request is to be sent and all have ended.
    pub(crate) done: Notify,
}

pub(crate) async fn live(shared: Rc<Shared>, place: usize) {
    sleep_until(shared.opens_at(place)).await;
    let mut connection = None;
    while let Some(due) = shared.next_due().await {
        if connection.is_none() {
            connection = shared.connect().await;
        }
        if let Some(open) = &mut connection
            && !shared.ask(open, due).await
        {
            connection = None;
        }
        match shared.plan.arrivals {
            Arrivals::Hold { .. } => return,
            Arrivals::Closed { think, .. } if !think.is_zero() => sleep(think).await,
            Arrivals::Closed { .. } | Arrivals::Open { .. } => {}
        }
    }
}

impl Shared {
    fn opens_at(&self, place: usize) -> Instant {
        let (place, all) = (
            u32::try_from(place),
            u32::try_from(self.plan.arrivals.connections()),
        );
        self.start + self.plan.ramp.saturating_mul(place.unwrap_or(0)) / all.unwrap_or(1).max(1)
    }

    /// The moment that the next request counts from; `None` when there is to be none.
    async fn next_due(&self) -> Option<Instant> {
        let due = match &self.schedule {
            Some(schedule) => schedule.next().await?,
            None => Instant::now(),
        };
        if (due >= self.end && !self.holds()) || self.all_sent() {
            return None;
        }
        self.sent.set(self.sent.get() + 1);
        Some(due)
    }

    /// Whether as many were sent as may be.
    pub(crate) fn all_sent(&self) -> bool {
        self.plan.most.is_some_and(|most| self.sent.get() >= most)
    }

    async fn connect(&self) -> Option<Connection> {
        match Connection::open(&self.plan, &self.buffer).await {
            Ok(connection) => Some(connection),
            Err(failure) => {
                self.seen.borrow_mut().fail(failure);
                sleep(AFTER_REFUSAL).await;
                None
            }
        }
    }

    /// One exchange; whether the connection is good for another.
    async fn ask(&self, connection: &mut Connection, due: Instant) -> bool {
        let mut events = EventCounter::default();
        let mut opened = false;
        let mut expected = Expected::new(self.plan.expects.as_deref());
        let outcome = connection.exchange(self.plan.requests.next().bytes(), |now, body| {
            if !opened {
                opened = true;
                self.open.fetch_add(1, Ordering::Relaxed);
            }
            let ended = events.feed(body);
            expected.feed(body);
            if self.in_window(now) {
                let mut seen = self.seen.borrow_mut();
                seen.events += ended;
                seen.body_bytes += body.len() as u64;
            }
        });
        let outcome = match outcome.await {
            Ok(answer) if is_good(answer.status) && !expected.came() => Err(Failure::Body),
            outcome => outcome,
        };
        if opened {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.count(due, outcome)
    }

    fn count(&self, due: Instant, outcome: Result<Answer, Failure>) -> bool {
        let mut seen = self.seen.borrow_mut();
        match outcome {
            Err(failure) => {
                seen.fail(failure);
                false
            }
            Ok(Answer {
                status, reusable, ..
            }) if !is_good(status) => {
                seen.fail(Failure::Status(status));
                reusable
            }
            Ok(Answer {
                first_byte,
                last_byte,
                reusable,
                ..
            }) => {
                if self.holds() || self.in_window(last_byte) {
                    seen.answer(last_byte - due, first_byte - due);
                }
                reusable
            }
        }
    }

    const fn holds(&self) -> bool {
        matches!(self.plan.arrivals, Arrivals::Hold { .. })
    }

    fn in_window(&self, now: Instant) -> bool {
        now >= self.begin && now < self.end
    }
}

const fn is_good(status: u16) -> bool {
    matches!(status, 200..300)
}
