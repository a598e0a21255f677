//! What clients with a session have said once, and servers without sessions are told each time: which log messages they want, which resources
//! they listen to. A session's id is sealed when it begins and cannot hold what is said later.
//!
//! Invariant: what is kept is bounded, in sessions and in bytes, and none outlives its session; past a bound the session that expires first
//! is forgotten first, and says it again.
//! Not here: who may say what (the host), what of a session its id holds (`mcp`, the crate).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Mark;
use super::expiring::Expiring;

/// Most sessions of which something is kept.
const SESSIONS_MAX: usize = 16_384;
/// Most resources that one session listens to.
const RESOURCES_MAX: usize = 256;
/// The longest URI of one.
pub const URI_BYTES_MAX: usize = 2 << 10;
/// Most bytes of what all sessions listen to.
const BYTES_MAX: usize = 64 << 20;
/// What a resource takes beside its names.
const OVERHEAD_BYTES: usize = 64;

/// What is kept, of each session.
#[derive(Debug)]
pub struct Held(Mutex<Sessions>);

#[derive(Debug)]
struct Sessions {
    kept: Expiring<OfSession>,
    /// Numbers of changes and of standing streams, none of which comes twice.
    last_number: u64,
}

#[derive(Debug, Default)]
struct OfSession {
    level: Option<Box<str>>,
    /// Each server with its own URI.
    resources: BTreeSet<(Box<str>, Box<str>)>,
    /// The number of their latest change.
    change: u64,
    /// Its standing streams, by number.
    wakers: BTreeMap<u64, Waker>,
}

/// A session of which something was kept is forgotten: its streams see what is left, and say it again. One of which nothing was kept lost
/// nothing; where it were woken, two of those past the bound would push one another out without an end.
impl Drop for OfSession {
    fn drop(&mut self) {
        if !self.resources.is_empty() {
            let wakers = std::mem::take(&mut self.wakers);
            wakers.into_values().for_each(Waker::wake);
        }
    }
}

/// A session, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct OfClient {
    /// What tells it from all others.
    pub mark: Mark,
    /// It is good until then.
    pub until_unix_s: u64,
    /// The time now.
    pub unix_s: u64,
}

/// Why a session cannot listen to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHeld {
    /// It listens to as many as it may.
    TooMany,
    /// Its URI is longer than [`URI_BYTES_MAX`].
    TooLong,
}

/// Tells a standing stream of changes, until it is dropped.
#[derive(Debug)]
pub struct HeldChanges<'h> {
    held: &'h Held,
    of: OfClient,
    /// The number of the stream.
    number: u64,
    seen: u64,
}

impl Default for Held {
    fn default() -> Self {
        Self(Mutex::new(Sessions {
            kept: Expiring::new(SESSIONS_MAX, BYTES_MAX),
            last_number: 0,
        }))
    }
}

