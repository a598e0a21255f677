//! A load client for HTTP/1.1 that costs less than anything it measures.
//!
//! Request bytes are built once; one OS thread with one current-thread runtime drives all
//! connections; responses are read into one shared buffer and only framed, never kept.
//! Closed loop: users that ask again when answered. Open loop: a constant rate, with latency
//! counted from the intended send time, so that a stalled subject cannot hide its queue.
//! Hold: many streams opened at a pace and read to their end.
//!
//! Reason to exist: sharing (`race` now, replay later) and weight: nothing here knows a gateway.
//! Invariant: everything is bounded by time, by the number of connections and by memory a connection.
//! Not here: processes, machines, figures about a subject (`prove`); statistics over runs (`experiment`).

mod connection;
mod cpu;
mod expected;
mod fetch;
mod observations;
mod pace;
mod plan;
mod request;
mod response;
mod run;
mod sse;
mod user;

pub use cpu::thread_cpu;
pub use fetch::{FetchError, Fetched, Piece, fetch};
pub use observations::{Failure, Observations, Quantiles};
pub use plan::{Arrivals, Plan};
pub use request::{Request, Requests};
pub use response::{Malformed, Parser, Progress};
pub use run::{LoadError, Running, start};
pub use sse::EventCounter;
