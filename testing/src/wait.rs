//! Waiting for what happens elsewhere: in a thread, a process, a file.
//!
//! A test names the event that it waits for. How long that may take is no part of what it asserts: a machine may stand
//! still for seconds. That something took *at least* so long can be asserted, since no machine breaks it.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest wait for an event that must come: also what reads and receives of tests wait at most.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `is_so`.
///
/// # Panics
///
/// Names `what` where it is not so within [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    found(what, || is_so().then_some(()));
}

/// Waits until `look` finds something, and gives that.
///
/// # Panics
///
/// Names `what` where nothing is found within [`PATIENCE`].
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "not within {} s: {what}",
            PATIENCE.as_secs()
        );
        sleep(LOOK);
    }
}

/// Lets time pass in which something must *not* happen, where no event could say that it never will.
/// What a test asserts afterwards must hold however long this takes.
pub fn nothing_happens_for(time: Duration) {
    sleep(time);
}

/// The pause between two writes of a peer that is slow on purpose: it is at least so long.
pub fn pace(pause: Duration) {
    sleep(pause);
}

/// When something began, for what must take *at least* so long. An upper bound would be the machine's to break.
#[derive(Debug, Clone, Copy)]
pub struct Began(Instant);

impl Began {
    /// This moment. Taken before what is waited for can begin.
    #[must_use]
    pub fn now() -> Self {
        Self(Instant::now())
    }

    /// Asserts that at least `time` has passed.
    ///
    /// # Panics
    ///
    /// Where less has.
    #[track_caller]
    pub fn took_at_least(self, time: Duration) {
        let passed = self.0.elapsed();
        assert!(passed >= time, "{passed:?}, and {time:?} is the least");
    }

    /// Whether at least `time` has passed: an end for what a test does over and over.
    #[must_use]
    pub fn is_over(self, time: Duration) -> bool {
        self.0.elapsed() >= time
    }

    /// What has passed, to be printed. No test compares it.
    #[must_use]
    pub fn shown(self) -> String {
        format!("{:?}", self.0.elapsed())
    }
}
