//! When a stream is opened again that its server ended, or that broke off.
//!
//! Invariant: a server that says nothing on a stream is asked less and less often; one that says something, or when it wants to be asked,
//! is asked as soon as that.
//! Not here: streams (`standing`).

use std::time::Duration;

/// How soon a stream is opened again, unless its server says another time.
const AFTER: Duration = Duration::from_secs(1);
/// How late at most.
const AFTER_MOST: Duration = Duration::from_secs(60);

/// How often a stream ended on which nothing was said, one after the other.
#[derive(Debug, Default)]
pub(super) struct Again {
    silent: u32,
    /// When its server wants to be asked, as its last stream said.
    retry: Option<Duration>,
}

impl Again {
    /// A stream has begun.
    pub(super) const fn begun(&mut self) {
        self.retry = None;
    }

    /// Something was said on it.
    pub(super) const fn said(&mut self) {
        self.silent = 0;
    }

    /// It said when it wants to be asked again.
    pub(super) const fn retry(&mut self, ms: u32) {
        self.retry = Some(Duration::from_millis(ms as u64));
    }

    /// How often nothing was said.
    pub(super) const fn silent(&self) -> u32 {
        self.silent
    }

    /// It ended, or did not come: how long to wait.
    pub(super) fn after(&mut self) -> Duration {
        let times = 1 << self.silent.min(6);
        self.silent = self.silent.saturating_add(1);
        let after = self.retry.map_or(AFTER * times, |said| said.max(AFTER));
        after.min(AFTER_MOST)
    }
}

#[cfg(test)]
mod tests {
    //! How often a server is asked.

    use super::Again;

    fn after(again: &mut Again) -> u64 {
        again.begun();
        again.after().as_secs()
    }

    #[test]
    fn a_server_that_ends_its_stream_at_once_is_asked_less_and_less_until_it_says_something() {
        let mut again = Again::default();
        let waits: Vec<u64> = (0..9).map(|_| after(&mut again)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        again.begun();
        again.said();
        assert_eq!(again.after().as_secs(), 1);
        assert_eq!(after(&mut again), 2);
    }

    #[test]
    fn a_server_that_says_when_is_asked_then_within_bounds() {
        let mut again = Again::default();
        for (ms, seconds) in [(5000, 5), (10, 1), (3_600_000, 60)] {
            again.begun();
            again.retry(ms);
            assert_eq!(again.after().as_secs(), seconds);
        }
    }
}
