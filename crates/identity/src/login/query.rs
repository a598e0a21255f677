//! Queries: what a callback brings, and what a browser is sent to the provider with.
//!
//! Invariant: a member that stands twice is refused, and never chosen from.

use super::fault::LoginFault;

/// Longest query of a callback, bytes; the bound of a request's head is near it.
const QUERY_BYTES_MAX: usize = 8192;

/// The members of a callback, decoded. Others are of no interest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Callback {
    pub(super) state: Option<Vec<u8>>,
    pub(super) code: Option<Vec<u8>>,
    pub(super) iss: Option<Vec<u8>>,
    pub(super) error: Option<Vec<u8>>,
    pub(super) description: Option<Vec<u8>>,
}

impl Callback {
    pub(super) fn read(query: &[u8]) -> Result<Self, LoginFault> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(LoginFault::Query);
        }
        let mut read = Self::default();
        for pair in query.split(|byte| *byte == b'&') {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let name = decoded(parts.next().unwrap_or_default())?;
            let place = match &*name {
                b"state" => &mut read.state,
                b"code" => &mut read.code,
                b"iss" => &mut read.iss,
                b"error" => &mut read.error,
                b"error_description" => &mut read.description,
                _ => continue,
            };
            let value = decoded(parts.next().unwrap_or_default())?;
            if place.replace(value).is_some() {
                return Err(LoginFault::Query);
            }
        }
        if read.code.is_some() && read.error.is_some() {
            return Err(LoginFault::Query);
        }
        Ok(read)
    }
}

/// A name or value as `application/x-www-form-urlencoded` has it.
pub(super) fn decoded(text: &[u8]) -> Result<Vec<u8>, LoginFault> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || {
                    let digit = char::from(*bytes.next()?).to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let pair = digit().and_then(|high| Some((high << 4) | digit()?));
                pair.ok_or(LoginFault::Query)?
            }
            _ => *byte,
        });
    }
    Ok(plain)
}

/// A text as a member of a query has it.
#[must_use]
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut to, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            to.push_str(&format!("%{byte:02X}"));
        }
        to
    })
}

/// A URL with these members in its query, after those that it has.
pub(super) fn added(url: &str, members: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    let between = match url.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{url}{between}{}", pairs.join("&"))
}
