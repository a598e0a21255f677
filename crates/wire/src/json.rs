//! Reads a JSON body once, as it arrives, for the few members that somebody asked for.
//!
//! The whole document is checked against the grammar; no tree is built and nothing is re-serialised.
//! Invariant: the answer, faults and their offsets included, is the same for every way to cut the body
//! into chunks, and memory is bounded by what the interests may capture.
//! Not here: what the members mean (`call`, `usage`), edits (`call::Splice`).

mod capture;
mod container_stack;
mod elements;
mod fault;
mod fold;
mod found;
mod interest;
mod keep;
mod marks;
mod reader;
mod repeat_match;
mod scan;
mod short;
mod skip;
mod state;
mod text;
mod token;

pub use crate::block::as_text;
pub use elements::Elements;
pub use fault::{JsonFault, JsonFaultKind};
pub use fold::{Spelling, is_spelling};
pub use found::{Found, Kind, Member};
pub use interest::{Interest, Interests, Repeat, Want};
pub(crate) use interest::{is_same, split_path};
pub use reader::{Reader, Spot};
pub use scan::Scanner;
pub use text::unescape;
pub use token::is_plain;
pub(crate) use token::{after_blanks, may_be_whole};

/// Containers may nest this deep; the next opening bracket is a fault.
pub const DEPTH_LIMIT: u32 = 128;
/// The same in what a client sends: an answer that repeats its tools and schemas has them a level or two deeper.
pub const REQUEST_DEPTH_LIMIT: u32 = 120;
/// A captured string may hold this many raw bytes between its quotes.
pub const STRING_LIMIT_BYTES: usize = 4096;
/// A captured number may hold this many bytes.
pub const NUMBER_LIMIT_BYTES: usize = 64;

#[cfg(test)]
mod tests;