impl Sessions {
    fn of(&mut self, of: OfClient) -> &mut OfSession {
        let new = OfSession::default;
        self.kept.entry(of.mark, of.until_unix_s, of.unix_s, new)
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// What it listens to has changed; gives who is told.
    fn changed(&mut self, mark: &Mark) -> BTreeMap<u64, Waker> {
        let number = self.next_number();
        let Some(session) = self.kept.get_mut(mark) else {
            return BTreeMap::new();
        };
        session.change = number;
        let wakers = std::mem::take(&mut session.wakers);
        let sizes = session.resources.iter();
        let sizes = sizes.map(|(server, uri)| server.len() + uri.len() + OVERHEAD_BYTES);
        let bytes = sizes.sum();
        self.kept.count(mark, bytes);
        wakers
    }
}

impl Held {
    fn locked(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client of a session wants log messages of this level and worse.
    pub fn set_level(&self, of: OfClient, level: &str) {
        self.locked().of(of).level = Some(level.into());
    }

    /// What it wants.
    #[must_use]
    pub fn level(&self, mark: &Mark) -> Option<Box<str>> {
        self.locked().kept.get(mark)?.level.clone()
    }

    /// It listens to a server's resource.
    ///
    /// # Errors
    /// It cannot, since it listens to as many as it may, or the URI is too long.
    pub fn subscribe(&self, of: OfClient, server: &str, uri: &str) -> Result<(), NotHeld> {
        if uri.len() > URI_BYTES_MAX {
            return Err(NotHeld::TooLong);
        }
        let resource: (Box<str>, Box<str>) = (server.into(), uri.into());
        let mut sessions = self.locked();
        let resources = &mut sessions.of(of).resources;
        if resources.contains(&resource) {
            return Ok(());
        }
        if resources.len() >= RESOURCES_MAX {
            return Err(NotHeld::TooMany);
        }
        resources.insert(resource);
        let wakers = sessions.changed(&of.mark);
        drop(sessions);
        wakers.into_values().for_each(Waker::wake);
        Ok(())
    }

    /// It does so no more.
    pub fn unsubscribe(&self, mark: &Mark, server: &str, uri: &str) {
        let resource: (Box<str>, Box<str>) = (server.into(), uri.into());
        let mut sessions = self.locked();
        let session = sessions.kept.get_mut(mark);
        if session.is_some_and(|session| session.resources.remove(&resource)) {
            let wakers = sessions.changed(mark);
            drop(sessions);
            wakers.into_values().for_each(Waker::wake);
        }
    }

    /// What it listens to at a server.
    #[must_use]
    pub fn resources(&self, mark: &Mark, server: &str) -> Vec<String> {
        let sessions = self.locked();
        let resources = sessions.kept.get(mark).map(|of| &of.resources);
        let resources = resources.into_iter().flatten();
        let its = resources.filter(|(of, _)| **of == *server);
        its.map(|(_, uri)| uri.to_string()).collect()
    }

    /// The session has ended.
    pub fn forget(&self, mark: &Mark) {
        self.locked().kept.forget(mark);
    }

    /// Tells a standing stream of what changes from now on.
    #[must_use]
    pub fn changes(&self, of: OfClient) -> HeldChanges<'_> {
        let mut sessions = self.locked();
        let number = sessions.next_number();
        let seen = sessions.kept.get(&of.mark).map_or(0, |of| of.change);
        HeldChanges {
            held: self,
            of,
            number,
            seen,
        }
    }
}

impl HeldChanges<'_> {
    /// Ready once what the session listens to has changed since this was last so, or since it was made.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut sessions = self.held.locked();
        let session = sessions.of(self.of);
        if session.change != self.seen {
            self.seen = session.change;
            return Poll::Ready(());
        }
        let waker = session.wakers.entry(self.number);
        waker
            .and_modify(|waker| waker.clone_from(cx.waker()))
            .or_insert_with(|| cx.waker().clone());
        Poll::Pending
    }
}

