//! Strings: the fast way past one, and the true text of one that is read.
//!
//! Invariant: `unescape` gives text or nothing; half a surrogate pair and invalid UTF-8 are nothing.
//! Not here: where a string starts (`scan`).

use std::borrow::Cow;

const BLOCK: usize = 32;
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// How many bytes from the start of `bytes` are neither quote, backslash nor control character.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    // Most strings are short: look at two words before the wide loop pays.
    for _ in 0..2 {
        let Some((word, after)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let hits = special_bits(u64::from_le_bytes(*word));
        if hits != 0 {
            return bytes.len() - rest.len() + first_hit(hits);
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        if block.iter().fold(false, |hit, &b| hit | is_special(b)) {
            break;
        }
        rest = after;
    }
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let hits = special_bits(u64::from_le_bytes(*word));
        if hits != 0 {
            return bytes.len() - rest.len() + first_hit(hits);
        }
        rest = after;
    }
    bytes.len() - rest.len()
        + rest
            .iter()
            .position(|&b| is_special(b))
            .unwrap_or(rest.len())
}

#[inline]
const fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// The high bit of each special byte; only the lowest one set is exact, which is all we use.
#[inline]
const fn special_bits(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let slash = word ^ (ONES * 0x5c);
    let quote = quote.wrapping_sub(ONES) & !quote;
    let slash = slash.wrapping_sub(ONES) & !slash;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | slash | control) & HIGHS
}

#[inline]
const fn first_hit(hits: u64) -> usize {
    (hits.trailing_zeros() / 8) as usize
}

/// The text of a string's raw bytes (without quotes), whose escapes are already known to be well formed.
///
/// `None`: not UTF-8, half a surrogate pair, or a broken escape.
pub fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    let raw = std::str::from_utf8(raw).ok()?;
    if !raw.contains('\\') {
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
