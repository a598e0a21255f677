//! The end of a thread that takes messages.
//!
//! Not here: what it does with those that it has not taken yet.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Sends the thread its last message and waits for its end; after `within` it is left behind.
pub(crate) fn close<M>(
    thread: &Mutex<Option<JoinHandle<()>>>,
    queue: &SyncSender<M>,
    last: impl Fn() -> M,
    within: Duration,
) {
    let mut slot = thread.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(thread) = slot.take() else { return };
    let until = Instant::now() + within;
    let mut asked = false;
    while Instant::now() < until && !thread.is_finished() {
        asked = asked || !matches!(queue.try_send(last()), Err(TrySendError::Full(_)));
        thread::sleep(Duration::from_millis(1));
    }
    if thread.is_finished() && thread.join().is_err() {
        debug_assert!(false, "a thread of telemetry panicked");
    }
}
