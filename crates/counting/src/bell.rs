//! How a thread that sleeps for long hears that there is something to do.
//!
//! While there is work, threads look for it by themselves every few milliseconds, and whoever sends touches nothing but
//! the channel. After a second without any, one of them goes to sleep for as long as nobody rings.
//! Invariant: to ring is one load from a cache line that hardly ever changes, and a system call only where somebody
//! sleeps: for the first event after a quiet second. A ring that is missed (the load may be early) costs at most
//! [`SLEEP`].
//! Not here: what there is to do (`shared_queue`, `reconciler`).

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::thread::{self, Thread};
use std::time::Duration;

/// How often a thread looks for something to do. Waking it would cost the worker a system call; and what comes in this
/// time is counted together, with the tables of the tokenizer near.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// So long without anything to do makes it quiet.
pub(crate) const QUIET_AFTER: Duration = Duration::from_secs(1);
/// How long a thread sleeps at most while it is quiet.
pub(crate) const SLEEP: Duration = Duration::from_secs(1);

const NOBODY: usize = usize::MAX;

/// Rung by those who send, heard by the one thread that sleeps.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Bell {
    sleeper: AtomicUsize,
    threads: Box<[OnceLock<Thread>]>,
}

impl Bell {
    /// One for so many threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            sleeper: AtomicUsize::new(NOBODY),
            threads: (0..threads).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The calling thread is this one of them.
    pub(crate) fn join(&self, index: usize) {
        // It says so once.
        let _again = self.threads[index].set(thread::current());
    }

    /// Something was sent.
    pub(crate) fn ring(&self) {
        if self.has_sleeper() {
            self.wake_sleeper();
        }
    }

    /// Whether somebody sleeps until it is rung for.
    pub(crate) fn has_sleeper(&self) -> bool {
        self.sleeper.load(Relaxed) != NOBODY
    }

    #[cold]
    fn wake_sleeper(&self) {
        let sleeper = self.sleeper.swap(NOBODY, AcqRel);
        self.wake(sleeper);
    }

    /// Wakes a thread, whether it sleeps for long or not.
    pub(crate) fn wake(&self, index: usize) {
        let thread = self.threads.get(index).and_then(OnceLock::get);
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    /// This thread is going to sleep, and will be rung for, unless another one is already. It has to look once more
    /// before it does.
    pub(crate) fn listen(&self, index: usize) -> bool {
        let taken = self
            .sleeper
            .compare_exchange(NOBODY, index, AcqRel, Relaxed);
        taken.is_ok()
    }

    /// This thread is awake.
    pub(crate) fn is_up(&self, index: usize) {
        // It was rung for where that fails.
        let _rung = self
            .sleeper
            .compare_exchange(index, NOBODY, AcqRel, Relaxed);
    }
}
