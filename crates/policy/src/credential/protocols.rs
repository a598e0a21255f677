//! Keys among the sub-protocols of a WebSocket, where OpenAI's clients in pages put theirs: they can set no header.
//!
//! Invariant: sub-protocols go upstream by a list, and none that carries a key, or says whose account it is, is on it.
//! Not here: credentials in headers and queries (`super`).

use wire::head::{Known, RequestHead};

use crate::refusal::Refusal;

/// Where clients ask for a session of the Realtime API.
pub const REALTIME: &str = "/v1/realtime";
/// What stands before a key that is offered as a sub-protocol.
const KEY: &[u8] = b"openai-insecure-api-key.";
/// What goes upstream: the protocol itself, and which of its versions are tried.
const PROTOCOL: &[u8] = b"realtime";
const VERSION: &[u8] = b"openai-beta.";

fn protocols(head: &RequestHead) -> impl Iterator<Item = &[u8]> {
    let lines = head.fields.of(Known::SecWebsocketProtocol);
    let offered = lines.flat_map(|line| line.split(|b| *b == b','));
    offered.map(<[u8]>::trim_ascii)
}

/// The keys that stand among the sub-protocols that a client offers.
pub(super) fn keys(head: &RequestHead) -> impl Iterator<Item = &[u8]> {
    protocols(head).filter_map(|offered| offered.strip_prefix(KEY))
}

/// The sub-protocols that go upstream: those on the list, and nothing that carries a key or says whose account it is.
#[must_use]
pub fn offered(head: &RequestHead) -> Vec<u8> {
    let passes = |offered: &&[u8]| *offered == PROTOCOL || offered.starts_with(VERSION);
    let kept: Vec<&[u8]> = protocols(head).filter(passes).collect();
    kept.join(&b", "[..])
}

/// Refuses a request for a session that brings several keys.
///
/// # Errors
/// [`Refusal::ConflictingCredentials`].
pub(crate) fn check(head: &RequestHead) -> Result<(), Refusal> {
    match super::brought(head) + keys(head).count() {
        0 | 1 => Ok(()),
        _ => Err(Refusal::ConflictingCredentials),
    }
}

#[cfg(test)]
mod tests;
