//! HTTP/1.1 as bytes: heads in, framing decided, chunks out, without a socket.
//!
//! Invariant: whatever two servers could read in two ways is a fault, never a choice (RFC 9112 read strictly).
//! Splitting the input anywhere gives the same answer.
//! Not here: reading and writing sockets, timeouts, body limits (`proxy`), and which fields travel on (`policy`).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod chunked;
mod fast_path;
mod fields;
mod framing;
mod limits;
mod marks;
mod parse;
mod path;
mod slow_path;
mod words;
mod write;

pub use crate::head::{HeadFault, HeadFaultKind, ResponseHead};
pub use chunked::{ChunkStep, Chunked};
pub use framing::{Framing, RequestFraming, request_framing, response_framing};
pub use limits::{Limits, MAX_EMPTY_LINES, MAX_FIELDS, Step};
pub use parse::{empty_lines, parse_request, parse_response, parse_response_or_switch};
pub use write::{chunk_prefix, write_field, write_request_line, write_status_line};

/// How many informational (1xx) responses may come before the final one.
pub const INFORMATIONAL_CAP: usize = 8;

#[cfg(test)]
mod tests;
