//! Objects of a cluster, as its API server holds them: watched, kept, and told what a gate says of them.
//!
//! It waits, on a thread of its own, and asks by what `callout` speaks. A kind is listed once and then watched from there; what an
//! object says is not looked at.
//! Invariant: what is kept is bounded. While the API server is away, what was last known stays; what it says is gone is gone. Statuses are written by the one
//! replica that holds the lease, and only where they differ.
//! Not here: what objects come to, and what is said of them (`control`); when that is published (`tollgate`).

mod cluster;
mod events;
mod kinds;
mod lease;
mod object;
mod query;
mod shared;
mod store;
mod time;
mod watcher;
mod writer;

pub use cluster::{Cluster, Started, View};
pub use object::{Key, Object};
pub use shared::{Desired, Event, Said, Saying, Settings};

#[cfg(test)]
mod tests;
