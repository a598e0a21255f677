//! Bounds: of what a client may send, of connections to an address, of the phases of an attempt.
//!
//! Not here: limits and budgets of callers ([`crate::limit`], [`crate::budget`]).

use std::time::Duration;

/// Bounds on what a client may send, and how slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Request body, bytes.
    pub body_bytes: u64,
    /// Request head, bytes.
    pub head_bytes: usize,
    /// Request header fields.
    pub head_fields: usize,
    /// From the first byte of a head to its end.
    pub head_time: Duration,
    /// Silence in the middle of a request body.
    pub body_idle: Duration,
    /// From the first byte of a request to the end of its body.
    pub body_time: Duration,
    /// Bytes of request bodies that one worker keeps at one time.
    pub bodies_bytes: usize,
    /// A client that takes nothing of a response for so long is gone.
    pub write_stall: Duration,
    /// A kept-alive connection with no request on it.
    pub keep_alive: Duration,
    /// Connections per worker.
    pub connections: usize,
    /// Connections per worker of one address, or of one /64 of IPv6.
    pub source_connections: usize,
    /// Streams of one HTTP/2 connection at one time.
    pub streams: u32,
    /// Answers per worker that are read on without a client.
    pub reads_to_end: usize,
    /// How long the addresses of an upstream's name are used after they were last found.
    pub address_age: Duration,
    /// Keys and users whose limits are kept apart at one time, and as many of which budgets are; of the process's
    /// first snapshot.
    pub subjects: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            head_bytes: 64 << 10,
            head_fields: 100,
            head_time: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            body_time: Duration::from_secs(5 * 60),
            bodies_bytes: 256 << 20,
            write_stall: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            connections: 50_000,
            source_connections: 10_000,
            streams: 100,
            reads_to_end: 100,
            address_age: Duration::from_secs(600),
            subjects: 1 << 16,
        }
    }
}

/// How long each phase of an attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To an established connection, TLS included.
    pub connect: Duration,
    /// From the request sent to the response head.
    pub first_byte: Duration,
    /// Silence in the middle of a response.
    pub idle: Duration,
}

/// Bounds of one worker's connections to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBounds {
    /// Open at one time, busy or idle.
    pub connections: usize,
    /// Kept without a call.
    pub idle: usize,
    /// How long one is kept so.
    pub idle_time: Duration,
    /// Calls on one HTTP/2 connection at one time.
    pub streams: usize,
}

impl Default for PoolBounds {
    fn default() -> Self {
        Self {
            connections: 20_000,
            idle: 1024,
            idle_time: Duration::from_secs(55),
            // Servers commonly allow as many.
            streams: 100,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            // Official SDKs wait ten minutes, and reasoning models may think for as long without a byte.
            first_byte: Duration::from_secs(900),
            idle: Duration::from_secs(900),
        }
    }
}
