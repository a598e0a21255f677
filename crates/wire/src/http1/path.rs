//! The fast path through a path that holds nothing to be careful about.
//!
//! Invariant: what is accepted here is accepted by `check_path`, and is ASCII. `None` says nothing.
//! Not here: what is wrong with a path, and paths with dots, escapes or other unusual bytes (`head::target`).

use super::words::{Classes, classes};
use crate::block::BLOCK_BYTES;

/// The path that a text begins with and a space ends, if it is of letters, digits, hyphens, underscores and
/// single slashes.
pub(super) fn plain_path(text: &[u8]) -> Option<&str> {
    let (mut at, mut slash_before) = (0, 0);
    loop {
        let block = text.get(at..)?.first_chunk()?;
        let Classes { words, slashes } = classes(block);
        let len = (!(words | slashes)).trailing_zeros();
        if slashes & (slashes << 1 | slash_before) & !(u32::MAX << len) != 0 {
            return None;
        }
        at += len as usize;
        if len < BLOCK_BITS {
            break;
        }
        slash_before = slashes >> (BLOCK_BITS - 1);
    }
    let good = text.first() == Some(&b'/') && text.get(at) == Some(&b' ');
    #[expect(
        unsafe_code,
        reason = "a second look at 20 bytes takes 130 instructions"
    )]
    // SAFETY: each byte before `at` was found to be of a class that holds ASCII alone.
    good.then(|| unsafe { str::from_utf8_unchecked(text.get(..at).unwrap_or_default()) })
}

#[expect(clippy::cast_possible_truncation, reason = "sixteen")]
const BLOCK_BITS: u32 = BLOCK_BYTES as u32;

#[cfg(test)]
mod tests;
