//! The PROXY protocol, versions 1 and 2: what a proxy of connections says of the client before its bytes.
//!
//! As HAProxy's `proxy-protocol.txt` has it.
//! Invariant: at most [`HEADER_BYTES`] are looked at; what is not exactly a header is a fault, never skipped.
//! Not here: who may say so (`policy::client`), reading it (`proxy`).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest header that is taken. The longest without extensions has 107 bytes; extensions name hosts and
/// certificates.
pub const HEADER_BYTES: usize = 2048;

const V1: &[u8] = b"PROXY ";
/// Longest line of version 1, its end included.
const V1_BYTES: usize = 107;
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const V2_BYTES: usize = 16;

/// What was found at the beginning of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A header may be there and is not whole yet.
    Partial,
    /// A header of so many bytes, and the client that it names; `None` for a connection of the proxy's own.
    Header(usize, Option<IpAddr>),
}

/// Why a beginning is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Something else begins there.
    #[error("no PROXY protocol header")]
    Missing,
    /// It begins as a header and is none.
    #[error("malformed PROXY protocol header")]
    Malformed,
    /// Longer than [`HEADER_BYTES`].
    #[error("PROXY protocol header longer than {HEADER_BYTES} bytes")]
    TooLong,
}

/// Looks for a header at the beginning of `input`.
///
/// # Errors
/// [`Fault`] when none can begin there.
pub fn find(input: &[u8]) -> Result<Found, Fault> {
    if begins(input, V2) {
        return version_2(input);
    }
    if begins(input, V1) {
        return version_1(input);
    }
    Err(Fault::Missing)
}

/// Whether `input` begins with `mark`, as far as it goes.
fn begins(input: &[u8], mark: &[u8]) -> bool {
    let length = input.len().min(mark.len());
    input.get(..length) == mark.get(..length)
}

fn version_1(input: &[u8]) -> Result<Found, Fault> {
    let input = input.get(..V1_BYTES).unwrap_or(input);
    let Some(end) = memchr::memchr(b'\n', input) else {
        let is_whole = input.len() == V1_BYTES;
        return if is_whole {
            Err(Fault::Malformed)
        } else {
            Ok(Found::Partial)
        };
    };
    let line = input.get(..end).and_then(|line| line.strip_suffix(b"\r"));
    let line = line
        .and_then(|line| std::str::from_utf8(line).ok())
        .ok_or(Fault::Malformed)?;
    let mut words = line.split(' ').skip(1);
    let family = words.next().ok_or(Fault::Malformed)?;
    if family == "UNKNOWN" {
        return Ok(Found::Header(end + 1, None));
    }
    let words = [
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ];
    let [Some(source), Some(destination), Some(from), Some(to), None] = words else {
        return Err(Fault::Malformed);
    };
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse().ok().map(IpAddr::V4),
            "TCP6" => text.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let is_port =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok();
    match (address(source), address(destination)) {
        (Some(source), Some(_)) if is_port(from) && is_port(to) => {
            Ok(Found::Header(end + 1, Some(source.to_canonical())))
        }
        _ => Err(Fault::Malformed),
    }
}

fn version_2(input: &[u8]) -> Result<Found, Fault> {
    let Some((head, rest)) = input.split_first_chunk::<V2_BYTES>() else {
        return Ok(Found::Partial);
    };
    let [.., command, family, high, low] = *head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if V2_BYTES + length > HEADER_BYTES {
        return Err(Fault::TooLong);
    }
    let Some(body) = rest.get(..length) else {
        return Ok(Found::Partial);
    };
    let source = match (command, family) {
        // A connection of the proxy's own, such as a health check.
        (0x20, _) => None,
        (0x21, 0x11) => {
            let (source, _) = body
                .split_first_chunk::<4>()
                .filter(|_| length >= 12)
                .ok_or(Fault::Malformed)?;
            Some(IpAddr::V4(Ipv4Addr::from(*source)))
        }
        (0x21, 0x21) => {
            let (source, _) = body
                .split_first_chunk::<16>()
                .filter(|_| length >= 36)
                .ok_or(Fault::Malformed)?;
            Some(IpAddr::V6(Ipv6Addr::from(*source)).to_canonical())
        }
        // Of no kind that has an address: the proxy's own counts.
        (0x21, 0x00 | 0x31) => None,
        _ => return Err(Fault::Malformed),
    };
    Ok(Found::Header(V2_BYTES + length, source))
}

#[cfg(test)]
mod tests;
