//! What a route of plain HTTP does with its calls and answers beside passing them on: fields, host and path that it changes, and calls
//! that it sends elsewhere.
//!
//! Invariant: what is sent upstream is made of what was authorized and of what the configuration says, and of nothing else.
//! Not here: which call a route takes (`super`), which fields pass at all (`super::fields`).

use std::borrow::Cow;

use wire::head::RequestHead;

use super::PathPattern;
use super::cors::RouteCors;
use crate::id::BackendId;
use crate::listener::Listeners;
use crate::refusal::Refusal;
use crate::web::without_port;

/// What a route does.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Actions {
    /// What becomes of fields of the request.
    pub request: FieldEdits,
    /// What becomes of fields of the answer.
    pub response: FieldEdits,
    /// The host that the upstream is told.
    pub host: UpstreamHost,
    /// The path that goes upstream.
    pub path: Option<PathEdit>,
    /// Where calls are sent instead.
    pub redirect: Option<Redirect>,
    /// Who sees copies of calls.
    pub mirrors: Vec<Mirror>,
    /// Which pages may read its answers; where there is none that is the gate's to say, or the service's.
    pub cors: Option<RouteCors>,
}

/// Who sees copies of calls, whose answers nobody reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Where they go.
    pub backend: BackendId,
    /// Of a million calls so many.
    pub millionths: u32,
}

/// Changes of header fields, names in lower case.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FieldEdits {
    /// They take the place of what is there.
    pub set: Vec<(Box<str>, Box<str>)>,
    /// They stand beside what is there.
    pub add: Vec<(Box<str>, Box<str>)>,
    /// They are taken out.
    pub remove: Vec<Box<str>>,
}

/// The host that an upstream is told.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum UpstreamHost {
    /// That of its address.
    #[default]
    Own,
    /// The one that the client named.
    Client,
    /// This one.
    Fixed(Box<str>),
}

/// Another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEdit {
    /// This one.
    Whole(Box<str>),
    /// The beginning, without a slash at its end, and what takes its place.
    Prefix {
        /// What the route's rule wants.
        from: Box<str>,
        /// What it becomes.
        to: Box<str>,
    },
}

/// Where calls are sent instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// `http` or `https`; as it came unless said.
    pub scheme: Option<Box<str>>,
    /// The host; the call's unless said.
    pub host: Option<Box<str>>,
    /// The port; that of the scheme, or the one on which the call came, unless said.
    pub port: Option<u16>,
    /// The path; the call's unless said.
    pub path: Option<PathEdit>,
}

impl FieldEdits {
    /// Whether a field that is there stays.
    #[must_use]
    pub fn keeps(&self, name: &[u8]) -> bool {
        let is = |of: &str| of.as_bytes() == name;
        !self.set.iter().any(|(of, _)| is(of)) && !self.remove.iter().any(|of| is(of))
    }

    /// Fields that are put behind those that stay.
    pub fn put(&self, mut put: impl FnMut(&[u8], &[u8])) {
        for (name, value) in self.set.iter().chain(&self.add) {
            put(name.as_bytes(), value.as_bytes());
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PathEdit {
    /// What a path becomes.
    #[must_use]
    pub fn of<'p>(&'p self, path: &'p str) -> Cow<'p, str> {
        match self {
            Self::Whole(path) => Cow::Borrowed(path),
            Self::Prefix { from, to } => {
                let Some(rest) = path.strip_prefix(&**from) else {
                    return Cow::Borrowed(path);
                };
                let to = to.trim_end_matches('/');
                match (to, rest) {
                    ("", "") => Cow::Borrowed("/"),
                    (to, "") => Cow::Borrowed(to),
                    ("", rest) if rest.starts_with('/') => Cow::Borrowed(rest),
                    (to, rest) if rest.starts_with('/') => Cow::Owned([to, rest].concat()),
                    (to, rest) => Cow::Owned([to, "/", rest].concat()),
                }
            }
        }
    }

    /// One that replaces the beginning that a pattern wants; none of a pattern without one.
    #[must_use]
    pub fn prefix(of: &PathPattern, to: &str) -> Option<Self> {
        match of {
            PathPattern::Below(from) => Some(Self::Prefix {
                from: from.clone(),
                to: to.into(),
            }),
            PathPattern::Exact(from) => Some(Self::Prefix {
                from: from.clone(),
                to: to.into(),
            }),
            PathPattern::Template(_) => None,
        }
    }
}

impl Redirect {
    /// What a client is told.
    #[must_use]
    pub fn refusal(&self, head: &RequestHead, listeners: &Listeners) -> Refusal {
        let path = match &self.path {
            Some(edit) => edit.of(head.path()),
            None => Cow::Borrowed(head.path()),
        };
        let query = head
            .query()
            .map_or_else(String::new, |query| format!("?{query}"));
        let came = listeners.of(head).map(|(_, listener)| listener);
        let is_tls = came.is_some_and(|listener| listener.is_tls);
        let scheme = match &self.scheme {
            Some(scheme) => scheme,
            None if is_tls => "https",
            None => "http",
        };
        let own = head.authority().and_then(without_port);
        let own = own.and_then(|own| std::str::from_utf8(own).ok());
        let host = self.host.as_deref().or(own);
        // An address of IPv6 stands in brackets, which its own word was without.
        let host = host.map(|host| match host.contains(':') && !host.starts_with('[') {
            true => Cow::Owned(format!("[{host}]")),
            false => Cow::Borrowed(host),
        });
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = match (self.port, &self.scheme) {
            (Some(port), _) => port,
            (None, Some(_)) => usual,
            (None, None) if head.port > 0 => head.port,
            (None, None) => usual,
        };
        let location = match host {
            None => format!("{path}{query}"),
            Some(host) if port == usual => format!("{scheme}://{host}{path}{query}"),
            Some(host) => format!("{scheme}://{host}:{port}{path}{query}"),
        };
        Refusal::Redirected {
            status: self.status,
            location: location.into(),
        }
    }
}

#[cfg(test)]
mod tests;
