//! Reads a stream of server-sent events as it passes: usage, errors, the end mark, and how much went by.
//!
//! Only an event that can hold something of interest is decoded; the others cost two searches.
//! Invariant: what is forwarded and what is read are the same for every way to cut the stream into
//! chunks, and every byte is forwarded as it came unless its whole event is withheld. Rules:
//! - of an event longer than [`INSPECT_LIMIT_BYTES`] the document is read as it passes, and its text is guessed by its beginning;
//! - usage in several events: each later count replaces the earlier one; after `[DONE]` none is read;
//! - an event that the stream's end cuts off is still read, if it is complete JSON.
//!
//! Not here: what usage objects mean (`usage`), writing events.

mod beyond;
mod boundary;
mod data;
mod event;
mod last;
mod long;
mod opening;
mod plain;
mod scan;
mod text;

pub(crate) use beyond::holds_more;
pub use data::{DataReader, Whole};
pub use opening::{OPENING_BYTES, begins_events};
pub use scan::{Mode, Scanner, StreamStats};

/// A longer event is not kept.
pub const INSPECT_LIMIT_BYTES: usize = 1024 * 1024;
/// A longer event is never withheld, so that no more than this waits for its end.
pub const HOLD_LIMIT_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
