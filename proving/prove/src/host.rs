//! This machine and what we start on it.
//!
//! Invariant: nothing is ended that was not started here.
//! Not here: what the processes are asked to do (`race`).

pub(crate) mod descriptors;
pub(crate) mod guard;
pub(crate) mod machine;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod quota;
pub(crate) mod ready;
pub(crate) mod stalls;
pub(crate) mod usage;
