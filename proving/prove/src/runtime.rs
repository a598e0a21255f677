//! What runs the tasks of one thread.
//!
//! Not here: the load's own threads (`load::run`).

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime, Runtime};

/// One for the calling thread, or one that it is handed to.
pub(crate) fn make() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// One of the calling thread alone, whose tasks stay on it.
pub(crate) fn make_local() -> io::Result<LocalRuntime> {
    let local = LocalOptions::default();
    Builder::new_current_thread()
        .enable_all()
        .build_local(local)
}
