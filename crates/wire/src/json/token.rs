//! Whole tokens, for a reader that has all of one before it.
//!
//! Invariant: a token that is given is one by the grammar; anything else, a cut one included, is left to
//! the reader that goes byte by byte (`scan`).
//! Not here: what stands between tokens (`skip`).

use super::capture::Kind;
use super::marks::Marks;
use crate::block::{BLOCK_BYTES, special, special_or_high};

/// Where a string ends whose first byte after the quote is at `from`, for a reader of one string.
///
/// # Errors
/// As [`Marks::string_end`].
#[inline]
pub(super) fn string_end(chunk: &[u8], from: usize) -> Result<usize, usize> {
    if let Some(block) = chunk
        .get(from..)
        .and_then(<[u8]>::first_chunk::<BLOCK_BYTES>)
    {
        let hits = special(block);
        if hits != 0 {
            let at = from + hits.trailing_zeros() as usize;
            if chunk.get(at) == Some(&b'"') {
                return Ok(at + 1);
            }
        }
    }
    Marks::new().string_end(chunk, from)
}

/// The next byte that is not blank, with `at` moved to it.
#[inline(always)]
pub(super) fn next_byte(chunk: &[u8], at: &mut usize) -> Option<u8> {
    let byte = *chunk.get(*at)?;
    if byte > b' ' {
        return Some(byte);
    }
    *at = after_blanks(chunk, *at);
    chunk.get(*at).copied()
}

#[inline(never)]
fn after_blanks(chunk: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = chunk.get(at) {
        at += 1;
    }
    at
}

/// Bytes of the escape at `at`.
#[inline]
pub(super) fn escape_length(chunk: &[u8], at: usize) -> Option<usize> {
    match chunk.get(at + 1)? {
        b'n' | b'"' | b'\\' | b't' | b'/' | b'r' | b'b' | b'f' => Some(2),
        b'u' => {
            let digits = chunk.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// The same for a string of plain ASCII without escapes. `None` where it is not that.
#[inline]
pub(super) fn plain_key_end(chunk: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(block) = chunk.get(at..).and_then(<[u8]>::first_chunk::<BLOCK_BYTES>) {
        let hits = special_or_high(block);
        if hits != 0 {
            at += hits.trailing_zeros() as usize;
            return (chunk.get(at) == Some(&b'"')).then_some(at + 1);
        }
        at += BLOCK_BYTES;
    }
    loop {
        match chunk.get(at)? {
            b'"' => return Some(at + 1),
            b' '..=b'[' | b']'..=0x7f => at += 1,
            _ => return None,
        }
    }
}

/// The kind of the value that starts with this byte.
#[inline(always)]
pub(super) fn kind_of(first: u8) -> Option<Kind> {
    match first {
        b'"' => Some(Kind::String),
        b'{' => Some(Kind::Object),
        b'[' => Some(Kind::Array),
        b'-' | b'0'..=b'9' => Some(Kind::Number),
        b't' => Some(Kind::True),
        b'f' => Some(Kind::False),
        b'n' => Some(Kind::Null),
        _ => None,
    }
}

/// Where a number or a literal ends that starts at `from`. `None` where it is none, or may go on after
/// the chunk.
#[inline]
pub(super) fn scalar_end(chunk: &[u8], from: usize) -> Option<usize> {
    let rest = chunk.get(from..)?;
    if let Some(start) = rest.first_chunk()
        && let Some(length) = short_length(u64::from_le_bytes(*start))
    {
        return Some(from + length);
    }
    let length = match rest {
        [b'n', b'u', b'l', b'l', ..] | [b't', b'r', b'u', b'e', ..] => 4,
        [b'f', b'a', b'l', b's', b'e', ..] => 5,
        _ => number_length(rest)?,
    };
    Some(from + length)
}

/// The length of a literal, or of a number of plain digits, that ends within these eight bytes, the first one
/// lowest. `None` says nothing.
#[inline]
fn short_length(start: u64) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const NULL: u64 = u32::from_le_bytes(*b"null") as u64;
    const TRUE: u64 = u32::from_le_bytes(*b"true") as u64;
    const FALSE: u64 = u64::from_le_bytes(*b"false\0\0\0");
    // A digit becomes 0 to 9, and what is more than 9 sets its byte's highest bit.
    let moved = start ^ (EACH * 0x30);
    let others = (((moved & (EACH * 0x7f)) + EACH * 0x76) | moved) & (EACH * 0x80);
    let digits = others.trailing_zeros() as usize / 8;
    match digits {
        0 if start & 0xffff_ffff == NULL || start & 0xffff_ffff == TRUE => Some(4),
        0 if start & 0xff_ffff_ffff == FALSE => Some(5),
        0 | 8 => None,
        _ => {
            let has_lead = digits > 1 && moved & 0xff == 0;
            let goes_on = matches!((start >> (digits * 8)) as u8, b'.' | b'e' | b'E');
            (!has_lead && !goes_on).then_some(digits)
        }
    }
}

#[inline(never)]
fn number_length(rest: &[u8]) -> Option<usize> {
    let mut at = usize::from(rest.first() == Some(&b'-'));
    match rest.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at = digits_end(rest, at),
        _ => return None,
    }
    if rest.get(at)? == &b'.' {
        let start = at + 1;
        at = digits_end(rest, start);
        if at == start {
            return None;
        }
    }
    if matches!(rest.get(at)?, b'e' | b'E') {
        at += 1;
        at += usize::from(matches!(rest.get(at)?, b'+' | b'-'));
        let start = at;
        at = digits_end(rest, start);
        if at == start {
            return None;
        }
    }
    (at < rest.len()).then_some(at)
}

#[inline]
fn digits_end(rest: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b'0'..=b'9') = rest.get(at) {
        at += 1;
    }
    at
}
