//! Whole tokens, for a reader that has all of one before it.
//!
//! Invariant: a token that is given is one by the grammar; anything else, a cut one included, is left to
//! the reader that goes byte by byte (`scan`).
//! Not here: what stands between tokens (`skip`).

use super::found::Kind;
use super::short::{digits, short_length, word_at};
use crate::block::{BLOCK_BYTES, has_no_special, special, special_or_high};

/// Whether a text may be one whole object.
pub(crate) fn may_be_whole(text: &[u8]) -> bool {
    let last = text.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    last == Some(&b'}')
}

/// Whether a text stands in a string as it is: no quote, backslash or control character is in it.
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    if let Some(has_none) = has_no_special(text) {
        return has_none;
    }
    let (blocks, _) = text.as_chunks::<BLOCK_BYTES>();
    match text.last_chunk::<BLOCK_BYTES>() {
        // With bytes before them that were looked at.
        Some(last) => special(last) == 0 && blocks.iter().all(|block| special(block) == 0),
        None => is_short_plain(text),
    }
}

/// The same of fewer bytes than a block has: some of them stand in it twice.
#[inline]
fn is_short_plain(text: &[u8]) -> bool {
    let wide = |bytes: &[u8; 8]| u128::from(u64::from_le_bytes(*bytes));
    let word = |bytes: &[u8; 4]| u128::from(u32::from_le_bytes(*bytes));
    let block = match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => wide(first) | wide(last) << 64,
        _ => match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => {
                let both = word(first) | word(last) << 32;
                both | both << 64
            }
            _ => {
                return text
                    .iter()
                    .all(|byte| *byte >= b' ' && !matches!(byte, b'"' | b'\\'));
            }
        },
    };
    special(&block.to_le_bytes()) == 0
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

/// The place after the blanks that start at `from`.
#[inline(never)]
pub(crate) fn after_blanks(chunk: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = chunk.get(at) {
        at += 1;
    }
    at
}

/// Bytes of the escape at `at`.
#[inline]
pub(super) fn escape_length(chunk: &[u8], at: usize) -> Option<usize> {
    let byte = *chunk.get(at + 1)?;
    if byte == b'u' {
        let digits = chunk.get(at + 2..at + 6)?;
        return digits.iter().all(u8::is_ascii_hexdigit).then_some(6);
    }
    matches!(byte, b'n' | b'"' | b'\\' | b't' | b'/' | b'r' | b'b' | b'f').then_some(2)
}

/// Where a string of plain ASCII without escapes ends whose first byte after the quote is at `from`. `None` where it
/// is not that.
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

/// Whether these bytes stand at this place.
#[inline(always)]
pub(super) fn stands<const N: usize>(chunk: &[u8], at: usize, wanted: &[u8; N]) -> bool {
    chunk.get(at..).and_then(<[u8]>::first_chunk) == Some(wanted)
}

/// Whether a name, short as a rule, is ASCII.
#[inline]
pub(super) fn is_ascii(name: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    if name.len() <= 16 {
        return match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => {
                (u64::from_le_bytes(*first) | u64::from_le_bytes(*last)) & HIGH == 0
            }
            _ => is_shorter_ascii(name),
        };
    }
    match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) if name.len() <= 32 => {
            let both = u128::from_le_bytes(*first) | u128::from_le_bytes(*last);
            both & (u128::from(HIGH) << 64 | u128::from(HIGH)) == 0
        }
        _ => name.is_ascii(),
    }
}

/// The same of fewer than eight bytes.
#[inline]
fn is_shorter_ascii(name: &[u8]) -> bool {
    const HIGH: u32 = 0x8080_8080;
    match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => {
            (u32::from_le_bytes(*first) | u32::from_le_bytes(*last)) & HIGH == 0
        }
        _ => name.iter().all(u8::is_ascii),
    }
}

/// Where a number or a literal ends that starts at `from`. `None` where it is none, or may go on after
/// the chunk.
#[inline]
pub(super) fn scalar_end(chunk: &[u8], from: usize) -> Option<usize> {
    let length = match short_length(word_at(chunk, from)?) {
        Some(length) => length,
        None => number_length(chunk.get(from..)?)?,
    };
    Some(from + length)
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
    while let Some(word) = word_at(rest, at) {
        let more = digits(word);
        at += more;
        if more < 8 {
            break;
        }
    }
    at
}
