//! Strings: the fast way past one, and the true text of one that is read.
//!
//! Invariant: `unescape` gives text or nothing; half a surrogate pair and invalid UTF-8 are nothing.
//! Not here: where a string starts (`scan`).

use std::borrow::Cow;

use memchr::memchr2;

/// Eight bytes looked at together, the first one lowest.
pub(super) type Word = u64;

const ONES: Word = Word::from_ne_bytes([1; 8]);
pub(super) const HIGHS: Word = Word::from_ne_bytes([0x80; 8]);

const BLOCK_BYTES: usize = 32;
/// Strings this long are worth the call of a search.
const LONG_BYTES: usize = 4 * BLOCK_BYTES;

/// Where the first quote, backslash or control character is, at or after `from`.
#[inline]
pub(super) fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut rest = bytes.get(from..).unwrap_or_default();
    let long = rest.len().saturating_sub(LONG_BYTES);
    if let Some((word, after)) = rest.split_first_chunk::<8>() {
        let hits = special_bits(Word::from_le_bytes(*word));
        if hits != 0 {
            return from + (hits.trailing_zeros() / 8) as usize;
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        if block
            .iter()
            .fold(false, |hit, &byte| hit | is_special(byte))
        {
            break;
        }
        rest = after;
        if rest.len() <= long {
            rest = rest.get(long_run(rest)..).unwrap_or_default();
            break;
        }
    }
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let hits = special_bits(Word::from_le_bytes(*word));
        if hits != 0 {
            return bytes.len() - rest.len() + (hits.trailing_zeros() / 8) as usize;
        }
        rest = after;
    }
    while let Some((&byte, after)) = rest.split_first() {
        if is_special(byte) {
            break;
        }
        rest = after;
    }
    bytes.len() - rest.len()
}

#[inline(never)]
fn long_run(rest: &[u8]) -> usize {
    let length = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let run = rest.get(..length).unwrap_or(rest);
    if run.iter().fold(u8::MAX, |least, &byte| least.min(byte)) >= b' ' {
        return length;
    }
    run.iter().position(|&byte| byte < b' ').unwrap_or(length)
}

/// The quote is one bit away from following the control characters.
#[inline]
const fn is_special(byte: u8) -> bool {
    (byte ^ 2 < 0x21) | (byte == b'\\')
}

/// The high bit of each special byte; only the lowest one set is exact, which is all we use.
#[inline]
pub(super) const fn special_bits(word: Word) -> Word {
    let low = word ^ (ONES * 2);
    let slash = word ^ (ONES * 0x5c);
    let low = low.wrapping_sub(ONES * 0x21) & !low;
    let slash = slash.wrapping_sub(ONES) & !slash;
    (low | slash) & HIGHS
}

/// The text of a string's raw bytes (without quotes), whose escapes are already known to be well formed.
///
/// `None`: not UTF-8, half a surrogate pair, or a broken escape.
pub fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    let raw = std::str::from_utf8(raw).ok()?;
    if !raw.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut chars = escape.chars();
        text.push(match chars.next()? {
            c @ ('"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (unit, after) = hex_unit(chars.as_str())?;
                chars = after.chars();
                if (0xd800..0xdc00).contains(&unit) {
                    let (low, after) = hex_unit(after.strip_prefix("\\u")?)?;
                    chars = after.chars();
                    char::decode_utf16([unit, low]).next()?.ok()?
                } else {
                    char::from_u32(u32::from(unit))?
                }
            }
            _ => return None,
        });
        rest = chars.as_str();
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

fn hex_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, after) = text.split_at_checked(4)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    Some((u16::from_str_radix(digits, 16).ok()?, after))
}
