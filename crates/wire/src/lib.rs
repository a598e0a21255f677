//! What bytes mean: HTTP/1.1 heads and framing, JSON bodies, event streams, batches of calls, Amazon's among them, frames of gRPC, usage reports, dates.
//!
//! A crate of its own because everything here is a function of the bytes given: no socket, no clock, no
//! thread, no log. So the gate, the policy, the fuzz targets and any other host read a message with the very
//! same code, and all of it can be tested, cut anywhere, at the speed of memory.
//! Invariant: no input panics, no answer depends on how the input was cut, and memory is bounded by the
//! limits that each module names.
//! Not here: moving bytes (`proxy`), deciding anything about them (`policy`), HTTP/2 but for where its frames
//! begin (the host).

pub mod answer;
pub mod batch;
mod block;
pub mod call;
pub mod date;
pub mod dialect;
pub mod encoding;
pub mod eventstream;
pub mod filter;
pub mod grpc;
pub mod head;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod json;
pub mod meter;
pub mod proxy_protocol;
pub mod sse;
pub mod unseen;
pub mod usage;
pub mod websocket;
