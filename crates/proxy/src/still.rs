//! Time that stands still, for tests that go through real sockets.
//!
//! A paused runtime takes its clock to the next timer whenever nothing else is to be done, and a thread or the kernel may
//! be doing what is waited for.
//! Not here: time that passes at once (`start_paused` alone).

use std::sync::mpsc;

use testing::PATIENCE;

/// Holds the clock of the paused runtime that this is called in, until what it gives is dropped. What waits all the same
/// waits for no ever: the clock goes on after [`PATIENCE`].
pub(crate) fn still() -> mpsc::Sender<()> {
    let (held, over) = mpsc::channel();
    // A runtime's clock does not go on by itself beside a thread that works for it.
    drop(tokio::task::spawn_blocking(move || {
        over.recv_timeout(PATIENCE).is_ok()
    }));
    held
}
