//! A text as it may be hidden among bytes: in other letters, in base64 at each of its three places in a group, in hexadecimal
//! digits, percent-encoded, by JSON's escapes.
//!
//! Invariant: what is looked for in base64 are the characters that the text alone decides, whatever stands around it.
//! Not here: where bytes come from (`leak`).

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Under which disguise some bytes hold a text.
pub(super) fn found(bytes: &[u8], text: &[u8]) -> Option<&'static str> {
    if holds(bytes, text) {
        return Some("plain");
    }
    if holds(bytes, &hexadecimal(text)) {
        return Some("hexadecimal");
    }
    if bytes.contains(&b'%') && holds(&decoded(bytes, percent_encoded), text) {
        return Some("percent-encoded");
    }
    if bytes.contains(&b'\\') && holds(&decoded(bytes, escaped), text) {
        return Some("escaped as JSON escapes");
    }
    let alphabets = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
    let mut wanted = alphabets
        .into_iter()
        .flat_map(|alphabet| in_groups(alphabet, text));
    let exactly = |part: Vec<u8>| bytes.windows(part.len()).any(|window| window == part);
    wanted.any(exactly).then_some("base64")
}

/// Whatever the case of letters.
pub(super) fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes
        .windows(wanted.len().max(1))
        .any(|part| part.eq_ignore_ascii_case(wanted))
}

fn hexadecimal(text: &[u8]) -> Vec<u8> {
    let digits = text.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().into_bytes()
}

/// The characters that a text decides at each place in a group of three bytes.
fn in_groups(alphabet: &GeneralPurpose, text: &[u8]) -> Vec<Vec<u8>> {
    let of = |place: usize| {
        let encoded = alphabet.encode([&vec![0; place][..], text].concat());
        // A character has six bits: those that it shares with bytes before or behind are not the text's alone.
        let (from, to) = ((place * 8).div_ceil(6), (place + text.len()) * 8 / 6);
        encoded
            .as_bytes()
            .get(from..to)
            .unwrap_or_default()
            .to_vec()
    };
    (0..3).map(of).filter(|part| !part.is_empty()).collect()
}

/// With each sequence as the byte that it stands for, where one begins there: `at` gives the byte and how many it takes.
fn decoded(bytes: &[u8], at: fn(&[u8]) -> Option<(u8, usize)>) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(&byte) = rest.first() {
        let (decoded, taken) = at(rest).unwrap_or((byte, 1));
        out.push(decoded);
        rest = &rest[taken..];
    }
    out
}

/// `%2D`.
fn percent_encoded(bytes: &[u8]) -> Option<(u8, usize)> {
    let digits = bytes.strip_prefix(b"%")?.get(..2)?;
    Some((
        u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
        3,
    ))
}

/// `\u002d`, or `\/`.
fn escaped(bytes: &[u8]) -> Option<(u8, usize)> {
    let after = bytes.strip_prefix(b"\\")?;
    let Some(digits) = after
        .strip_prefix(b"u00")
        .and_then(|digits| digits.get(..2))
    else {
        return after.first().map(|byte| (*byte, 2));
    };
    Some((
        u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
        6,
    ))
}
