//! A warning that recurs, told at most once in thirty seconds, with how often it came.
//!
//! Not here: what the workers tell of (`conditions`).

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// As often as the log tells of a condition that lasts.
const EVERY: Duration = Duration::from_secs(30);

/// When it was told last, and how often it came since.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// It came again: how often since it was told last, where it is to be told now.
    pub(crate) fn came(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, times) = &mut *state;
        *times += 1;
        let is_early = |told: Instant| now.saturating_duration_since(told) < EVERY;
        if told.is_some_and(is_early) {
            return None;
        }
        *told = Some(now);
        Some(std::mem::take(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_once_and_then_once_in_thirty_seconds() {
        let (seldom, mut now) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.came(now), Some(1));
        for _ in 0..29 {
            now += Duration::from_secs(1);
            assert_eq!(seldom.came(now), None);
        }
        now += Duration::from_secs(1);
        assert_eq!(seldom.came(now), Some(30));
    }
}
