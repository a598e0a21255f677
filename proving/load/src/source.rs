//! What is sent: profiles, their sessions, and the turns of each, as bytes that nobody reads.
//!
//! Invariant: the parts of a payload are never joined, copied or parsed between here and the socket; a source that holds
//! what is no JSON is sent as it is.
//! Not here: a store of sessions (its owner implements [`Source`]), when a turn is due (`run`).

mod fixed;
mod head;
mod payload;
mod request_id;

use std::time::Duration;

pub use fixed::{Fixed, NoRequests};
pub use head::{Head, HeadError, Secret};
pub use payload::{PARTS, Payload, TooManyParts};
pub use request_id::{IdHeader, NotAnId, RequestId};

/// One request of a session.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// Its body.
    pub payload: Payload,
    /// The head to send it with, where it is not that of its profile.
    pub head: Option<&'a Head>,
    /// Tokens that its answer is expected to have, where that is known.
    pub tokens: Option<u32>,
}

/// Profiles with sessions of turns. All threads read one source, so it answers at once and from memory.
pub trait Source: Send + Sync {
    /// How many sessions a profile has. Profiles are counted as in the plan.
    fn sessions(&self, profile: usize) -> u64;

    /// How many turns a session of a profile has, `session < sessions(profile)`.
    fn turns(&self, profile: usize, session: u64) -> u32;

    /// How long the sender of a turn was seen to wait after the answer before, where that was recorded.
    fn think(&self, _profile: usize, _session: u64, _turn: u32) -> Option<Duration> {
        None
    }

    /// One of them; `None` where there is none, which ends the session.
    fn turn(&self, profile: usize, session: u64, turn: u32) -> Option<Turn<'_>>;
}
