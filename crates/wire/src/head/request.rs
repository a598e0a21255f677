//! The head of a request, whichever protocol it came by.
//!
//! Invariant: a target that was accepted is visible ASCII and its path reads in one way only;
//! `path`, `query` and `target` are slices of the same text.
//! Not here: which fields a request may carry (`http1::request_framing`, `policy`).

use std::sync::Arc;

use super::target::{check_authority, check_path, is_target};
use super::{Head, HeadFault, HeadFaultKind, Known};

/// A request method. The ones that the gate does not serve are `Other`, with their text kept in the head.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the methods")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    #[default]
    Other,
}

impl Method {
    /// The method of this text; methods are case-sensitive.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        match text {
            b"POST" => Self::Post,
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"PUT" => Self::Put,
            b"PATCH" => Self::Patch,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            _ => Self::Other,
        }
    }

    /// Whether a request with this method may have a body. Servers that expect none on the others leave it
    /// in their input, where it is the next request.
    #[must_use]
    pub const fn takes_body(self) -> bool {
        !matches!(self, Self::Get | Self::Head | Self::Delete)
    }
}

/// The protocol version of a message.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0
    H10,
    /// HTTP/1.1
    #[default]
    H11,
    /// HTTP/2
    H2,
}

/// The head of a request. Reusable: `clear` keeps the memory.
#[derive(Debug, Default, Clone)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The protocol version.
    pub version: Version,
    /// The fields.
    pub fields: Head,
    /// The port on which it came, where that is told: of its connection, so that it stays when the rest is forgotten.
    pub port: u16,
    /// The name by which its connection asked for a certificate, where that is told; it stays, too.
    pub tls_name: Option<Arc<str>>,
    other_method: String,
    target: String,
    path_len: usize,
    /// The authority of a target in absolute form; empty otherwise.
    authority: String,
}

impl RequestHead {
    /// An empty head that holds no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything but what is of the connection, and keeps the memory.
    pub fn clear(&mut self) {
        self.method = Method::default();
        self.version = Version::default();
        self.fields.clear();
        self.other_method.clear();
        self.target.clear();
        self.path_len = 0;
        self.authority.clear();
    }

    /// The path: the target up to the first `?`. Empty until a target is set.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.get(..self.path_len).unwrap_or_default()
    }

    /// What follows the first `?`, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.target.get(self.path_len..)?.strip_prefix('?')
    }

    /// The host that the request is for, with its port: of a target in absolute form the target's own, whatever
    /// the `host` field says (RFC 9112, 3.2.2), else the `host` field.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        if self.authority.is_empty() {
            self.fields.get(Known::Host)
        } else {
            Some(self.authority.as_bytes())
        }
    }

    /// Path and query as they arrived.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The method as it arrived; empty until one is set.
    #[must_use]
    pub fn method_text(&self) -> &str {
        match self.method {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Other => &self.other_method,
        }
    }

    /// Sets the method from its text.
    ///
    /// # Errors
    /// The text is not a token.
    pub fn set_method(&mut self, text: &str) -> Result<(), HeadFault> {
        if text.is_empty() || !text.bytes().all(super::is_token) {
            return Err(HeadFaultKind::StartLine.into());
        }
        self.set_valid_method(text);
        Ok(())
    }

    /// Sets the method from a text that a parser has found to be a token.
    pub(crate) fn set_valid_method(&mut self, text: &str) {
        self.method = Method::of(text.as_bytes());
        self.other_method.clear();
        if self.method == Method::Other {
            self.other_method.push_str(text);
        }
    }

    /// Sets the target (path and query), checked. Of a target in absolute form, which HTTP/2 does not know, path
    /// and query are the target, and its authority is kept apart. A refused target is kept for the record as long as it is visible ASCII. The method must be set before: `*` is for OPTIONS alone.
    ///
    /// # Errors
    /// A target that is not a path, holds a byte that is not visible ASCII, or whose path reads in more than one way.
    pub fn set_target(&mut self, target: &str) -> Result<(), HeadFault> {
        self.target.clear();
        self.path_len = 0;
        self.authority.clear();
        if let Some((authority, rest)) = self.absolute(target) {
            if authority.is_empty() {
                return Err(HeadFaultKind::TargetForm.into());
            }
            self.authority.push_str(authority);
            return match rest.as_bytes() {
                [b'/', ..] => self.set_origin(rest),
                _ => self.set_origin(&format!("/{rest}")),
            };
        }
        self.set_origin(target)
    }

    /// Authority and rest of a target in absolute form.
    fn absolute<'t>(&self, target: &'t str) -> Option<(&'t str, &'t str)> {
        if self.version == Version::H2 || target.starts_with('/') {
            return None;
        }
        let (scheme, rest) = target.split_once("://")?;
        let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        is_http.then(|| rest.split_at_checked(end))?
    }

    fn set_origin(&mut self, target: &str) -> Result<(), HeadFault> {
        let bytes = target.as_bytes();
        let path_len = memchr::memchr(b'?', bytes).unwrap_or(bytes.len());
        let (path, query) = bytes.split_at_checked(path_len).unwrap_or_default();
        if !is_target(query) {
            return Err(HeadFaultKind::TargetByte.into());
        }
        let checked = match bytes {
            [b'/', ..] => check_path(path),
            _ if !is_target(path) => Err(HeadFaultKind::TargetByte.into()),
            b"*" if self.method == Method::Options => Ok(()),
            _ if self.method == Method::Other => Err(HeadFaultKind::MethodRefused.into()),
            _ => Err(HeadFaultKind::TargetForm.into()),
        };
        if checked != Err(HeadFaultKind::TargetByte.into()) {
            self.target.push_str(target);
            self.path_len = path_len;
        }
        checked
    }

    /// Sets a target that is a path which was found to be good.
    pub(crate) fn set_good_path(&mut self, path: &str) -> Result<(), HeadFault> {
        debug_assert_eq!(check_path(path.as_bytes()), Ok(()));
        self.target.clear();
        self.target.push_str(path);
        self.path_len = path.len();
        Ok(())
    }

    /// Checks that the request names exactly one well-formed host (HTTP/1.0 may leave it out), and that the
    /// authority of a target in absolute form is well-formed too.
    ///
    /// For HTTP/2 the caller adds `:authority` as the `host` field first.
    ///
    /// # Errors
    /// No host, more than one, or one that is not a name or address with an optional port.
    pub fn check_host(&self) -> Result<(), HeadFault> {
        if !self.authority.is_empty() {
            check_authority(self.authority.as_bytes())?;
        }
        match self.fields.only(Known::Host) {
            Ok(Some(host)) => check_authority(host),
            Ok(None) if self.version == Version::H10 => Ok(()),
            Ok(None) => Err(HeadFaultKind::HostMissing.into()),
            Err(_) => Err(HeadFaultKind::HostRepeated.into()),
        }
    }
}
