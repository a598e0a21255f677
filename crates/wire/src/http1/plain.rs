//! The short way through a head that is whole and plainly good: one pass, each byte looked at once.
//!
//! Invariant: what is accepted here is accepted by `parse`, with the same fields. `None` says nothing: the
//! head may be cut, bad, or just unusual.
//! Not here: what is wrong with a head (`parse`).

use crate::block::{BLOCK_BYTES, colons, controls};
use crate::head::{Head, Known, Method, is_token};

/// The parts of a request line.
pub(super) struct RequestLine<'a> {
    pub(super) method: Method,
    pub(super) target: &'a [u8],
    /// Where the fields start.
    pub(super) end: usize,
}

/// Reads a line of a usual method, a target without unusual bytes, and `HTTP/1.1`.
pub(super) fn request_line(input: &[u8]) -> Option<RequestLine<'_>> {
    let method_end = run_of(METHOD, input, 0);
    let target_end = run_of(TARGET, input, method_end + 1);
    let method = Method::of(input.get(..method_end)?);
    let target = input.get(method_end + 1..target_end)?;
    let rest = input.get(target_end..)?;
    let good = input.get(method_end) == Some(&b' ')
        && method != Method::Other
        && !target.is_empty()
        && rest.first_chunk::<11>() == Some(b" HTTP/1.1\r\n");
    good.then_some(RequestLine {
        method,
        target,
        end: target_end + 11,
    })
}

/// Reads `HTTP/1.1`, a status and a reason of plain text. Gives the status and where the fields start.
pub(super) fn status_line(input: &[u8]) -> Option<(u16, usize)> {
    let (version, rest) = input.split_first_chunk::<9>()?;
    let [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] = rest else {
        return None;
    };
    let end = run_of(REASON, input, 13);
    let good = version == b"HTTP/1.1 " && input.get(end..end + 2) == Some(b"\r\n");
    let status = [a, b, c]
        .iter()
        .fold(0, |sum, &digit| sum * 10 + u16::from(digit - b'0'));
    good.then_some((status, end + 2))
}

/// Reads at most `most` fields and the empty line after them, and takes them into `out`, which must be
/// empty. Gives where the body starts; after `None`, `out` must be cleared.
pub(super) fn fields(input: &[u8], from: usize, most: usize, out: &mut Head) -> Option<usize> {
    u32::try_from(input.len()).ok()?;
    let mut line = from;
    for _ in 0..=most {
        if input.get(line..)?.first_chunk::<2>() == Some(b"\r\n") {
            let end = line + 2;
            return out.fill(input.get(..end)?).then_some(end);
        }
        let name_end = colon(input, line)?;
        let name = input.get(line..name_end)?;
        let known = Known::of(name);
        let is_new = matches!(known, Known::Other | Known::Amz);
        if is_new && (name.is_empty() || run_of(TOKEN, name, 0) != name.len()) {
            return None;
        }
        let mut start = name_end + 1;
        while let Some(b' ' | b'\t') = input.get(start) {
            start += 1;
        }
        let line_end = value_end(input, start);
        let after = input.get(line_end..)?;
        if after.first_chunk::<2>() != Some(b"\r\n") {
            return None;
        }
        let mut value = input.get(start..line_end)?;
        while let [before @ .., b' ' | b'\t'] = value {
            value = before;
        }
        out.note(known, line, name.len(), start, value.len())?;
        line = line_end + 2;
    }
    None
}

/// Where the first colon is at or after `from`, if a name can be so long.
#[inline]
fn colon(input: &[u8], from: usize) -> Option<usize> {
    let rest = input.get(from..)?;
    let mut blocks = rest;
    while let Some((block, after)) = blocks.split_first_chunk::<BLOCK_BYTES>() {
        let hits = colons(block);
        if hits != 0 {
            return Some(input.len() - blocks.len() + hits.trailing_zeros() as usize);
        }
        blocks = after;
        if rest.len() - blocks.len() > NAME_LIMIT_BYTES {
            return None;
        }
    }
    let last = blocks.iter().position(|&byte| byte == b':')?;
    Some(input.len() - blocks.len() + last)
}

/// Longer names go the long way.
const NAME_LIMIT_BYTES: usize = 256;

/// Where the first byte is that no value holds, at or after `from`.
#[inline]
fn value_end(input: &[u8], from: usize) -> usize {
    let mut rest = input.get(from..).unwrap_or_default();
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        let hits = controls(block);
        if hits != 0 {
            rest = rest
                .get(hits.trailing_zeros() as usize..)
                .unwrap_or_default();
            if let Some((b'\t', after)) = rest.split_first() {
                rest = after;
                continue;
            }
            return input.len() - rest.len();
        }
        rest = after;
    }
    input.len() - rest.len() + run_of(REASON, rest, 0)
}

const TOKEN: u8 = 1;
const TARGET: u8 = 2;
const REASON: u8 = 4;
const METHOD: u8 = 8;

/// Where the first byte is that is not of this class, at or after `from`.
#[inline]
fn run_of(class: u8, input: &[u8], from: usize) -> usize {
    static CLASSES: [u8; 256] = classes();
    let mut at = from;
    while let Some(&byte) = input.get(at)
        && CLASSES
            .get(usize::from(byte))
            .is_some_and(|of| of & class != 0)
    {
        at += 1;
    }
    at
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated when compiling"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        let byte = at as u8;
        if is_token(byte) {
            classes[at] |= TOKEN;
        }
        if byte.is_ascii_uppercase() {
            classes[at] |= METHOD;
        }
        if byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'/' | b'-' | b'.' | b'_' | b'~' | b'?' | b'=' | b'&' | b'%' | b':' | b'*' | b';'
            )
        {
            classes[at] |= TARGET;
        }
        if matches!(byte, b'\t' | b' '..=b'~') {
            classes[at] |= REASON;
        }
        at += 1;
    }
    classes
}
