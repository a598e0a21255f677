//! What a run is to do.
//!
//! Invariant: every plan ends by time, whatever the peer does.
//! Not here: how (`run`, `user`).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::request::Requests;

/// A run against one address.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to.
    pub target: SocketAddr,
    /// What.
    pub requests: Requests,
    /// The body that every good answer has; another is a failure. `None`: bodies are not looked at.
    pub expects: Option<Bytes>,
    /// When.
    pub arrivals: Arrivals,
    /// Connections open evenly over this time from the start.
    pub ramp: Duration,
    /// Time from the start that is not measured.
    pub warm_up: Duration,
    /// Time that is measured, after the warm-up.
    pub measure: Duration,
    /// No more than so many requests in all; where they are not of an open loop, the run ends with the last of them.
    pub most: Option<u64>,
    /// A request that has no complete answer after this is a `timeout`.
    pub timeout: Duration,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy)]
pub enum Arrivals {
    /// Each user sends, waits for the whole answer, thinks, and sends again.
    Closed {
        /// Users, each with one keep-alive connection.
        users: usize,
        /// Pause between an answer and the next request.
        think: Duration,
    },
    /// A constant rate; latency counts from the moment a request was due.
    Open {
        /// Requests a second.
        per_second: f64,
        /// Connections that may be busy at once; when all are, requests wait and their wait counts.
        connections: usize,
    },
    /// Each of so many streams is opened once and read to its end.
    Hold {
        /// Streams, each on its own connection.
        streams: usize,
    },
}

impl Arrivals {
    /// Connections at most.
    #[must_use]
    pub const fn connections(&self) -> usize {
        match *self {
            Self::Closed { users, .. } => users,
            Self::Open { connections, .. } => connections,
            Self::Hold { streams } => streams,
        }
    }
}
