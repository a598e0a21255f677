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
    let mut segment: &[u8] = rest;
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'/' => {
                let len = segment.len() - (rest.len() - at);
                refuse_segment(segment.get(..len).unwrap_or_default(), true)?;
                segment = rest.get(at + 1..).unwrap_or_default();
            }
            b'%' => check_escape(rest.get(at + 1..at + 3).unwrap_or_default())?,
            b';' | b'\\' => return Err(HeadFaultKind::PathAmbiguous.into()),
            b'#' | 0..=b' ' | 0x7f.. => return Err(HeadFaultKind::TargetByte.into()),
            _ => {}
        }
        at += 1;
    }
    refuse_segment(segment, false)
}

fn refuse_segment(segment: &[u8], inner: bool) -> Result<(), HeadFault> {
    if matches!(segment, b"." | b"..") || (inner && segment.is_empty()) {
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
        let end = host.iter().position(|&b| b == b':').unwrap_or(host.len());
        let (name, tail) = host.split_at_checked(end).unwrap_or_default();
        let valid = !name.is_empty()
            && name
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'));
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
