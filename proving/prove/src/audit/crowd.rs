//! Users at work at once, on one thread of their own, and waiting until they are through.
//!
//! Not here: what a user does (`calls`, `aborts`).

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet, LocalSet};

use super::AuditError;

/// Between two words about how far it is.
const TELL: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// Users at work, and what they saw.
pub(super) struct Crowd<Seen>(JoinHandle<Result<Vec<Seen>, JoinError>>);

impl<Seen: Send + 'static> Crowd<Seen> {
    /// So many users begin; `make` is called on their thread, and what it gives for each of them.
    pub(super) fn start<User, F>(
        users: u16,
        make: impl FnOnce() -> User + Send + 'static,
    ) -> io::Result<Self>
    where
        User: Fn(usize) -> F,
        F: Future<Output = Vec<Seen>> + 'static,
    {
        let runtime = crate::runtime::make()?;
        let at_work = move || {
            LocalSet::new().block_on(&runtime, async {
                let (user, mut all, mut seen) = (make(), JoinSet::new(), Vec::new());
                (0..usize::from(users)).for_each(|n| drop(all.spawn_local(user(n))));
                while let Some(by_one) = all.join_next().await {
                    seen.extend(by_one?);
                }
                Ok(seen)
            })
        };
        let thread = thread::Builder::new().name("users".into()).spawn(at_work)?;
        Ok(Self(thread))
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for all of them; an error where one panicked, whose calls would be nobody's.
    pub(super) fn join(self) -> io::Result<Vec<Seen>> {
        let panicked = |_| io::Error::other("the users' thread panicked");
        let seen = self.0.join().map_err(panicked)?;
        seen.map_err(|cause| io::Error::other(format!("a user: {cause}")))
    }
}

/// Waits until it is done, and tells how far it is; an error once a count has stood still for `patience`.
pub(super) fn watch(
    patience: Duration,
    what: &str,
    count: impl Fn() -> u64,
    is_done: impl Fn(u64) -> bool,
) -> Result<(), AuditError> {
    let (mut last, mut since, mut told) = (0, Instant::now(), Instant::now());
    loop {
        let now = count();
        if is_done(now) {
            return Ok(());
        }
        if now > last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > patience {
            let says = format!("no more {what} for {} s, after {now}", patience.as_secs());
            return Err(AuditError::Gate(says));
        }
        if told.elapsed() > TELL {
            told = Instant::now();
            eprintln!("{now} {what}");
        }
        thread::sleep(LOOK);
    }
}
