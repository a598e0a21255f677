//! A moment from which tests count, for what is told the time instead of asking for it.

use std::time::Instant;

/// Any moment.
pub(crate) fn some_moment() -> Instant {
    Instant::now()
}
