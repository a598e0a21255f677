//! The engine over real sockets.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod abort;
mod calls;
mod client;
mod faults;
mod fixed;
mod limits;
mod logprobs;
mod machine;
mod options;
mod pages;
mod parameters;
mod streams;
mod structured;
mod timing_clocks;
mod tokens;
