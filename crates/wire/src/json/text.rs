//! Strings: the fast way past one, and the true text of one that is read.
//!
//! Invariant: `unescape` gives text or nothing; half a surrogate pair and invalid UTF-8 are nothing.
//! Not here: where a string starts (`scan`).

use std::borrow::Cow;

use memchr::memchr2;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
/// Strings this short are not worth the call of a wide search.
const SHORT_WORDS: usize = 2;

/// Whether no byte is a control character, so that no string in here can hold one.
pub(super) fn is_clean(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |least, &byte| least.min(byte)) >= 0x20
}

/// How many bytes from the start of `bytes` are neither quote, backslash nor control character.
/// `clean`: there is no control character to look for.
#[inline]
pub(super) fn plain_run(bytes: &[u8], clean: bool) -> usize {
    let mut rest = bytes;
    for _ in 0..SHORT_WORDS {
        let Some((word, after)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let hits = special_bits(u64::from_le_bytes(*word));
        if hits != 0 {
            return bytes.len() - rest.len() + (hits.trailing_zeros() / 8) as usize;
        }
        rest = after;
    }
    let before = bytes.len() - rest.len();
    let length = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let run = rest.get(..length).unwrap_or(rest);
    if clean || is_clean(run) {
        return before + length;
    }
    before + run.iter().position(|&byte| byte < 0x20).unwrap_or(length)
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
