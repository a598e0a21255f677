//! Numbers and literals that end within eight bytes, as nearly all do: read by arithmetic on one word.
//!
//! The counts of a usage object take a quarter fewer instructions than with a loop over their digits.
//! Invariant: what is given is a whole token by the grammar, with a byte after it. `None` says nothing.
//! Not here: longer ones (`token`).

const EACH: u64 = 0x0101_0101_0101_0101;

/// The eight bytes at this place, the first one lowest; zeros beyond the end. `None` where there is no byte.
#[inline(always)]
pub(super) fn word_at(text: &[u8], at: usize) -> Option<u64> {
    let rest = text.get(at..)?;
    match rest.first_chunk() {
        Some(bytes) => Some(u64::from_le_bytes(*bytes)),
        None => last_word(rest),
    }
}

#[cold]
fn last_word(rest: &[u8]) -> Option<u64> {
    let mut bytes = rest.iter().rev();
    let last = u64::from(*bytes.next()?);
    Some(bytes.fold(last, |word, byte| word << 8 | u64::from(*byte)))
}

/// The length of a literal or of a number of plain digits.
#[inline]
pub(super) fn short_length(word: u64) -> Option<usize> {
    const NULL: u64 = u32::from_le_bytes(*b"null") as u64;
    const TRUE: u64 = u32::from_le_bytes(*b"true") as u64;
    const FALSE: u64 = u64::from_le_bytes(*b"false\0\0\0");
    match digits(word) {
        0 if word & 0xffff_ffff == NULL || word & 0xffff_ffff == TRUE => Some(4),
        0 if word & 0xff_ffff_ffff == FALSE => Some(5),
        length => is_number(word, length).then_some(length),
    }
}

/// A number of plain digits, and its length.
#[inline]
pub(super) fn short_count(word: u64) -> Option<(u32, usize)> {
    let length = digits(word);
    if !is_number(word, length) {
        return None;
    }
    // The digits' values, the last one highest and zeros before the first; then pairs, and pairs of pairs.
    let each = (word ^ (EACH * 0x30)) << (64 - 8 * length);
    let pairs = (each * 10 + (each >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let count = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    Some((count as u32, length))
}

/// How many digits there are before anything else, of these eight bytes.
#[inline]
pub(super) fn digits(word: u64) -> usize {
    // A digit becomes 0 to 9, and what is more than 9 sets its byte's highest bit.
    let moved = word ^ (EACH * 0x30);
    let others = (((moved & (EACH * 0x7f)) + EACH * 0x76) | moved) & (EACH * 0x80);
    others.trailing_zeros() as usize / 8
}

/// Whether so many digits, the first of the word, are a whole number.
#[inline]
fn is_number(word: u64, digits: usize) -> bool {
    if !(1..8).contains(&digits) {
        return false;
    }
    let has_idle_zero = digits > 1 && word & 0xff == u64::from(b'0');
    let after = (word >> (8 * digits)) & 0xff;
    let goes_on = matches!(after as u8, 0 | b'.' | b'e' | b'E');
    !has_idle_zero && !goes_on
}
