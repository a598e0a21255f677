//! When something is due, to the precision of the kernel's high-resolution timer: the runtime's own timers are rounded up
//! to a millisecond.
//!
//! Invariant: one `timerfd` a thread, set to the earliest due time; nothing wakes before it is due.
//! Not here: what is due (`work`); deadlines, for which a millisecond is good enough.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

#[cfg(test)]
mod tests;

/// The timers of one thread.
pub(crate) struct Timers {
    fd: AsyncFd<OwnedFd>,
    waiting: RefCell<BTreeMap<Key, Waker>>,
    armed: Cell<Option<Instant>>,
    next: Cell<u64>,
}

/// When, and which of those that are due then.
type Key = (Instant, u64);

impl Timers {
    /// Those of the calling thread, whose other waits lose their slack with it.
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an `OwnedFd` keeps its descriptor open, which is all it asks"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Self {
            fd: AsyncFd::new(fd)?,
            waiting: RefCell::default(),
            armed: Cell::new(None),
            next: Cell::new(0),
        })
    }

    /// Ready once `due` has come.
    pub(crate) fn until(&self, due: Instant) -> Until<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        Until {
            timers: self,
            key: (due, number),
        }
    }

    /// Wakes whoever is due, for ever.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            self.arm()?;
            // It is not read: setting it anew takes its count back, and its next end is a new edge.
            self.fd.readable().await?.clear_ready();
            self.armed.set(None);
            let now = Instant::now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry().filter(|first| first.key().0 <= now) {
                first.remove().wake();
            }
        }
    }

    /// Sets the timer to the earliest due time.
    fn arm(&self) -> io::Result<()> {
        let first = self
            .waiting
            .borrow()
            .first_key_value()
            .map(|(key, _)| key.0);
        let Some(due) = first.filter(|due| self.armed.get().is_none_or(|armed| *due < armed))
        else {
            return Ok(());
        };
        self.armed.set(Some(due));
        let left = due.saturating_duration_since(Instant::now());
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            // Zero would mean never.
            tv_nsec: i64::from(left.subsec_nanos()).max(1),
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

/// A wait.
pub(crate) struct Until<'a> {
    timers: &'a Timers,
    key: Key,
}

impl Future for Until<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.key.0 {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        self.timers.waiting.borrow_mut().insert(self.key, waker);
        match self.timers.arm() {
            Ok(()) => Poll::Pending,
            // A timer that cannot be set is none to wait for; `run` meets the same error and ends.
            Err(_) => Poll::Ready(()),
        }
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.timers.waiting.borrow_mut().remove(&self.key);
    }
}
