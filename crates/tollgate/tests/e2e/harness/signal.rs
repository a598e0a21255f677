//! A word between a test and the scripts and threads that it started: now it may go on.
//!
//! Not here: what goes on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use testing::PATIENCE;

/// Given once, and heard by all who wait for it then or later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signal(Arc<(Mutex<bool>, Condvar)>);

impl Signal {
    /// Lets everybody go on.
    pub(crate) fn give(&self) {
        let (is_given, told) = &*self.0;
        *is_given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
    }

    /// Waits until it is given; whether it was, within the patience of tests.
    pub(crate) fn wait(&self) -> bool {
        let (is_given, told) = &*self.0;
        let held = is_given.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = told.wait_timeout_while(held, PATIENCE, |is_given| !*is_given);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
