//! Whether the wall clock can be believed, before rows are deleted by it.
//!
//! Invariant: it is believed only after it and the monotonic clock have gone equally far, to a minute, for an hour. A step
//! of the wall clock, in either direction, begins the hour anew. Time is an argument.
//! Not here: what is deleted (`retention`). A clock that is wrong from the start on and does not step is not found
//! here: nothing in the process knows better.

use std::time::Duration;

/// How long both clocks agree before the wall clock is believed.
pub(crate) const AGREE_FOR: Duration = Duration::from_secs(3600);

/// How far they may be apart and agree.
const APART_MAX_MS: u64 = 60_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Milliseconds since the Unix epoch.
    pub(crate) wall_ms: u64,
    /// The monotonic clock, from any moment of this process.
    pub(crate) monotonic: Duration,
}

/// A wall clock that did not go as the monotonic one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// What the wall clock would say, had it gone as the monotonic clock did; milliseconds since the Unix epoch.
    pub expected_unix_ms: u64,
    /// What it says.
    pub found_unix_ms: u64,
    /// The monotonic clock then, from when the ledger was opened.
    pub after: Duration,
}

/// What is known of the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    agree_for: Duration,
    /// Since when both agree: the start, or the last step.
    since: Reading,
}

impl Clock {
    pub(crate) const fn new(agree_for: Duration, start: Reading) -> Self {
        Self {
            agree_for,
            since: start,
        }
    }

    /// A step since the last one, once.
    pub(crate) fn step(&mut self, now: Reading) -> Option<ClockStep> {
        let went = now.monotonic.saturating_sub(self.since.monotonic);
        let went_ms = u64::try_from(went.as_millis()).unwrap_or(u64::MAX);
        let expected_unix_ms = self.since.wall_ms.saturating_add(went_ms);
        if now.wall_ms.abs_diff(expected_unix_ms) <= APART_MAX_MS {
            return None;
        }
        self.since = now;
        Some(ClockStep {
            expected_unix_ms,
            found_unix_ms: now.wall_ms,
            after: now.monotonic,
        })
    }

    /// The wall clock, once both have agreed long enough; of a moment that [`Clock::step`] has seen.
    pub(crate) fn believed(&self, now: Reading) -> Option<u64> {
        let agreed = now.monotonic.saturating_sub(self.since.monotonic);
        (agreed >= self.agree_for).then_some(now.wall_ms)
    }
}

#[cfg(test)]
mod tests;
