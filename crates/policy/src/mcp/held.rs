//! What clients with a session have said once, and servers without sessions are told each time: which log messages they want, which resources
//! they listen to. A session's id is sealed when it begins and cannot hold what is said later.
//!
//! Invariant: what is kept is bounded; past the bound the session that expires first is forgotten first, and says it again.
//! Not here: who may say what (the host), what of a session its id holds (`mcp`, the crate).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Mark;

/// Most sessions of which something is kept.
const SESSIONS_MAX: usize = 16_384;
/// Most resources that one session listens to.
const RESOURCES_MAX: usize = 256;

/// What is kept, of each session.
#[derive(Debug, Default)]
pub struct Held(Mutex<HashMap<Mark, OfSession>>);

#[derive(Debug, Default)]
struct OfSession {
    until_unix_s: u64,
    level: Option<Box<str>>,
    /// Each server with its own URI.
    resources: BTreeSet<(Box<str>, Box<str>)>,
    /// How often they changed.
    changes: u64,
    /// Whoever has its standing stream.
    waker: Option<Waker>,
}

impl Held {
    fn of<T>(&self, mark: Mark, until_unix_s: u64, said: impl FnOnce(&mut OfSession) -> T) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&mark) {
            let first = sessions
                .iter()
                .min_by_key(|(mark, of)| (of.until_unix_s, **mark));
            let first = first.map(|(mark, _)| *mark);
            first.and_then(|first| sessions.remove(&first));
        }
        let of = sessions.entry(mark).or_default();
        of.until_unix_s = until_unix_s;
        said(of)
    }

    /// The client of a session wants log messages of this level and worse.
    pub fn set_level(&self, mark: Mark, until_unix_s: u64, level: &str) {
        self.of(mark, until_unix_s, |of| of.level = Some(level.into()));
    }

    /// What it wants.
    #[must_use]
    pub fn level(&self, mark: &Mark) -> Option<Box<str>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(mark)?.level.clone()
    }

    /// It listens to a server's resource; false where it listens to as many as it may.
    pub fn subscribe(&self, mark: Mark, until_unix_s: u64, server: &str, uri: &str) -> bool {
        self.changed(mark, until_unix_s, |resources| {
            let resource = (server.into(), uri.into());
            if resources.len() >= RESOURCES_MAX && !resources.contains(&resource) {
                return None;
            }
            Some(resources.insert(resource))
        })
    }

    /// It does so no more.
    pub fn unsubscribe(&self, mark: Mark, until_unix_s: u64, server: &str, uri: &str) {
        self.changed(mark, until_unix_s, |resources| {
            Some(resources.remove(&(server.into(), uri.into())))
        });
    }

    /// `change` says whether anything changed, and nothing where it may not.
    fn changed(
        &self,
        mark: Mark,
        until_unix_s: u64,
        change: impl FnOnce(&mut BTreeSet<(Box<str>, Box<str>)>) -> Option<bool>,
    ) -> bool {
        let (is_taken, waker) = self.of(mark, until_unix_s, |of| {
            let changed = change(&mut of.resources);
            let is_other = changed == Some(true);
            of.changes += u64::from(is_other);
            (changed.is_some(), of.waker.take_if(|_| is_other))
        });
        if let Some(waker) = waker {
            waker.wake();
        }
        is_taken
    }

    /// What it listens to at a server.
    #[must_use]
    pub fn resources(&self, mark: &Mark, server: &str) -> Vec<String> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resources = sessions.get(mark).map(|of| &of.resources);
        let resources = resources.into_iter().flatten();
        let its = resources.filter(|(of, _)| **of == *server);
        its.map(|(_, uri)| uri.to_string()).collect()
    }

    /// Ready once that has changed more often than so many times, with how often. One waits for each session: who has its standing stream.
    pub fn poll_change(&self, mark: Mark, seen: u64, cx: &mut Context<'_>) -> Poll<u64> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = sessions.len() < SESSIONS_MAX;
        let of = match sessions.get_mut(&mark) {
            Some(of) => of,
            None if room => sessions.entry(mark).or_default(),
            None => return Poll::Pending,
        };
        if of.changes > seen {
            return Poll::Ready(of.changes);
        }
        of.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nobody waits any more: a session that has said nothing is forgotten.
    pub fn done(&self, mark: &Mark) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = sessions.get_mut(mark) {
            of.waker = None;
            if of.level.is_none() && of.resources.is_empty() {
                sessions.remove(mark);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is told again, and to whom.

    use std::task::{Context, Poll, Waker};

    use super::{Held, RESOURCES_MAX, SESSIONS_MAX};

    #[test]
    fn what_a_client_says_once_is_known_until_it_says_otherwise() {
        let (held, ada, ben) = (Held::default(), [1; 12], [2; 12]);
        held.set_level(ada, 100, "warning");
        assert_eq!(
            (held.level(&ada).as_deref(), held.level(&ben)),
            (Some("warning"), None)
        );
        assert!(held.subscribe(ada, 100, "one", "a:b") && held.subscribe(ada, 100, "two", "a:c"));
        assert_eq!(held.resources(&ada, "one"), ["a:b"]);
        assert!(held.resources(&ben, "one").is_empty());
        held.unsubscribe(ada, 100, "one", "a:b");
        assert!(held.resources(&ada, "one").is_empty());
        for n in 1..RESOURCES_MAX {
            assert!(held.subscribe(ada, 100, "one", &n.to_string()));
        }
        assert!(!held.subscribe(ada, 100, "one", "more") && held.subscribe(ada, 100, "one", "1"));
    }

    #[test]
    fn whoever_has_the_standing_stream_hears_of_each_change() {
        let (held, ada) = (Held::default(), [1; 12]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(held.poll_change(ada, 0, &mut cx).is_pending());
        held.subscribe(ada, 100, "one", "a:b");
        assert_eq!(held.poll_change(ada, 0, &mut cx), Poll::Ready(1));
        assert!(held.poll_change(ada, 1, &mut cx).is_pending());
        held.subscribe(ada, 100, "one", "a:b");
        assert!(
            held.poll_change(ada, 1, &mut cx).is_pending(),
            "it is the same"
        );
        held.unsubscribe(ada, 100, "one", "a:b");
        assert_eq!(held.poll_change(ada, 1, &mut cx), Poll::Ready(2));
        held.done(&ada);
        assert!(
            held.poll_change(ada, 0, &mut cx).is_pending(),
            "nothing is kept of it"
        );
    }

    #[test]
    fn past_the_bound_the_first_to_expire_is_forgotten() {
        let held = Held::default();
        let mark = |n: usize| {
            let mut mark = [0; 12];
            mark[..8].copy_from_slice(&n.to_be_bytes());
            mark
        };
        for n in 0..=SESSIONS_MAX {
            held.set_level(mark(n), 1000 + n as u64, "info");
        }
        assert!(held.level(&mark(0)).is_none() && held.level(&mark(1)).is_some());
        assert!(held.level(&mark(SESSIONS_MAX)).is_some());
    }
}
