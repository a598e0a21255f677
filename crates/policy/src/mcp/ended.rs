//! Sessions that their clients have ended, as far as this process knows: what is sealed into an id cannot be taken back.
//!
//! Invariant: what is kept is bounded; past the bound the session that expires first is forgotten first.
//! Not here: what a session is (`mcp`, the crate), its end at the servers, which holds for every gate (the host).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::expiring::Expiring;

/// Most sessions that are kept.
const ENDED_MAX: usize = 65_536;

/// What tells a session from all others.
pub type Mark = [u8; 12];

/// The sessions that were ended.
#[derive(Debug)]
pub struct Ended {
    /// How many there are: as long as there is none, which is so again once they would be over anyway, nobody waits for the rest.
    count: AtomicUsize,
    kept: Mutex<Expiring<()>>,
}

impl Default for Ended {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            kept: Mutex::new(Expiring::new(ENDED_MAX, usize::MAX)),
        }
    }
}

impl Ended {
    /// A session was ended that would be good until then.
    pub fn end(&self, mark: Mark, until_unix_s: u64, unix_s: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(mark, until_unix_s, unix_s, || ());
        kept.purge(unix_s);
        self.count.store(kept.len(), Ordering::Release);
    }

    /// Whether a session was; `mark` is asked for where any was.
    pub fn has(&self, unix_s: u64, mark: impl FnOnce() -> Mark) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        // All workers wait for the lock, so that nothing is computed under it.
        let mark = mark();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.purge(unix_s);
        self.count.store(kept.len(), Ordering::Release);
        kept.has(&mark)
    }
}

#[cfg(test)]
mod tests {
    //! What is kept, and for how long.

    use super::{ENDED_MAX, Ended, Mark};

    fn mark(n: usize) -> Mark {
        let mut mark = [0; 12];
        mark[..8].copy_from_slice(&n.to_be_bytes());
        mark
    }

    #[test]
    fn a_session_that_was_ended_is_known_until_it_would_have_ended_by_itself() {
        let ended = Ended::default();
        assert!(!ended.has(10, || unreachable!("nobody asks")));
        ended.end(mark(1), 100, 10);
        ended.end(mark(1), 100, 10);
        assert!(ended.has(99, || mark(1)) && !ended.has(99, || mark(2)));
        assert!(!ended.has(100, || mark(1)));
        assert!(!ended.has(100, || unreachable!("nothing is kept any more")));
        ended.end(mark(2), 300, 100);
        assert!(!ended.has(100, || mark(1)) && ended.has(100, || mark(2)));
    }

    #[test]
    fn past_the_bound_the_first_to_expire_is_forgotten() {
        let ended = Ended::default();
        for n in 0..=ENDED_MAX {
            ended.end(mark(n), 1000 + n as u64, 10);
        }
        let has = |n| ended.has(10, || mark(n));
        assert!(!has(0) && has(1) && has(ENDED_MAX));
    }
}
