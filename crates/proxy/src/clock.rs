//! A worker's clocks: the monotonic one, the wall's, and the `date` of its answers.
//!
//! Invariant: the wall clock is read at each tick and goes on with the monotonic one between two.
//! Not here: what is due when (`wheel`, `deadline`), exact timers (`timers`).

use std::cell::Cell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use policy::clock::Mono;

use crate::date;
use crate::wheel::Wheel;

/// One worker's clocks.
pub(crate) struct Clock {
    /// The timers, with the latest look at the monotonic clock.
    pub(crate) wheel: Rc<Wheel>,
    /// A moment on it, and the wall clock's milliseconds then.
    wall: Cell<(Mono, u64)>,
    date: Cell<date::Line>,
    host: HostClocks,
}

/// Where a worker's clocks read the time.
#[derive(Clone, Copy)]
pub(crate) struct HostClocks {
    pub(crate) monotonic: fn() -> Mono,
    /// Milliseconds since the Unix epoch.
    pub(crate) unix_ms: fn() -> u64,
}

impl HostClocks {
    /// The system's.
    pub(crate) const SYSTEM: Self = Self { monotonic, unix_ms };
}

impl Clock {
    /// Clocks that read these.
    pub(crate) fn new(host: HostClocks) -> Self {
        let wheel = Rc::new(Wheel::new(host.monotonic));
        let wall = (host.unix_ms)();
        Self {
            wall: Cell::new((wheel.clock(), wall)),
            wheel,
            date: Cell::new(date::line(wall / 1000)),
            host,
        }
    }

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Mono {
        self.wheel.look()
    }

    /// When what is dealt with now came in: the gate's own time begins there.
    pub(crate) fn arrival(&self) -> Mono {
        self.wheel.arrival()
    }

    /// The clock at its latest look, at most a tick ago.
    pub(crate) fn latest(&self) -> Mono {
        self.wheel.clock()
    }

    /// Milliseconds since the Unix epoch at `now`.
    pub(crate) fn wall_ms(&self, now: Mono) -> u64 {
        let (at, ms) = self.wall.get();
        ms.saturating_add(u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX))
    }

    /// The `date` line of this second.
    pub(crate) fn date(&self) -> date::Line {
        self.date.get()
    }

    /// Wakes whoever is due, and looks at the wall clock.
    pub(crate) fn tick(&self) {
        self.wheel.advance();
        let (_, before) = self.wall.get();
        let unix_ms = (self.host.unix_ms)();
        self.wall.set((self.now(), unix_ms));
        if unix_ms / 1000 != before / 1000 {
            self.date.set(date::line(unix_ms / 1000));
        }
    }
}

/// The system's monotonic clock, the same for every thread of the host. Its base is the system's start.
// Not `Instant`: it can only be subtracted from another, which costs more than the reading.
#[must_use]
pub fn monotonic() -> Mono {
    // Linux has this clock, always.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or_else(
        |_| Mono::default(),
        |at| Mono(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
    )
}

/// The system's wall clock: milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
