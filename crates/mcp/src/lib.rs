//! The Model Context Protocol as a gate speaks it between clients and servers, of versions with sessions (2025-06-18, 2025-11-25) and
//! without (2026-07-28), and from each of these to the other.
//!
//! A crate for its purity: messages in, bytes out, and nothing waits. On the way of a call an envelope is scanned and spliced, never
//! built anew; a list, which is kept for a while, is taken apart once.
//! Invariant: what is read of a message is what every server reads of it: a member that stands twice, or in another spelling, is refused.
//! Not here: who may see what ([`policy::mcp`]), sockets, clocks and chance (the host).

pub mod arguments;
pub mod bridge;
pub mod catalog;
pub mod challenge;
pub mod client;
pub mod discover;
pub mod envelope;
pub mod events;
pub mod handshake;
pub mod header;
pub mod index;
pub mod listen;
pub mod modern;
pub mod name;
pub mod pin;
pub mod place;
pub mod reply;
pub mod search;
pub mod session;
pub mod target;
pub mod task;
mod tree;
pub mod version;
