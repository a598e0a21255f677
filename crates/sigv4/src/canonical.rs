//! A request in the one form in which both ends sign it.
//!
//! Invariant: what two spellings of a request have in common is spelled once: names in order, white space and
//! percent-encoding in one way.

use std::fmt::Write;

/// The form, and the names of the headers in it.
pub(crate) struct Canonical {
    /// It may hold a session's token.
    pub(crate) text: zeroize::Zeroizing<Vec<u8>>,
    pub(crate) names: String,
}

impl Canonical {
    /// Of headers with names in lower case.
    pub(crate) fn of(
        method: &str,
        path: &str,
        query: &str,
        mut headers: Vec<(&[u8], &[u8])>,
        body_hash: &str,
    ) -> Self {
        // A stable order, so that the values of one name stay as they are sent.
        headers.sort_by_key(|(name, _)| *name);
        let mut text = Vec::with_capacity(2048);
        for part in [
            method,
            "\n",
            &self::path(path),
            "\n",
            &self::query(query),
            "\n",
        ] {
            text.extend_from_slice(part.as_bytes());
        }
        let mut names = String::new();
        let mut rest = headers.as_slice();
        while let Some((name, _)) = rest.first() {
            let same = rest.iter().take_while(|(other, _)| other == name).count();
            let (same, after) = rest.split_at(same);
            text.extend_from_slice(name);
            for (index, (_, value)) in same.iter().enumerate() {
                text.push(if index == 0 { b':' } else { b',' });
                trim_into(value, &mut text);
            }
            text.push(b'\n');
            if !names.is_empty() {
                names.push(';');
            }
            names.push_str(&String::from_utf8_lossy(name));
            rest = after;
        }
        for part in ["\n", &names, "\n", body_hash] {
            text.extend_from_slice(part.as_bytes());
        }
        Self {
            text: text.into(),
            names,
        }
    }
}

/// A value without white space around it, and with one space for each run inside of it.
fn trim_into(value: &[u8], out: &mut Vec<u8>) {
    let words = value.split(|b| matches!(b, b' ' | b'\t'));
    for (index, word) in words.filter(|word| !word.is_empty()).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

/// The path without dot segments and empty ones, encoded once more than it is sent.
fn path(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut out = String::with_capacity(path.len() + 8);
    for segment in &kept {
        out.push('/');
        encode(segment.as_bytes(), &mut out);
    }
    if kept.is_empty() || path.ends_with('/') {
        out.push('/');
    }
    out
}

/// Members ordered by name and then by value, each encoded in one way.
fn query(query: &str) -> String {
    let mut members: Vec<(String, String)> = query
        .split('&')
        .filter(|member| !member.is_empty())
        .map(|member| member.split_once('=').unwrap_or((member, "")))
        .map(|(name, value)| (encoded_anew(name), encoded_anew(value)))
        .collect();
    members.sort();
    let members = members
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    members.collect::<Vec<_>>().join("&")
}

fn encoded_anew(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let digits = after.split_at_checked(2).filter(|_| *byte == b'%');
        let coded = digits.and_then(|(digits, after)| Some((coded(digits)?, after)));
        match coded {
            Some((coded, after)) => {
                bytes.push(coded);
                rest = after;
            }
            None => bytes.push(*byte),
        }
    }
    let mut out = String::with_capacity(text.len());
    encode(&bytes, &mut out);
    out
}

fn coded(digits: &[u8]) -> Option<u8> {
    let all_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| all_hex)?;
    u8::from_str_radix(digits, 16).ok()
}

/// Encodes all but letters, digits and `-._~`.
fn encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
}
