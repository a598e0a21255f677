//! An address of the web, read once.
//!
//! Invariant: `http` or `https`, with a host; no user, no fragment, nothing that two readers could take for two hosts.
//! Not here: which addresses its host may have (`address`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

/// The longest that is read.
const URL_BYTES_MAX: usize = 8192;
/// The longest host, as DNS has it.
const HOST_BYTES_MAX: usize = 253;

/// `http[s]://host[:port]/path[?query]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Url {
    origin: Origin,
    target: Arc<str>,
}

/// Where a URL leads: all that a connection is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// A name in lower case, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Host {
    Name(Arc<str>),
    Address(IpAddr),
}

/// Why a text is no URL for this. The text is not repeated: a query can hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Neither `http` nor `https`.
    #[error("the URL does not begin with http:// or https://")]
    Scheme,
    /// It names a user or a password.
    #[error("the URL holds a user or a password before its host; give the credential by itself")]
    User,
    /// It has a fragment, which no server ever sees.
    #[error("the URL has a fragment (#…), which is never sent")]
    Fragment,
    /// No host, or one that is neither a name nor an address in its usual form.
    #[error("the URL's host is neither a name nor an address as it is usually written")]
    Host,
    /// No port from 1 to 65535 after its colon.
    #[error("the URL's port is not a number from 1 to 65535")]
    Port,
    /// A character that has to be written as %XX, or `..` in its path.
    #[error("the URL's path or query holds a space, a `..`, or what must be written as %XX")]
    Path,
    /// Longer than a URL may be.
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    Long,
}

impl Url {
    /// Reads one.
    ///
    /// # Errors
    /// [`UrlFault`], which says what is wrong and repeats nothing.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlFault::Long);
        }
        let (is_tls, rest) = scheme(text).ok_or(UrlFault::Scheme)?;
        if rest.contains('#') {
            return Err(UrlFault::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = host_and_port(authority)?;
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let is_rooted = target.starts_with('/');
        let target = if is_rooted {
            target.to_owned()
        } else {
            format!("/{target}")
        };
        check_target(&target)?;
        let origin = Origin { is_tls, host, port };
        Ok(Self {
            origin,
            target: target.into(),
        })
    }

    /// Whether it is spoken to over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.origin.is_tls
    }

    /// Path and query, as a request names them.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// `host[:port]`, as a request names it.
    #[must_use]
    pub fn authority(&self) -> String {
        self.origin.authority()
    }

    /// All of it, as a browser is sent there.
    pub(crate) fn to_text(&self) -> String {
        let origin = &self.origin;
        format!(
            "{}://{}{}",
            origin.scheme(),
            origin.authority(),
            self.target
        )
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Another path (and query) at the same place.
    ///
    /// # Errors
    /// [`UrlFault::Path`] when it does not begin with `/` or holds what a request line cannot.
    pub fn at(&self, target: &str) -> Result<Self, UrlFault> {
        check_target(target)?;
        Ok(Self {
            origin: self.origin.clone(),
            target: target.into(),
        })
    }
}

impl FromStr for Url {
    type Err = UrlFault;

    fn from_str(text: &str) -> Result<Self, UrlFault> {
        Self::parse(text)
    }
}

impl Origin {
    pub(crate) fn authority(&self) -> String {
        let usual = if self.is_tls { 443 } else { 80 };
        match (&self.host, self.port) {
            (host, port) if port == usual => host.to_string(),
            (host, port) => format!("{host}:{port}"),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn scheme(text: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.eq_ignore_ascii_case("https") {
        Some((true, rest))
    } else {
        scheme.eq_ignore_ascii_case("http").then_some((false, rest))
    }
}

fn host_and_port(authority: &str) -> Result<(Host, Option<u16>), UrlFault> {
    if authority.contains('@') {
        return Err(UrlFault::User);
    }
    let (host, after) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(UrlFault::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_| UrlFault::Host)?;
        (Host::Address(address.into()), after)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        let (host, after) = authority.split_at(end);
        (name(host)?, after)
    };
    let port = match after.strip_prefix(':') {
        None if after.is_empty() => None,
        None => return Err(UrlFault::Host),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            let port: u16 = digits.parse().map_err(|_| UrlFault::Port)?;
            Some(port).filter(|port| *port != 0)
        }
        Some(_) => None,
    };
    if port.is_none() && !after.is_empty() {
        return Err(UrlFault::Port);
    }
    Ok((host, port))
}

/// What ends in a number is an address of four, or nothing: `0x7f.1` and `2130706433` are addresses to some readers.
fn name(host: &str) -> Result<Host, UrlFault> {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let labels = host.strip_suffix('.').unwrap_or(host);
    let last = labels.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    let is_bad = |label: &str| label.is_empty() || label.len() > 63;
    if host.len() > HOST_BYTES_MAX
        || !host.bytes().all(known)
        || labels.split('.').any(is_bad)
        || is_number
    {
        return Err(UrlFault::Host);
    }
    Ok(Host::Name(host.to_ascii_lowercase().into()))
}

fn check_target(target: &str) -> Result<(), UrlFault> {
    let is_known = |b: u8| b.is_ascii_graphic() && !matches!(b, b'#' | b'\\' | b'"' | b'<' | b'>');
    let path = target.split('?').next().unwrap_or_default();
    let is_plain = target.starts_with('/') && target.bytes().all(is_known);
    if !is_plain || path.split('/').any(|part| part == "..") {
        return Err(UrlFault::Path);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
