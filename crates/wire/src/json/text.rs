//! Strings: the fast way past one, and the true text of one that is read.
//!
//! Invariant: `unescape` gives text or nothing; half a surrogate pair and invalid UTF-8 are nothing.
//! Not here: where a string starts (`scan`).

use std::borrow::Cow;

use crate::block::{BLOCK_BYTES, special, special_at};

/// Strings this long are worth the call of a search: turns of 1 KiB take 1.69 µs for 32 KiB, and 2.01 from 256.
const LONG_BYTES: usize = 32;

/// Where the first quote, backslash or control character is, at or after `from`.
#[inline]
pub(super) fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut rest = bytes.get(from..).unwrap_or_default();
    let long = rest.len().saturating_sub(LONG_BYTES);
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        let hits = special(block);
        if hits != 0 {
            return bytes.len() - rest.len() + hits.trailing_zeros() as usize;
        }
        rest = after;
        if rest.len() <= long {
            return bytes.len() - rest.len() + special_at(rest);
        }
    }
    while let Some((&byte, after)) = rest.split_first() {
        if is_special(byte) {
            break;
        }
        rest = after;
    }
    bytes.len() - rest.len()
}

/// The quote is one bit away from following the control characters.
#[inline]
const fn is_special(byte: u8) -> bool {
    (byte ^ 2 < 0x21) | (byte == b'\\')
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
