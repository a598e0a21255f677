//! The waits of `testing` for futures.
//!
//! Invariant: no future is waited for longer than [`testing::PATIENCE`], and nothing is decided by how long it took.
//! Not here: what is awaited.

use std::future::Future;
use std::time::Duration;

use testing::PATIENCE;

/// What the future comes to.
///
/// # Panics
///
/// Names `what` where it has not ended within [`PATIENCE`].
pub(crate) async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(PATIENCE, future).await;
    ended.unwrap_or_else(|_| panic!("not within {} s: {what}", PATIENCE.as_secs()))
}

/// The pause of a peer that is slow on purpose: it is at least so long.
pub(crate) async fn pace(pause: Duration) {
    tokio::time::sleep(pause).await;
}
