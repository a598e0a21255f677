//! What an experiment decides, without a socket or a clock: who asks what and when, statistics over what was seen,
//! the order in which subjects are measured, and the verdict on who was the limit.
//!
//! Reason to exist: purity. Every answer here is a function of its arguments.
//! Not here: sending requests (`load`), processes and files (`prove`).

pub mod arrivals;
pub mod block;
pub mod campaign;
pub mod certificate;
pub mod lanes;
pub mod random;
pub mod slo;
pub mod statistics;
pub mod telemetry;
pub mod workload;

mod limit;
mod order;

pub use limit::{Busy, Limit};
pub use order::interleave;
