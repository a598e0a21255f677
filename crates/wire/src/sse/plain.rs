//! The short way past events that are plain: one line of data, behind the event's name or without one, and nothing in it that anybody looks
//! for. Most are.
//!
//! One look finds where the line ends, and whether a name of interest may stand in it.
//! Invariant: what it takes it takes as the scanner does that goes by lines; of everything else it says nothing.
//! Not here: events of several lines, with usage or errors (`event`), the scanner (`scan`).

use memchr::{memchr, memchr2};

use super::INSPECT_LIMIT_BYTES;
use super::event::is_untold;
use crate::block::line_without;

/// Plain events, one after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plain<'a> {
    /// How many.
    pub(super) events: u64,
    /// Bytes of their data.
    pub(super) data_bytes: u64,
    /// The last one, with the blank line that ends it.
    pub(super) last: &'a [u8],
}

impl<'a> Plain<'a> {
    /// What a chunk holds, where that is plain events alone, none of which has more than `most` bytes of data.
    #[inline]
    pub(super) fn read(chunk: &'a [u8], most: u64) -> Option<Self> {
        let (mut plain, mut rest) = (Self::default(), chunk);
        while !rest.is_empty() {
            let (name, line) = after_name(rest)?;
            // Such a name could hold what is looked for.
            if memchr(b'"', name).is_some() {
                return None;
            }
            let data = line.strip_prefix(b"data:")?;
            let data = data.strip_prefix(b" ").unwrap_or(data);
            // No end mark.
            if data.first() != Some(&b'{') {
                return None;
            }
            let length = line_without(data, |at| is_of_interest(data.get(at..)))?;
            let end = rest.len() - data.len() + length;
            let (event, after) = rest.split_at_checked(end + 2)?;
            let is_ended = event.ends_with(b"\n\n");
            if !is_ended || length as u64 > most || event.len() > INSPECT_LIMIT_BYTES {
                return None;
            }
            plain.events += 1;
            plain.data_bytes += length as u64;
            (plain.last, rest) = (event, after);
        }
        Some(plain)
    }
}

/// The name of the event that begins here, and what follows its line; all of it where it begins with no name.
#[inline]
fn after_name(event: &[u8]) -> Option<(&[u8], &[u8])> {
    match event.strip_prefix(b"event:") {
        Some(named) => line(named),
        None => Some((b"", event)),
    }
}

/// A line, and what is behind its line feed.
#[inline]
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    // Of a short text, and where the processor has no such look, another one.
    let end = line_without(text, |_| false).or_else(|| memchr2(b'\n', b'\r', text))?;
    let (line, rest) = text.split_at_checked(end)?;
    Some((line, rest.strip_prefix(b"\n")?))
}

/// The data of the event that begins here, where that is one line, behind the event's name or without one; and what follows the event.
#[inline]
pub(super) fn data(event: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_name, from) = after_name(event)?;
    let (data, after) = line(from.strip_prefix(b"data:")?)?;
    let data = data.strip_prefix(b" ").unwrap_or(data);
    Some((data, after.strip_prefix(b"\n")?))
}

/// Whether what begins here is the name of usage that is told, or the word for an error.
#[inline]
fn is_of_interest(from: Option<&[u8]>) -> bool {
    let from = from.unwrap_or_default();
    from.starts_with(b"\"error\"") || from.starts_with(b"\"usage") && !is_untold(from)
}
