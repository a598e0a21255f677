//! A worker's coarse timers: whoever waits is looked at when the worker ticks, ten times a second.
//!
//! A runtime's own timers are exact to a millisecond and make it read the clock around every wait for the
//! network, though nothing here is due for seconds.
//! Invariant: a waiter is woken at most one tick after its time, and costs nothing before.
//! Not here: what a deadline is for (`deadline`), who rings the tick (`gate`), exact timers (`timers`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use policy::clock::{Mono, nanos};

/// How often a worker ticks.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// A waiter for later than this many ticks is looked at in between and put back.
const SLOTS: usize = 64;

thread_local! {
    /// The thread has slept since it last looked at the clock.
    static HAS_SLEPT: Cell<bool> = const { Cell::new(true) };
}

/// To be called when a worker's thread wakes up.
pub(crate) fn woken() {
    HAS_SLEPT.set(true);
}

/// One worker's timers and its latest look at the clock.
pub(crate) struct Wheel {
    clock: Cell<Mono>,
    /// When its first tick began.
    base: Mono,
    /// The host's clock.
    monotonic: fn() -> Mono,
    /// The tick that was dealt with last.
    tick: Cell<u64>,
    slots: RefCell<Vec<Vec<Rc<Waiter>>>>,
}

/// One that waits, kept by its deadline and, while armed, by the wheel.
pub(crate) struct Waiter {
    due: Cell<Option<Mono>>,
    /// The tick at which the wheel will look at it next.
    armed: Cell<Option<u64>>,
    waker: RefCell<Option<Waker>>,
}

impl Waiter {
    /// Not armed.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            due: Cell::new(None),
            armed: Cell::new(None),
            waker: RefCell::new(None),
        })
    }

    /// Waits for nothing any more; the wheel forgets it when it next comes by.
    pub(crate) fn disarm(&self) {
        self.due.set(None);
    }
}

impl Wheel {
    /// A wheel whose ticks begin now.
    pub(crate) fn new(monotonic: fn() -> Mono) -> Self {
        let now = monotonic();
        Self {
            clock: Cell::new(now),
            base: now,
            monotonic,
            tick: Cell::new(0),
            slots: RefCell::new(vec![Vec::new(); SLOTS]),
        }
    }

    /// The latest look at the clock, at most a tick ago.
    pub(crate) fn clock(&self) -> Mono {
        self.clock.get()
    }

    /// When what is dealt with now came in: the latest look, or a new one after a sleep. Between two sleeps
    /// each exchange that leaves looks, so that this is early by one step of one exchange: a few microseconds.
    pub(crate) fn arrival(&self) -> Mono {
        if HAS_SLEPT.get() {
            self.look()
        } else {
            self.clock.get()
        }
    }

    /// Looks at the clock.
    pub(crate) fn look(&self) -> Mono {
        HAS_SLEPT.set(false);
        let now = (self.monotonic)();
        self.clock.set(now);
        now
    }

    /// Wakes this waker when `due` is past.
    pub(crate) fn arm(&self, waiter: &Rc<Waiter>, due: Mono, waker: &Waker) {
        waiter.due.set(Some(due));
        let mut kept = waiter.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
        let tick = self.tick_after(due);
        if waiter.armed.get().is_none_or(|armed| armed > tick) {
            self.put(&mut self.slots.borrow_mut(), waiter, tick);
        }
    }

    /// Deals with every tick up to now.
    pub(crate) fn advance(&self) {
        let now = self.look();
        let last = self.ticks(now);
        let mut slots = self.slots.borrow_mut();
        // After a long stop every slot is due once.
        let first = (self.tick.get() + 1).max((last + 1).saturating_sub(SLOTS as u64));
        self.tick.set(last);
        // All are taken before any is put back, which may be into one of these slots.
        let mut passed = Vec::new();
        for tick in first..=last {
            if let Some(slot) = slots.get_mut(slot_of(tick)) {
                passed.append(slot);
            }
        }
        for waiter in passed {
            self.look_at(&mut slots, &waiter, now, last);
        }
    }

    fn look_at(&self, slots: &mut [Vec<Rc<Waiter>>], waiter: &Rc<Waiter>, now: Mono, last: u64) {
        // Armed anew for an earlier tick since: that entry counts.
        if waiter.armed.get().is_none_or(|armed| armed > last) {
            return;
        }
        waiter.armed.set(None);
        let is_orphan = Rc::strong_count(waiter) == 1;
        let Some(due) = waiter.due.get().filter(|_| !is_orphan) else {
            return;
        };
        if due > now {
            let tick = self.tick_after(due);
            self.put(slots, waiter, tick);
        } else if let Some(waker) = waiter.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    fn put(&self, slots: &mut [Vec<Rc<Waiter>>], waiter: &Rc<Waiter>, tick: u64) {
        let tick = tick.clamp(self.tick.get() + 1, self.tick.get() + SLOTS as u64 - 1);
        waiter.armed.set(Some(tick));
        if let Some(slot) = slots.get_mut(slot_of(tick)) {
            slot.push(Rc::clone(waiter));
        }
    }

    /// The first tick at which `due` is past.
    fn tick_after(&self, due: Mono) -> u64 {
        self.ticks(due) + 1
    }

    fn ticks(&self, at: Mono) -> u64 {
        let since = at.0.saturating_sub(self.base.0);
        u64::try_from(since / nanos(TICK)).unwrap_or(0)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "below SLOTS")]
fn slot_of(tick: u64) -> usize {
    (tick % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests;
