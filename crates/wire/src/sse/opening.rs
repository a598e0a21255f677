//! Whether what begins so is a stream of events, for an answer whose head does not say so.
//!
//! Invariant: what is no stream is never taken for one: JSON, a page and text begin otherwise than a field that events have.
//! Not here: reading the stream (`scan`).

use super::scan::BYTE_ORDER_MARK;

/// So many bytes say it: what is longer begins with more blank lines than any stream does.
pub const OPENING_BYTES: usize = 256;

/// Names of the fields that an event may begin with.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Whether a stream of events begins with these bytes; `None` where more of them must come to say.
#[must_use]
pub fn begins_events(begun: &[u8]) -> Option<bool> {
    if begun.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(begun) {
        return None;
    }
    let begun = begun.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begun);
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let Some(first) = begun.iter().position(|byte| !is_line_end(byte)) else {
        return if begun.len() < OPENING_BYTES {
            None
        } else {
            Some(false)
        };
    };
    let line = begun.get(first..).unwrap_or_default();
    // A comment, as some providers send while a model thinks.
    if line.starts_with(b":") {
        return Some(true);
    }
    let mut is_open = false;
    for field in FIELDS {
        match line.strip_prefix(field) {
            Some([b':' | b'\r' | b'\n', ..]) => return Some(true),
            Some([]) => is_open = true,
            Some(_) => {}
            None => is_open |= field.starts_with(line),
        }
    }
    if is_open { None } else { Some(false) }
}
