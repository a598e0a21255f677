//! The open loop: arrivals are let go when they are due, and taken by the lane that was idle last.
//!
//! Invariant: a lane that comes late takes the oldest arrival, so that its wait is part of its latency; at most
//! [`MOST_WAITING`] wait, and those beyond are counted as not sent.
//! Not here: when they are due (`experiment::workload`), an exchange (`state`).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use experiment::workload::{Arrival, Arrivals, SEQUENCE};

use super::state::Shared;

#[cfg(test)]
mod tests;

/// Arrivals of a profile and a thread that are due and not taken.
const MOST_WAITING: usize = 100_000;
/// Arrivals let go at once before others have their turn.
const AT_ONCE: u32 = 64;

/// The arrivals of one profile that are due, and who takes them.
#[derive(Default)]
pub(super) struct Lanes {
    waiting: RefCell<VecDeque<Arrival>>,
    /// Lanes that wait, the last to come on top.
    idle: RefCell<Vec<usize>>,
    wakers: RefCell<Vec<Option<Waker>>>,
    without_room: Cell<u64>,
    is_over: Cell<bool>,
}

impl Lanes {
    /// Whether there was room for it.
    fn push(&self, arrival: Arrival) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= MOST_WAITING {
            self.without_room.set(self.without_room.get() + 1);
            return false;
        }
        waiting.push_back(arrival);
        drop(waiting);
        self.wake_one();
        true
    }

    fn wake_one(&self) {
        let last = self.idle.borrow_mut().pop();
        let waker = last.and_then(|lane| self.wakers.borrow_mut().get_mut(lane)?.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn end(&self) {
        self.is_over.set(true);
        while !self.idle.borrow().is_empty() {
            self.wake_one();
        }
    }

    /// The oldest arrival that nobody has taken, once there is one; `None` when there will be no more.
    async fn next(&self, lane: usize) -> Option<Arrival> {
        poll_fn(|cx| self.poll_next(cx, lane)).await
    }

    fn poll_next(&self, cx: &mut Context<'_>, lane: usize) -> Poll<Option<Arrival>> {
        if self.is_over.get() {
            return Poll::Ready(None);
        }
        let mut wakers = self.wakers.borrow_mut();
        if wakers.len() <= lane {
            wakers.resize(lane + 1, None);
        }
        let is_idle = wakers[lane].is_some();
        if let Some(arrival) = self.waiting.borrow_mut().pop_front() {
            if wakers[lane].take().is_some() {
                self.idle.borrow_mut().retain(|idle| *idle != lane);
            }
            return Poll::Ready(Some(arrival));
        }
        wakers[lane] = Some(cx.waker().clone());
        if !is_idle {
            self.idle.borrow_mut().push(lane);
        }
        Poll::Pending
    }

    /// Those that nobody took, as the certificate hears of them.
    pub(super) fn tell(&self, shared: &Shared, profile: usize) {
        for arrival in &*self.waiting.borrow() {
            drop(shared.drawn(profile, SEQUENCE, arrival.first.due));
        }
    }

    /// Arrivals that were due and never taken.
    pub(super) fn unsent(&self) -> u64 {
        self.without_room.get() + self.waiting.borrow().len() as u64
    }
}

/// Lets arrivals go as they become due, to the end.
pub(super) async fn release(shared: Rc<Shared>, profile: usize, mut arrivals: Arrivals) {
    let place = &shared.places[profile];
    let Some(lanes) = &place.lanes else { return };
    let mut at_once = 0;
    while let Some(arrival) = arrivals.next(&shared.sessions(profile)) {
        let due = shared.start + arrival.first.due.at;
        // Dropped without a lane that took it, it was not sent.
        let drawn = shared.drawn(profile, SEQUENCE, arrival.first.due);
        if !shared.may_send(profile, due) {
            break;
        }
        shared.timers.until(due).await;
        if lanes.push(arrival) {
            drawn.hand_over();
        } else {
            shared.settled();
        }
        at_once += 1;
        if at_once % AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
    }
    shared.timers.until(shared.window.end).await;
    lanes.end();
}

/// One lane: session after session, each to its end.
pub(super) async fn live(
    shared: Rc<Shared>,
    profile: usize,
    lane: usize,
    opens: std::time::Duration,
) {
    let place = &shared.places[profile];
    let Some(lanes) = &place.lanes else { return };
    let mut sender = shared.sender(profile, lane as u64);
    shared.timers.until(shared.start + opens).await;
    while let Some(arrival) = lanes.next(lane).await {
        place.live.came();
        place.add(arrival.begun);
        let (actor, mut visit) = (arrival.number, arrival.visit);
        let mut turn = arrival.first;
        let mut drawn = shared.drawn(profile, SEQUENCE, turn.due);
        loop {
            let (is_good, ended) = shared.ask(&mut sender, drawn, (actor, &turn)).await;
            if !is_good {
                place.add(visit.abandon());
                break;
            }
            let next = visit.next(ended, &shared.sessions(profile));
            let Some(next) = next else { break };
            drawn = shared.drawn(profile, actor, next.due);
            let due = shared.start + next.due.at;
            if !shared.may_send(profile, due) {
                break;
            }
            shared.timers.until(due).await;
            turn = next;
        }
        place.live.left();
    }
}
