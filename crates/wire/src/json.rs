//! Reads a JSON body once, as it arrives, for the few members that somebody asked for.
//!
//! The whole document is checked against the grammar; no tree is built and nothing is re-serialised.
//! Invariant: the answer, faults and their offsets included, is the same for every way to cut the body
//! into chunks, and memory is bounded by what the interests may capture.
//! Not here: what the members mean (`call`, `usage`), edits (`call::Splice`).

mod capture;
mod elements;
mod fault;
mod fold;
mod interest;
mod joint;
mod keep;
mod marks;
mod nest;
mod note;
mod reader;
mod scan;
mod short;
mod skip;
mod state;
mod text;
mod token;

pub use capture::{Found, Kind, Member};
pub use elements::Elements;
pub use fault::{JsonFault, JsonFaultKind};
pub use fold::{Spelling, is_spelling};
pub use interest::{Interest, Interests, Repeat, Want};
pub use reader::Reader;
pub use scan::Scanner;
pub use text::unescape;
pub(crate) use token::{after_blanks, may_be_whole};

/// Containers may nest this deep; the next opening bracket is a fault.
pub const DEPTH_LIMIT: u32 = 128;
/// A captured string may hold this many raw bytes between its quotes.
pub const STRING_LIMIT_BYTES: usize = 4096;
/// A captured number may hold this many bytes.
pub const NUMBER_LIMIT_BYTES: usize = 64;

#[cfg(test)]
mod tests;
