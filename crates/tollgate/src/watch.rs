//! Looks for changes of the files of the configuration.
//!
//! Not here: how a change is seen (`marks`), what it means (`running`).

use std::sync::Arc;
use std::time::Duration;

use crate::running::Running;

/// A rotated secret is in use within a second: a quarter to see it, the rest to spare.
const EVERY: Duration = Duration::from_millis(250);

/// Reloads when a watched file changes. Never ends.
pub(crate) async fn watch(running: Arc<Running>) {
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        let looking = Arc::clone(&running);
        // Beside the admin endpoint, which answers probes meanwhile.
        drop(tokio::task::spawn_blocking(move || looking.look()).await);
    }
}
