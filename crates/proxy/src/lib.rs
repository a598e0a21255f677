//! The native host: waits and copies, and decides nothing.
//!
//! Exists for *weight*: sockets, TLS and timers live here and in no other crate of the gate's core.
//! One worker thread per core owns a listener, its connections, its upstream pools and its share of
//! policy's memory; workers meet only in the snapshot they are handed and in shared buckets.
//! Invariant: every exchange that begins here ends in exactly one `Sink::exchange`, whatever
//! happens to its connection or its task.
//! Not here: decisions (`policy`), metrics and logs (`telemetry`), files and signals (`tollgate`).

mod acceptor;
mod batches;
mod beside;
mod buffer;
mod call;
pub mod catalogue;
mod client;
mod clock;
mod connections;
mod cors;
mod date;
mod deadline;
mod decoding;
mod downstream;
mod exchange;
pub mod gate;
mod listener;
#[cfg(test)]
mod memory;
mod os;
mod peer_certificate;
pub mod quota;
mod reply;
mod runtime_config;
#[cfg(test)]
mod sim;
mod socket;
mod source;
#[cfg(test)]
mod still;
mod stint;
mod stream;
mod timers;
pub mod tls;
mod tool_failure;
mod tool_memory;
mod tools;
mod turns;
mod upstream;
mod wheel;
mod why;
mod worker;
mod worker_snapshot;

pub use clock::monotonic;
pub use mcp::{arguments, search as tool_search};
pub use tools::TOOL_CALLER;
