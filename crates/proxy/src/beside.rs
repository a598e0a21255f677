//! Work that takes long, done on a thread beside its worker: one such thing at a time for each, so that a worker and what is done beside
//! it share a core as two do.
//!
//! Not here: what is worth it ([`is_long`] says which bodies), who waits for it (`exchange::beside`).

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::stint::STINT_BYTES;

/// How much is done beside a worker at a time.
const AT_A_TIME: usize = 1;

/// The places beside one worker.
#[derive(Debug)]
pub(crate) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

/// Whether a body takes so long to go through that its worker should not.
#[inline]
pub(crate) fn is_long(body: &[Bytes]) -> bool {
    body.iter().map(Bytes::len).sum::<usize>() > STINT_BYTES
}

impl Places {
    /// Has it done when it is its turn; `None` where it panicked. Work that was begun is done to its end, and keeps its place until
    /// then, also where nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.ok()
    }
}

#[cfg(test)]
mod tests;
