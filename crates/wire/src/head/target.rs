//! Paths and hosts that read in one way only.
//!
//! A path that one server would decode, merge or cut differently from another is refused, so that what is
//! authorised is what is fetched.
//! Invariant: an accepted path is forwarded as it is; nothing here rewrites.
//! Not here: which paths exist (`policy`).

use super::{HeadFault, HeadFaultKind};

/// Checks a path (without query): absolute, no empty, `.` or `..` segment, no `;`, no backslash, no fragment,
/// and no escape that hides a control character, `%`, `.`, `/`, `;` or a backslash.
/// A single trailing `/` is allowed.
///
/// # Errors
/// `TargetForm` when it does not begin with `/`, otherwise `PathAmbiguous` or `TargetByte`.
pub fn check_path(path: &[u8]) -> Result<(), HeadFault> {
    let Some(rest) = path.strip_prefix(b"/") else {
        return Err(HeadFaultKind::TargetForm.into());
    };
    let (mut seen, mut before) = (0, b'/');
    for &byte in rest {
        seen |= class(byte);
        if byte == b'/' && before == b'/' {
            seen |= REFUSED;
        }
        before = byte;
    }
    if seen & INVALID != 0 {
        return Err(HeadFaultKind::TargetByte.into());
    }
    if seen & REFUSED != 0 {
        return Err(HeadFaultKind::PathAmbiguous.into());
    }
    if seen & CLOSER_LOOK == 0 {
        Ok(())
    } else {
        look_closer(rest)
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
    for (at, _) in rest.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        check_escape(rest.get(at + 1..at + 3).unwrap_or_default())?;
    }
    if rest
        .split(|&b| b == b'/')
        .any(|segment| matches!(segment, b"." | b".."))
    {
        return Err(HeadFaultKind::PathAmbiguous.into());
    }
    Ok(())
}

fn check_escape(digits: &[u8]) -> Result<(), HeadFault> {
    let hex = |b: &u8| char::from(*b).to_digit(16);
    let value = match digits {
        [high, low] => hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low),
        _ => None,
    };
    match value {
        None | Some(0..=0x1f | 0x25 | 0x2e | 0x2f | 0x3b | 0x5c | 0x7f) => {
            Err(HeadFaultKind::PathAmbiguous.into())
        }
        Some(_) => Ok(()),
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
