//! What an experiment decides, without a socket or a clock: statistics over repetitions,
//! the order in which subjects are measured, and the verdict on who was the limit.
//!
//! Reason to exist: purity. Every answer here is a function of its arguments.
//! Not here: sending requests (`load`), processes and files (`prove`).

mod limit;
mod order;
mod spread;

pub use limit::{Busy, Limit};
pub use order::interleave;
pub use spread::Spread;
