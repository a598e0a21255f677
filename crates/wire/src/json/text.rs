//! The true text of a string that is read.
//!
//! Invariant: `unescape` gives text or nothing; half a surrogate pair and invalid UTF-8 are nothing.
//! Not here: where a string starts and ends (`scan`, `marks`).

use std::borrow::Cow;

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
