//! What a client's certificate says of its holder: names, and when it ends.
//!
//! It is read once for each connection, after the handshake has verified it, and again of a session that is resumed.
//! Invariant: a certificate has all of its names or none: where one of them cannot be used, or they are more than the
//! bounds, it has none. What has a colon is a URI and what has none a DNS name, so that neither can pose as the other.
//! Not here: whether a certificate is good (`tls`), whose it is (`policy::identity`).

mod der;

use std::sync::Arc;

use policy::caller::PeerCertificate;
use rustls::ServerConnection;
use wire::date::Date;

use self::der::{
    BOOLEAN, CONTEXT_0, CONTEXT_3, GENERALIZED_TIME, INTEGER, OBJECT_ID, OCTET_STRING, Reader,
    UTC_TIME,
};

/// Names that are kept of one certificate.
const NAMES_MAX: usize = 64;
/// Bytes of one name.
const NAME_BYTES_MAX: usize = 1024;
/// The extension of subject alternative names, 2.5.29.17.
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];
/// Kinds of such names: `dNSName` is `[2]`, `uniformResourceIdentifier` is `[6]`.
const DNS: u8 = 0x82;
const URI: u8 = 0x86;

/// What the client of this session has proven, where it has. `unix_s`: the wall clock.
///
/// # Errors
/// Why the connection must not be served: a certificate that has ended since its session began, or cannot be read.
pub(crate) fn proven(
    session: &ServerConnection,
    unix_s: u64,
) -> Result<Option<Arc<PeerCertificate>>, &'static str> {
    let Some(certificate) = session.peer_certificates().and_then(<[_]>::first) else {
        return Ok(None);
    };
    let (said, unusable) = read(certificate).ok_or("the certificate cannot be read")?;
    if said.until_unix_s <= unix_s {
        return Err("the certificate expired after its session began");
    }
    if let Some(why) = unusable {
        tracing::debug!(why, "a client's certificate names nobody");
    }
    Ok(Some(Arc::new(said)))
}

/// The names of a verified certificate, where all of them can be used.
pub(crate) fn names_of(certificate: &[u8]) -> Vec<Box<str>> {
    read(certificate).map_or_else(Vec::new, |(said, _)| said.names)
}

