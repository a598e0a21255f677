//! What callers without sessions have open at servers with sessions: kept, since they bring nothing that could hold it.
//!
//! Invariant: what is kept is bounded, and none of it is needed: what was forgotten is opened again with the next request, by one message of those
//! that come at once.
//! Not here: what is kept of a session (`mcp`, the crate), opening it (the host).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

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
    /// What is being opened, with who waits for that.
    opening: Mutex<HashMap<Mark, Vec<Waker>>>,
}

/// The right to open what is not open somewhere; it is given back when this is dropped.
#[derive(Debug)]
pub struct Turn<'k> {
    kept: &'k Kept,
    mark: Mark,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = {
            let opening = &self.kept.opening;
            let mut opening = opening.lock().unwrap_or_else(PoisonError::into_inner);
            opening.remove(&self.mark)
        };
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
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
            opening: Mutex::default(),
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

    /// The right to open it, once nobody else has that: then it may be open.
    pub fn poll_turn(&self, mark: &Mark, cx: &mut Context<'_>) -> Poll<Turn<'_>> {
        {
            let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(waiting) = opening.get_mut(mark) {
                if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    waiting.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            opening.insert(*mark, Vec::new());
        }
        // Made where it is given alone: dropped, it would end another one's.
        Poll::Ready(Turn {
            kept: self,
            mark: *mark,
        })
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

    /// What is open there is so no more, if it is that: somebody may have opened another one meanwhile.
    pub fn forget_if(&self, mark: &Mark, is_it: impl FnOnce(&[u8]) -> bool) {
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if kept
            .get(mark)
            .is_some_and(|session| is_it(session.expose()))
        {
            kept.forget(mark);
        }
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

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

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
        kept.forget_if(&mark(1), |session| session == b"one");
        assert!(kept.get(&mark(1), 100).is_some(), "another one");
        kept.forget_if(&mark(1), |session| session == b"again");
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
    fn one_opens_at_a_time_and_who_waits_is_woken() {
        struct Woken(AtomicUsize);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (kept, woken) = (Kept::default(), Arc::new(Woken(AtomicUsize::new(0))));
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let Poll::Ready(first) = kept.poll_turn(&mark(1), cx) else {
            panic!("nobody opens it");
        };
        assert!(kept.poll_turn(&mark(1), cx).is_pending());
        assert!(kept.poll_turn(&mark(1), cx).is_pending());
        assert!(kept.poll_turn(&mark(2), cx).is_ready());
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(first);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "once");
        assert!(kept.poll_turn(&mark(1), cx).is_ready());
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
