//! Notices that a file of the configuration changed.
//!
//! Polls: a look at a handful of files four times a second costs nothing that can be measured, and
//! sees what notification misses: symbolic links swapped by Kubernetes, files replaced by rename,
//! network file systems.
//! Not here: what a change means (`running`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::running::Running;

/// A rotated secret is in use within a second: a quarter to see it, the rest to spare.
const EVERY: Duration = Duration::from_millis(250);

/// What of a file tells that it changed.
type Mark = Option<(SystemTime, u64, u64, u32)>;

/// Reloads when a watched file changes. Never ends.
pub(crate) async fn watch(running: Arc<Running>) {
    let mut files = running.current().watched;
    let mut marks = look(&files);
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        let now = look(&files);
        if now != marks {
            marks = now;
            let watched = running.reload();
            if watched != files {
                files = watched;
                marks = look(&files);
            }
        }
    }
}

fn look(files: &[PathBuf]) -> Vec<Mark> {
    use std::os::unix::fs::MetadataExt;
    let mark = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        // Who may read it counts too.
        let (inode, mode) = (found.ino(), found.mode());
        Some((found.modified().ok()?, inode, found.len(), mode))
    };
    files.iter().map(mark).collect()
}
