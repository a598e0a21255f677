//! Decides everything the gate does with an exchange, and does none of it.
//!
//! Exists for *purity*: no socket, clock, lock, log or environment. Time and randomness are
//! arguments; what the world must supply is asked for. The host (`proxy`) waits and copies.
//! Invariant: an exchange that was admitted settles its reservation exactly once, and leaves
//! exactly one [`record::Record`].
//! Not here: bytes and framing (`wire`), what a person writes (`config`), metric names
//! (`telemetry`).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod address;
pub mod admin;
pub mod attempt;
pub mod attribution;
pub mod authority;
pub mod authorizer;
pub mod balancing;
pub mod batch_store;
pub mod batches;
pub mod billing;
pub mod budget;
pub mod budget_reservation;
pub mod caller;
pub mod client;
pub mod clock;
pub mod cookie;
pub mod counting;
pub mod credential;
pub mod disconnect;
pub mod estimate;
pub mod exchange;
pub mod failure;
pub mod fast_hash;
pub mod front;
pub mod glitch;
pub mod host_pattern;
pub mod hosted;
pub mod id;
pub mod identity;
pub mod levels;
pub mod limit;
pub mod listener;
pub mod login;
pub mod mcp;
pub mod mirror;
pub mod model;
pub mod operation;
pub mod picker;
pub mod plain;
pub mod price;
pub mod priced;
pub mod prompt_counter;
pub mod query;
pub mod realtime;
pub mod record;
pub mod refusal;
pub mod request_id;
pub mod responses;
pub mod retry;
pub mod revision;
pub mod route;
pub mod secret;
pub mod shard;
pub mod snapshot;
pub mod subject;
pub mod tokens;
pub mod trace;
pub mod unread;
pub mod usage_ledger;
pub mod web;
pub mod whose;

pub use wire;

#[cfg(test)]
extern crate self as policy;
#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;
