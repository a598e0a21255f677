//! What callers without sessions have open at servers with sessions: kept, since they bring nothing that could hold it.
//!
//! Invariant: what is kept is bounded, and none of it is needed: what was forgotten is opened again with the next request.
//! Not here: what is kept of a session (`mcp`, the crate), opening it (the host).

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Mark;
use super::expiring::Expiring;
use crate::secret::Secret;

/// Most sessions that are kept.
const KEPT_MAX: usize = 16_384;
/// How long one is kept that nobody uses, seconds: as long as a command waits for its client.
const IDLE_S: u64 = 30 * 60;

/// The sessions, each by whose it is and where.
pub struct Kept {
    open: Mutex<Expiring<Secret>>,
    requests: AtomicU64,
    /// Whose standing stream somebody hears.
    heard: Mutex<HashSet<Mark>>,
}

/// The right to hear what is said outside calls in what is open somewhere; it is given back when this is dropped.
#[derive(Debug)]
pub struct Hearing<'k> {
    kept: &'k Kept,
    mark: Mark,
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        let heard = &self.kept.heard;
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.remove(&self.mark);
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            open: Mutex::new(Expiring::new(KEPT_MAX, usize::MAX)),
            requests: AtomicU64::new(0),
            heard: Mutex::default(),
        }
    }
}

/// When one goes that is used now and then no more.
const fn until(unix_s: u64) -> u64 {
    unix_s.saturating_add(IDLE_S).saturating_add(1)
}

impl Kept {
    /// What is open there; it counts as used.
    #[must_use]
    pub fn get(&self, mark: &Mark, unix_s: u64) -> Option<Vec<u8>> {
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        kept.purge(unix_s);
        let session = kept.get(mark)?.expose().to_vec();
        kept.renew(mark, until(unix_s));
        Some(session)
    }

    /// This was opened there.
    pub fn keep(&self, mark: Mark, session: Vec<u8>, unix_s: u64) {
        let session = Secret::new(session);
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let none = || Secret::new(Vec::new());
        *kept.entry(mark, until(unix_s), unix_s, none) = session;
    }

    /// The number of a request in one of them: a caller may be many clients, which count their requests each for itself.
    #[must_use]
    pub fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// The right to hear it, which one stream has at a time: a server says a thing on one stream of a session alone.
    #[must_use]
    pub fn hear(&self, mark: Mark) -> Option<Hearing<'_>> {
        let is_free = {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.insert(mark)
        };
        // Made where it is given alone: dropped, it would give back another one's.
        is_free.then(|| Hearing { kept: self, mark })
    }

    /// It is open no more.
    pub fn forget(&self, mark: &Mark) {
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(mark);
    }
}

/// Sessions are not shown.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! What is kept, and for how long.

    use super::{IDLE_S, KEPT_MAX, Kept, Mark};

    fn mark(n: usize) -> Mark {
        let mut mark = [0; 12];
        mark[..8].copy_from_slice(&n.to_be_bytes());
        mark
    }

    #[test]
    fn what_is_used_is_kept_and_what_is_not_is_forgotten() {
        let kept = Kept::default();
        kept.keep(mark(1), b"one".to_vec(), 100);
        assert_eq!(kept.get(&mark(2), 100), None);
        assert_ne!(kept.next_request(), kept.next_request());
        assert_eq!(
            kept.get(&mark(1), 100 + IDLE_S).as_deref(),
            Some(&b"one"[..])
        );
        assert_eq!(
            kept.get(&mark(1), 100 + 2 * IDLE_S).as_deref(),
            Some(&b"one"[..])
        );
        assert_eq!(kept.get(&mark(1), 101 + 3 * IDLE_S), None);
        kept.keep(mark(1), b"again".to_vec(), 100);
        kept.forget(&mark(1));
        assert_eq!(kept.get(&mark(1), 100), None);
    }

    #[test]
    fn one_stream_at_a_time_hears_what_is_kept() {
        let kept = Kept::default();
        let first = kept.hear(mark(1)).expect("nobody hears it");
        assert!(kept.hear(mark(1)).is_none() && kept.hear(mark(2)).is_some());
        drop(first);
        assert!(kept.hear(mark(1)).is_some());
    }

    #[test]
    fn past_the_bound_what_was_used_the_longest_ago_is_forgotten() {
        let kept = Kept::default();
        for n in 0..KEPT_MAX {
            kept.keep(mark(n), Vec::new(), 1000 + n as u64 % 7);
        }
        assert!(kept.get(&mark(0), 1010).is_some());
        kept.keep(mark(KEPT_MAX), Vec::new(), 1010);
        assert!(kept.get(&mark(0), 1010).is_some() && kept.get(&mark(7), 1010).is_none());
        assert!(kept.get(&mark(KEPT_MAX), 1010).is_some());
        assert!(!format!("{kept:?}").contains("session"));
    }
}
