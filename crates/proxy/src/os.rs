//! What sockets are asked for that operating systems have each in their own way.
//!
//! Invariant: both twins do the same, or say that they cannot; Linux's is the quick one. The feature `portable` builds
//! Linux with the other, so that it is tried where the tests run.
//! Not here: what every Unix has alike (`socket`, `listener`).

#[cfg(all(target_os = "linux", any(test, not(feature = "portable"))))]
mod linux;
#[cfg(any(test, feature = "portable", not(target_os = "linux")))]
mod portable;
#[cfg(all(test, target_os = "linux"))]
mod tests;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use linux::{QUIET, accept, limit_unsent, unacknowledged};
#[cfg(any(feature = "portable", not(target_os = "linux")))]
pub(crate) use portable::{QUIET, accept, limit_unsent, unacknowledged};
