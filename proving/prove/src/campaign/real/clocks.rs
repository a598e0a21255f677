//! Whether the host slept: of the kernel's two clocks that never jump, one stands still meanwhile.
//!
//! Not here: what follows (`experiment::campaign::Ending::Lapsed`).

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Both, at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// `CLOCK_MONOTONIC`, which [`std::time::Instant`] is.
    awake: Duration,
    /// `CLOCK_BOOTTIME`.
    all: Duration,
}

impl Clocks {
    pub(super) fn now() -> Self {
        // In this order the time between the two looks is none of sleep.
        let all = clock_gettime(ClockId::Boottime);
        Self {
            all: since_boot(all),
            awake: since_boot(clock_gettime(ClockId::Monotonic)),
        }
    }

    /// How long the host has slept since.
    pub(super) fn slept_since(self, before: Self) -> Duration {
        let passed = |now: Duration, then: Duration| now.saturating_sub(then);
        passed(self.all, before.all).saturating_sub(passed(self.awake, before.awake))
    }
}

/// The kernel gives no negative times of these.
fn since_boot(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    //! A night in the soak, and no night.

    use super::*;

    #[test]
    fn what_one_clock_counts_and_the_other_does_not_was_slept() {
        let at = |awake, all| Clocks {
            awake: Duration::from_secs(awake),
            all: Duration::from_secs(all),
        };
        let slept = |before: Clocks, now: Clocks| now.slept_since(before).as_secs();
        assert_eq!(slept(at(10, 500), at(11, 501)), 0);
        assert_eq!(slept(at(10, 500), at(11, 29_301)), 28_800);
        assert_eq!(slept(at(10, 500), at(12, 501)), 0, "looks are not at once");
        let before = Clocks::now();
        assert!(Clocks::now().slept_since(before) < Duration::from_secs(60));
    }
}
