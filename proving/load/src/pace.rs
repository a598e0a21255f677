//! A constant rate, to the precision of the kernel's high-resolution timer.
//!
//! Invariant: request `i` is due at `start + i / rate`, decided before anything is sent; a
//! connection that comes late takes the oldest due time, so that the wait is part of its latency.
//! Not here: closed-loop users; they need no schedule (`user`).

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::Instant;

#[cfg(test)]
mod tests;

pub(crate) struct Schedule {
    start: Instant,
    per_second: f64,
    end: Instant,
    most: u64,
    released: Cell<u64>,
    taken: Cell<u64>,
    over: Cell<bool>,
    wake: Notify,
}

impl Schedule {
    pub(crate) fn new(start: Instant, end: Instant, per_second: f64, most: u64) -> Self {
        let (released, taken, over) = (Cell::new(0), Cell::new(0), Cell::new(false));
        Self {
            start,
            per_second,
            end,
            most,
            released,
            taken,
            over,
            wake: Notify::new(),
        }
    }

    /// Waits for the next request that is due and not taken; `None` when the schedule is over.
    pub(crate) async fn next(&self) -> Option<Instant> {
        loop {
            if self.over.get() {
                return None;
            }
            let index = self.taken.get();
            if index < self.released.get() {
                self.taken.set(index + 1);
                return Some(self.due(index));
            }
            self.wake.notified().await;
        }
    }

    /// Releases requests as they become due, to the end.
    pub(crate) async fn run(&self) -> io::Result<()> {
        let alarm = Alarm::new()?;
        for index in 0..self.most {
            let due = self.due(index);
            if due >= self.end {
                break;
            }
            alarm.wait_until(due).await?;
            self.released.set(index + 1);
            self.wake.notify_one();
        }
        tokio::time::sleep_until(self.end).await;
        self.over.set(true);
        self.wake.notify_waiters();
        Ok(())
    }

    /// Requests that were due and never taken.
    pub(crate) fn unsent(&self) -> u64 {
        self.released.get() - self.taken.get()
    }

    fn due(&self, index: u64) -> Instant {
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 requests")]
        let offset = index as f64 / self.per_second;
        self.start + Duration::try_from_secs_f64(offset).unwrap_or(Duration::MAX / 4)
    }
}

/// A `timerfd`: the runtime's own timers are rounded up to a millisecond.
struct Alarm {
    fd: AsyncFd<OwnedFd>,
}

impl Alarm {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an `OwnedFd` keeps its descriptor open, which is all it asks"
    )]
    fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self {
            fd: AsyncFd::new(fd)?,
        })
    }

    async fn wait_until(&self, due: Instant) -> io::Result<()> {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.fd.readable().await?;
            let mut fired = [0; 8];
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut fired)?));
            match read {
                Ok(outcome) => return outcome.map(drop),
                Err(_would_block) => {}
            }
        }
    }
}