/// What a verified certificate says, and why it has no names where they are of no use. `None` for what is no
/// certificate.
fn read(certificate: &[u8]) -> Option<(PeerCertificate, Option<&'static str>)> {
    let mut body = Reader::new(certificate).sequence()?.sequence()?;
    let _version = body.take(CONTEXT_0);
    body.take(INTEGER)?;
    let (_algorithm, _issuer) = (body.sequence()?, body.sequence()?);
    let mut validity = body.sequence()?;
    validity.next()?;
    let (kind, text) = validity.next()?;
    let until_unix_s = unix_s(kind, text)?;
    let (_subject, _key) = (body.sequence()?, body.sequence()?);
    let (names, unusable) = match names(body) {
        Ok(names) => (names, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let said = PeerCertificate {
        names,
        until_unix_s,
    };
    Some((said, unusable))
}

/// The names that what follows the key has.
fn names(mut rest: Reader<'_>) -> Result<Vec<Box<str>>, &'static str> {
    let mut found = None;
    while !rest.is_empty() {
        let (tag, content) = rest.next().ok_or("its extensions cannot be read")?;
        if tag != CONTEXT_3 {
            continue;
        }
        let extensions = Reader::new(content).sequence();
        let mut extensions = extensions.ok_or("its extensions cannot be read")?;
        while !extensions.is_empty() {
            let extension = extension(&mut extensions).ok_or("an extension cannot be read")?;
            if extension.0 == ALTERNATIVE_NAMES && found.replace(extension.1).is_some() {
                return Err("it has its names twice");
            }
        }
    }
    found.map_or(Ok(Vec::new()), alternative_names)
}

/// The next extension: its kind and its value.
fn extension<'d>(extensions: &mut Reader<'d>) -> Option<(&'d [u8], &'d [u8])> {
    let mut extension = extensions.sequence()?;
    let kind = extension.take(OBJECT_ID)?;
    // Of critical ones that it does not know rustls takes none.
    let _is_critical = extension.take(BOOLEAN);
    Some((kind, extension.take(OCTET_STRING)?))
}

/// The URIs and DNS names among alternative names, in their order.
fn alternative_names(value: &[u8]) -> Result<Vec<Box<str>>, &'static str> {
    let unreadable = "its names cannot be read";
    let mut all = Reader::new(value).sequence().ok_or(unreadable)?;
    let mut names: Vec<Box<str>> = Vec::new();
    let (mut uris, mut has_spiffe_id) = (0, false);
    while !all.is_empty() {
        let name = match all.next().ok_or(unreadable)? {
            (URI, text) => {
                uris += 1;
                let uri = uri(text).ok_or("one of its URIs is none")?;
                has_spiffe_id |= is_spiffe_id(&uri);
                uri
            }
            (DNS, text) => dns_name(text).ok_or("one of its DNS names is none")?,
            _ => continue,
        };
        if names.len() == NAMES_MAX {
            return Err("it has more than 64 names");
        }
        names.push(name);
    }
    if has_spiffe_id && uris > 1 {
        return Err("it has a SPIFFE ID and another URI: which one counts would be a choice");
    }
    Ok(names)
}

/// An absolute URI: a scheme, a colon, and characters that can be seen.
fn uri(text: &[u8]) -> Option<Box<str>> {
    let scheme = text.split(|byte| *byte == b':').next()?;
    let is_scheme = scheme.first()?.is_ascii_alphabetic()
        && scheme.len() < text.len()
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let is_visible = text.iter().all(u8::is_ascii_graphic);
    let is_uri = is_scheme && is_visible && text.len() <= NAME_BYTES_MAX;
    is_uri.then(|| std::str::from_utf8(text).ok().map(Box::from))?
}

fn is_spiffe_id(uri: &str) -> bool {
    uri.get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("spiffe:"))
}

/// A DNS name in lower case, as letters of either case are the same there. A wildcard stands for itself alone.
fn dns_name(text: &[u8]) -> Option<Box<str>> {
    let is_of_it = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._*".contains(byte);
    let is_name = !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.iter().all(is_of_it);
    let text = is_name.then(|| std::str::from_utf8(text).ok())??;
    Some(text.to_ascii_lowercase().into())
}

/// Seconds since the Unix epoch of a time as certificates write it: `[YY]YYMMDDhhmmssZ`. What lies before 1970 is 0.
fn unix_s(kind: u8, text: &[u8]) -> Option<u64> {
    let (digits, year_digits) = match (kind, text) {
        (UTC_TIME, [digits @ .., b'Z']) if digits.len() == 12 => (digits, 2),
        (GENERALIZED_TIME, [digits @ .., b'Z']) if digits.len() == 14 => (digits, 4),
        _ => return None,
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_u32, |number, digit| {
            let digit = char::from(*digit).to_digit(10)?;
            Some(number * 10 + digit)
        })
    };
    let (year, rest) = digits.split_at_checked(year_digits)?;
    let year = match (year_digits, number(year)?) {
        (2, year @ 50..) => year + 1900,
        (2, year) => year + 2000,
        (_, year) => year,
    };
    let mut parts = rest.chunks_exact(2).map(number);
    let mut part =
        |most: std::ops::RangeInclusive<u32>| parts.next()?.filter(|number| most.contains(number));
    let (month, day) = (part(1..=12)?, part(1..=31)?);
    let (hour, minute, second) = (part(0..=23)?, part(0..=59)?, part(0..=59)?);
    let date = Date {
        year: year.into(),
        month,
        day,
    };
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some(u64::try_from(date.to_day() * 86_400 + seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests;
