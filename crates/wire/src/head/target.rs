//! Paths and hosts that read in one way only.
//!
//! A path that one server would decode, merge or cut differently from another is refused, so that what is
//! authorised is what is fetched.
//! Invariant: an accepted path is forwarded as it is; nothing here rewrites.
//! Not here: which paths exist (`dialect`).

use super::{HeadFault, HeadFaultKind};

/// Checks a path (without query): absolute, no empty, `.` or `..` segment, no `;`, no backslash, no fragment,
/// and no escape that hides a control character, `%`, `/`, `;`, a backslash, or what needs none: letters, digits, `-`, `.`, `_` and `~`, of which RFC 3986
/// (section 6.2.2.2) has the escaped form be the same path.
/// A single trailing `/` is allowed, and an escaped `/` inside the id of a known operation, whose parts are held to the same.
///
/// # Errors
/// `TargetForm` when it does not begin with `/`, otherwise `PathAmbiguous`, `PathDoubled` or `TargetByte`.
pub fn check_path(path: &[u8]) -> Result<(), HeadFault> {
    let Some(rest) = path.strip_prefix(b"/") else {
        return Err(HeadFaultKind::TargetForm.into());
    };
    let (mut seen, mut before) = (0, b'/');
    for &byte in rest {
        seen |= class(byte);
        if byte == b'/' && before == b'/' {
            seen |= DOUBLED;
        }
        before = byte;
    }
    if seen & INVALID != 0 {
        return Err(HeadFaultKind::TargetByte.into());
    }
    if seen & REFUSED != 0 {
        return Err(HeadFaultKind::PathAmbiguous.into());
    }
    if seen & CLOSER_LOOK != 0 {
        look_closer(rest)?;
    }
    if seen & DOUBLED == 0 {
        Ok(())
    } else {
        Err(HeadFaultKind::PathDoubled.into())
    }
}

/// Whether every byte is visible ASCII and there is no fragment.
pub(super) fn is_target(target: &[u8]) -> bool {
    target.iter().fold(0, |seen, &byte| seen | class(byte)) & INVALID == 0
}

/// Not visible ASCII, or the start of a fragment.
const INVALID: u8 = 1;
/// Read differently by different servers, wherever it stands.
const REFUSED: u8 = 2;
/// Fine or not, by what stands around it.
const CLOSER_LOOK: u8 = 4;
/// May stand in a host's name.
const HOST: u8 = 8;
/// An empty segment.
const DOUBLED: u8 = 16;

#[inline]
fn class(byte: u8) -> u8 {
    static CLASSES: [u8; 256] = classes();
    CLASSES.get(usize::from(byte)).copied().unwrap_or(INVALID)
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated when compiling"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        classes[at] = match at as u8 {
            b'#' | 0..=b' ' | 0x7f.. => INVALID,
            b';' | b'\\' => REFUSED,
            b'.' => CLOSER_LOOK | HOST,
            b'%' => CLOSER_LOOK,
            b'-' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => HOST,
            _ => 0,
        };
        at += 1;
    }
    classes
}

#[cold]
fn look_closer(rest: &[u8]) -> Result<(), HeadFault> {
    let id = id_of_operation(rest);
    let id_begins = rest.len() - id.len();
    for (at, _) in rest.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        let digits = rest.get(at + 1..at + 3).unwrap_or_default();
        if at < id_begins || !digits.eq_ignore_ascii_case(SLASH) {
            check_escape(digits)?;
        }
    }
    let mut segments = rest.split(|&b| b == b'/');
    if segments.any(is_dots) || !id.is_empty() && !is_id(id) {
        return Err(HeadFaultKind::PathAmbiguous.into());
    }
    Ok(())
}

/// What a path, without its first `/`, begins with when an id is the rest of it: a model's, which may hold a `/` that SDKs escape.
pub(crate) const ID_BEGINS: &[u8] = b"v1/models/";

/// The id of a known operation that a path names, where it is one segment; else nothing.
fn id_of_operation(rest: &[u8]) -> &[u8] {
    let id = rest.strip_prefix(ID_BEGINS).unwrap_or_default();
    if id.contains(&b'/') { b"" } else { id }
}

/// What stands behind the `%` of an escaped `/`.
const SLASH: &[u8] = b"2f";

fn is_dots(segment: &[u8]) -> bool {
    matches!(segment, b"." | b"..")
}

/// Whether no part between escaped slashes is empty, or dots: whoever decodes it finds the same name below the same path.
fn is_id(mut id: &[u8]) -> bool {
    loop {
        let mut escapes = memchr::memchr_iter(b'%', id);
        let is_slash = |at: &usize| {
            id.get(at + 1..at + 3)
                .is_some_and(|digits| digits.eq_ignore_ascii_case(SLASH))
        };
        let end = escapes.find(is_slash).unwrap_or(id.len());
        let (part, rest) = id.split_at_checked(end).unwrap_or_default();
        if part.is_empty() || is_dots(part) {
            return false;
        }
        match rest.get(1 + SLASH.len()..) {
            Some(after) => id = after,
            None => return true,
        }
    }
}

fn check_escape(digits: &[u8]) -> Result<(), HeadFault> {
    let hex = |b: &u8| char::from(*b).to_digit(16);
    let value = match digits {
        [high, low] => hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low),
        _ => None,
    };
    match value {
        None | Some(0..=0x1f | 0x25 | 0x2f | 0x3b | 0x5c | 0x7f) => {
            Err(HeadFaultKind::PathAmbiguous.into())
        }
        Some(value) => match char::from_u32(value) {
            Some('a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~') => {
                Err(HeadFaultKind::PathAmbiguous.into())
            }
            _ => Ok(()),
        },
    }
}

/// Checks a `Host` value or `:authority`: a name, an IPv4 address or a bracketed IPv6 address, with an optional port.
///
/// # Errors
/// `HostInvalid` for anything else, an empty value and user information included.
pub fn check_authority(host: &[u8]) -> Result<(), HeadFault> {
    let (valid, port) = if let Some(rest) = host.strip_prefix(b"[") {
        let end = rest.iter().position(|&b| b == b']').unwrap_or(rest.len());
        let (address, tail) = rest.split_at_checked(end).unwrap_or_default();
        let valid = !address.is_empty()
            && address
                .iter()
                .all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
        (valid, tail.strip_prefix(b"]"))
    } else {
        let is_host = |byte: &&u8| class(**byte) & HOST != 0;
        let end = host.iter().take_while(is_host).count();
        let (name, tail) = host.split_at_checked(end).unwrap_or_default();
        let valid = !name.is_empty();
        (valid, Some(tail))
    };
    if valid && port.is_some_and(is_port) {
        Ok(())
    } else {
        Err(HeadFaultKind::HostInvalid.into())
    }
}

fn is_port(tail: &[u8]) -> bool {
    match tail {
        [] => true,
        [b':', digits @ ..] => {
            (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// `%41` read as `A`; what is no such triple stays.
#[must_use]
pub fn percent_decoded(name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut rest = bytes.clone();
        let digits = (rest.next().and_then(hex), rest.next().and_then(hex));
        if let (Some(high), Some(low)) = digits {
            out.push(high * 16 + low);
            bytes = rest;
        } else {
            out.push(b);
        }
    }
    out
}

fn hex(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}
