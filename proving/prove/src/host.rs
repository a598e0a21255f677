//! This machine and what we start on it.
//!
//! Invariant: nothing is ended that was not started here.
//! Not here: what the processes are asked to do (`race`).

pub(crate) mod descriptors;
pub(crate) mod guard;
pub(crate) mod machine;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod quota;
pub(crate) mod ready;
pub(crate) mod stalls;
pub(crate) mod usage;

/// A runtime for the calling thread, or one that it is handed to.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// A runtime of the calling thread alone, whose tasks stay on it.
pub(crate) fn local_runtime() -> std::io::Result<tokio::runtime::LocalRuntime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
}
