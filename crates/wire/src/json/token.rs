//! Whole tokens, for a reader that has all of one before it.
//!
//! Invariant: a token that is given is one by the grammar; anything else, a cut one included, is left to
//! the reader that goes byte by byte (`scan`).
//! Not here: what stands between tokens (`skip`).

use super::capture::Kind;
use super::text::plain_end;
use crate::block::{BLOCK_BYTES, special, special_or_high};

/// Where a string ends whose first byte after the quote is at `from`: the place after its closing quote.
///
/// # Errors
/// The place to go on byte by byte, still inside: the chunk's end, or what needs a closer look.
#[inline(always)]
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
    long_string_end(chunk, from)
}

#[inline(never)]
fn long_string_end(chunk: &[u8], from: usize) -> Result<usize, usize> {
    let mut at = from;
    loop {
        at = plain_end(chunk, at);
        match chunk.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += escape_length(chunk, at).ok_or(at)?,
            _ => return Err(at),
        }
    }
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

#[inline]
fn escape_length(chunk: &[u8], at: usize) -> Option<usize> {
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
    let length = match rest {
        [b'n', b'u', b'l', b'l', ..] | [b't', b'r', b'u', b'e', ..] => 4,
        [b'f', b'a', b'l', b's', b'e', ..] => 5,
        _ => number_length(rest)?,
    };
    Some(from + length)
}

#[inline]
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
