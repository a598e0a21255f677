//! One thing that is done again and again in the background, and sooner where somebody asks for it.
//!
//! Invariant: one turn runs at a time, and all who ask meanwhile wait for its end.
//! Not here: what is done, and when the next turn is due (`jwks`, `token`).

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

pub(crate) struct Turns {
    state: Mutex<State>,
    wanted: Notify,
    ended: watch::Sender<()>,
}

struct State {
    /// A turn runs, or is about to.
    is_running: bool,
    /// Somebody asked for the one that runs.
    was_asked: bool,
    /// When the last one that somebody asked for ended.
    asked_end: Option<Instant>,
}

/// Waits for the end of a turn.
pub(crate) struct Joined {
    ended: watch::Receiver<()>,
    ran_before: bool,
}

impl Turns {
    /// The first turn is about to begin.
    pub(crate) fn new() -> Self {
        let state = State {
            is_running: true,
            was_asked: false,
            asked_end: None,
        };
        Self {
            state: Mutex::new(state),
            wanted: Notify::new(),
            ended: watch::Sender::new(()),
        }
    }

    /// Takes turns for ever. Each says how long after it the next is due.
    pub(crate) async fn take<F>(&self, mut turn: impl FnMut() -> F)
    where
        F: Future<Output = Duration>,
    {
        loop {
            let next_after = turn().await;
            let end = Instant::now();
            {
                let mut state = self.state();
                state.is_running = false;
                if std::mem::take(&mut state.was_asked) {
                    state.asked_end = Some(end);
                }
                // Who joins after this waits for the next end.
                self.ended.send_replace(());
            }
            loop {
                tokio::select! {
                    () = sleep_until(end + next_after) => break,
                    // One that was taken up already may still be told of.
                    () = self.wanted.notified() => if self.state().is_running {
                        break;
                    },
                }
            }
            self.state().is_running = true;
        }
    }

    /// Joins the turn that runs, or begins one; none where the last that was begun so ended less than `every` ago.
    pub(crate) fn join(&self, every: Duration) -> Option<Joined> {
        let mut state = self.state();
        let joined = Joined {
            ended: self.ended.subscribe(),
            ran_before: state.is_running,
        };
        if !state.is_running {
            if state.asked_end.is_some_and(|end| end.elapsed() < every) {
                return None;
            }
            state.is_running = true;
            state.was_asked = true;
            self.wanted.notify_one();
        }
        Some(joined)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Joined {
    /// Whether the turn ran already when it was joined: what it asked may be older than what led here.
    pub(crate) const fn ran_before(&self) -> bool {
        self.ran_before
    }

    /// Waits for it. It does not end where the turns are taken no more, so that a bound is needed around it.
    pub(crate) async fn end(mut self) {
        if self.ended.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// After so many failures in a row: 1 s, 2 s, 4 s, … up to a minute.
pub(crate) fn back_off(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(6);
    Duration::from_secs(1 << doublings).min(Duration::from_secs(60))
}
