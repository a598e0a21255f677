//! Sessions that their clients have ended, as far as this process knows: what is sealed into an id cannot be taken back.
//!
//! Invariant: what is kept is bounded; past the bound the session that expires first is forgotten first.
//! Not here: what a session is (`mcp`, the crate), its end at the servers, which holds for every gate (the host).

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most sessions that are kept.
const ENDED_MAX: usize = 65_536;

/// What tells a session from all others.
pub type Mark = [u8; 12];

/// The sessions that were ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// How many there are: as long as there is none, which is so again once they would be over anyway, nobody waits for the rest.
    count: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    until: HashMap<Mark, u64>,
    by_end: BTreeSet<(u64, Mark)>,
}

impl Ended {
    /// A session was ended that would be good until then.
    pub fn end(&self, mark: Mark, until_unix_s: u64, unix_s: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.until.insert(mark, until_unix_s).is_none() {
            kept.by_end.insert((until_unix_s, mark));
        }
        self.purge(&mut kept, unix_s);
    }

    /// Whether a session was; `mark` is asked for where any was.
    pub fn has(&self, unix_s: u64, mark: impl FnOnce() -> Mark) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        // All workers wait for the lock, so that nothing is computed under it.
        let mark = mark();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.purge(&mut kept, unix_s);
        kept.until.contains_key(&mark)
    }

    /// Forgets those that would be over by now anyway, and where there are too many the first to expire.
    fn purge(&self, kept: &mut Kept, unix_s: u64) {
        while let Some(&(until, first)) = kept.by_end.first() {
            if until > unix_s && kept.until.len() <= ENDED_MAX {
                break;
            }
            kept.by_end.remove(&(until, first));
            kept.until.remove(&first);
        }
        self.count.store(kept.until.len(), Ordering::Release);
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