/// A session that has said nothing is forgotten when nobody waits any more.
impl Drop for HeldChanges<'_> {
    fn drop(&mut self) {
        let mut sessions = self.held.locked();
        let Some(session) = sessions.kept.get_mut(&self.of.mark) else {
            return;
        };
        session.wakers.remove(&self.number);
        let is_silent = session.level.is_none() && session.resources.is_empty();
        if is_silent && session.wakers.is_empty() {
            sessions.kept.forget(&self.of.mark);
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is told again, and to whom.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use super::{
        BYTES_MAX, Held, Mark, NotHeld, OfClient, RESOURCES_MAX, SESSIONS_MAX, URI_BYTES_MAX,
    };

    const fn of(mark: Mark, until_unix_s: u64) -> OfClient {
        OfClient {
            mark,
            until_unix_s,
            unix_s: 10,
        }
    }

    fn mark(n: usize) -> Mark {
        let mut mark = [0; 12];
        mark[..8].copy_from_slice(&n.to_be_bytes());
        mark
    }

    const ADA: OfClient = of([1; 12], 100);
    const BEN: OfClient = of([2; 12], 100);

    #[test]
    fn what_a_client_says_once_is_known_until_it_says_otherwise() {
        let held = Held::default();
        held.set_level(ADA, "warning");
        assert_eq!(
            (held.level(&ADA.mark).as_deref(), held.level(&BEN.mark)),
            (Some("warning"), None)
        );
        assert_eq!(held.subscribe(ADA, "one", "a:b"), Ok(()));
        assert_eq!(held.subscribe(ADA, "two", "a:c"), Ok(()));
        assert_eq!(held.resources(&ADA.mark, "one"), ["a:b"]);
        assert!(held.resources(&BEN.mark, "one").is_empty());
        held.unsubscribe(&ADA.mark, "one", "a:b");
        assert!(held.resources(&ADA.mark, "one").is_empty());
        for n in 1..RESOURCES_MAX {
            assert_eq!(held.subscribe(ADA, "one", &n.to_string()), Ok(()));
        }
        assert_eq!(held.subscribe(ADA, "one", "more"), Err(NotHeld::TooMany));
        assert_eq!(held.subscribe(ADA, "one", "1"), Ok(()));
        held.forget(&ADA.mark);
        assert!(held.level(&ADA.mark).is_none() && held.resources(&ADA.mark, "one").is_empty());
    }

    #[test]
    fn each_standing_stream_hears_of_each_change() {
        let held = Held::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(held.subscribe(ADA, "one", "a:a"), Ok(()));
        let (mut one, mut other) = (held.changes(ADA), held.changes(ADA));
        let mut told = |one: &mut super::HeldChanges<'_>| one.poll(&mut cx).is_ready();
        assert!(!told(&mut one) && !told(&mut other), "it was so before");
        let _taken = held.subscribe(ADA, "one", "a:b");
        assert!(told(&mut one) && !told(&mut one));
        let _taken = held.subscribe(ADA, "one", "a:b");
        assert!(!told(&mut one), "it is the same");
        held.unsubscribe(&ADA.mark, "one", "a:b");
        assert!(told(&mut one) && told(&mut other) && !told(&mut other));
        drop(one);
        // What the other waits for is still heard.
        assert!(
            held.locked()
                .kept
                .get(&ADA.mark)
                .is_some_and(|of| of.wakers.len() == 1)
        );
        held.unsubscribe(&ADA.mark, "one", "a:a");
        assert!(told(&mut other));
        drop(other);
        assert!(!held.locked().kept.has(&ADA.mark), "nothing is kept of it");
    }

    #[test]
    fn a_stream_whose_session_was_forgotten_hears_of_what_it_says_again() {
        let held = Held::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut changes = held.changes(ADA);
        for _ in 0..3 {
            let _taken = held.subscribe(ADA, "one", "a:b");
            assert!(changes.poll(&mut cx).is_ready());
            held.forget(&ADA.mark);
            let _taken = held.subscribe(ADA, "one", "a:c");
            assert!(changes.poll(&mut cx).is_ready());
            held.forget(&ADA.mark);
        }
    }

    #[test]
    fn a_stream_whose_session_is_pushed_out_is_woken_where_something_of_it_is_lost() {
        let held = Held::default();
        let woken = [Arc::<Woken>::default(), Arc::default()];
        let [ada, ben] = &woken;
        let wakers = [ada, ben].map(|of| Waker::from(Arc::clone(of)));
        assert_eq!(held.subscribe(ADA, "one", "a:b"), Ok(()));
        let (mut listens, mut silent) = (held.changes(ADA), held.changes(BEN));
        for (changes, waker) in [(&mut listens, &wakers[0]), (&mut silent, &wakers[1])] {
            assert!(changes.poll(&mut Context::from_waker(waker)).is_pending());
        }
        for n in 0..SESSIONS_MAX {
            held.set_level(of(mark(n), 1000 + n as u64), "info");
        }
        let times = |of: &Woken| of.0.load(Ordering::SeqCst);
        assert_eq!((times(ada), times(ben)), (1, 0));
        assert!(
            listens
                .poll(&mut Context::from_waker(&wakers[0]))
                .is_ready()
        );
        assert!(held.resources(&ADA.mark, "one").is_empty());
    }

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_has_expired_goes_and_past_the_bound_the_first_to_expire() {
        let held = Held::default();
        for n in 0..SESSIONS_MAX {
            held.set_level(of(mark(n), 1000 + n as u64), "info");
        }
        let later = OfClient {
            unix_s: 1001,
            ..of(mark(SESSIONS_MAX), 5000)
        };
        held.set_level(later, "info");
        let has = |n| held.level(&mark(n)).is_some();
        assert!(!has(0) && !has(1) && has(2) && has(SESSIONS_MAX));
        held.set_level(of(mark(SESSIONS_MAX + 1), 20_000), "info");
        assert!(has(2), "what had expired left room");
        held.set_level(of(mark(SESSIONS_MAX + 2), 20_000), "info");
        assert!(!has(2) && has(3) && has(SESSIONS_MAX + 2));
    }

    #[test]
    fn what_sessions_listen_to_has_a_bound_in_bytes() {
        let held = Held::default();
        let long = "x".repeat(URI_BYTES_MAX - 8);
        assert_eq!(
            held.subscribe(ADA, "one", &long.repeat(2)),
            Err(NotHeld::TooLong)
        );
        let sessions = 2 * BYTES_MAX / (RESOURCES_MAX * URI_BYTES_MAX);
        for n in 0..sessions {
            for uri in 0..RESOURCES_MAX {
                let of = of(mark(n), 1000 + n as u64);
                assert_eq!(
                    held.subscribe(of, "one", &format!("{uri:08}{long}")),
                    Ok(())
                );
            }
        }
        let kept: usize = (0..sessions)
            .map(|n| {
                held.resources(&mark(n), "one")
                    .iter()
                    .map(String::len)
                    .sum::<usize>()
            })
            .sum();
        assert!(kept <= BYTES_MAX, "{kept} bytes are kept");
        assert!(held.resources(&mark(0), "one").is_empty());
        assert_eq!(
            held.resources(&mark(sessions - 1), "one").len(),
            RESOURCES_MAX
        );
    }
}
