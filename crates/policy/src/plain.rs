//! Calls of plain HTTP: which route takes one, by path, method, host and headers.
//!
//! Invariant: nothing under `/v1`, however it is spelt, is a call of plain HTTP, so that no call to a model is taken for one; of the
//! rules of a workload the first in the table's order wins, and that order is their precedence, whatever the order of routes.
//! Not here: which fields pass (`fields`), which backends such a route may use (`config`).

pub mod actions;
pub mod cors;
pub mod fields;

use std::cmp::Reverse;
use std::fmt;

use wire::head::{RequestHead, percent_decoded};

pub use crate::host_pattern::HostPattern;
use crate::id::RouteId;
use crate::listener::{ListenerId, Listeners};
use crate::refusal::Refusal;
use crate::unread::Place;

/// Most rules of one route; more are refused by `config`.
pub const MAX_RULES: usize = 256;

/// Every rule of every route, in the order of their precedence.
#[derive(Debug, Default)]
pub struct Table(Vec<Rule>);

/// What a call has to be for its route to take it. All of it must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The route.
    pub route: RouteId,
    /// The host that it names; `None` for every one.
    pub host: Option<HostPattern>,
    /// Its path.
    pub path: PathPattern,
    /// Its method, one of these; all where there is none. GET stands for HEAD too, and `=GET` for itself alone.
    pub methods: Vec<Box<str>>,
    /// Fields that it has, by name in lower case, and their values.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// Members of the query that it has, by name, and their values.
    pub query: Vec<(Box<str>, Box<str>)>,
    /// The listeners that it is attached to; all where there is none.
    pub listeners: Vec<ListenerId>,
}

/// Which paths a rule is for, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// This one.
    Exact(Box<str>),
    /// With `None` any one segment in its place.
    Template(Vec<Option<Box<str>>>),
    /// This one, without a slash at its end, and all below it; written with `/*` at the end.
    Below(Box<str>),
}

/// Why a text is no pattern of paths, in the words that follow it in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It is no path that a request could have.
    #[error("is no path that a call could have")]
    Path,
    /// It is of the gate's own API.
    #[error("is under /v1, where calls to models are")]
    Api,
    /// A `*` elsewhere than in a last segment of its own.
    #[error("has a `*` elsewhere than as its last segment")]
    Star,
    /// Braces around something else than one whole segment.
    #[error("has braces elsewhere than around a whole segment, or `{{…}}` together with `*`")]
    Braces,
}

impl PathPattern {
    /// Reads one: `/echo`, `/users/{id}` or `/files/*`.
    ///
    /// # Errors
    /// [`PathFault`] when it is none.
    pub fn read(text: &str) -> Result<Self, PathFault> {
        let (path, is_below) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        if path.contains('*') {
            return Err(PathFault::Star);
        }
        let is_braced = path.contains(['{', '}']);
        let checked = format!("{}{}", path, if is_below { "/" } else { "" });
        if checked.contains('?') || wire::head::check_path(checked.as_bytes()).is_err() {
            return Err(PathFault::Path);
        }
        if is_of_the_api(path) {
            return Err(PathFault::Api);
        }
        if !is_braced {
            let path = Box::from(path);
            return Ok(if is_below {
                Self::Below(path)
            } else {
                Self::Exact(path)
            });
        }
        let segments = path.trim_start_matches('/').split('/').map(|segment| {
            let name = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
            match name {
                Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(None),
                None if !segment.contains(['{', '}']) => Ok(Some(Box::from(segment))),
                _ => Err(PathFault::Braces),
            }
        });
        let segments: Vec<_> = segments.collect::<Result<_, _>>()?;
        if is_below || segments.first() == Some(&None) {
            // What stands for any first segment would stand for the API's too.
            return Err(PathFault::Braces);
        }
        Ok(Self::Template(segments))
    }

    /// Whether it takes a path, which is no path of the gate's own API.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *path,
            Self::Below(start) => {
                let rest = path.strip_prefix(&**start);
                rest.is_some_and(|rest| {
                    rest.starts_with('/') || rest.is_empty() && !path.is_empty()
                })
            }
            Self::Template(segments) => {
                let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
                let takes = |segment: &Option<Box<str>>| match (segment, parts.next()) {
                    (_, None) => false,
                    (Some(word), Some(part)) => **word == *part,
                    (None, Some(part)) => !part.is_empty(),
                };
                segments.iter().all(takes) && parts.next().is_none()
            }
        }
    }

    /// The one path that it takes, where it takes no other.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(path) => Some(path),
            Self::Template(_) | Self::Below(_) => None,
        }
    }

    /// How far it is preferred to others: an exact one, then the template of most words, then the longest start.
    pub(crate) fn rank(&self) -> (u8, usize) {
        match self {
            Self::Exact(_) => (2, 0),
            Self::Template(segments) => (1, segments.iter().flatten().count()),
            Self::Below(start) => (0, start.len()),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Below(start) => write!(f, "{start}/*"),
            Self::Template(segments) => segments.iter().try_for_each(|segment| match segment {
                Some(word) => write!(f, "/{word}"),
                None => f.write_str("/{}"),
            }),
        }
    }
}

impl Rule {
    fn takes(&self, head: &RequestHead) -> bool {
        let method = match head.method_text() {
            "HEAD" => "GET",
            method => method,
        };
        let has = |(name, value): &(Box<str>, Box<str>)| {
            let mut values = head.fields.by_name(name.as_bytes());
            values.any(|of| *of == *value.as_bytes())
        };
        let names_host = |pattern: &HostPattern| head.authority().is_some_and(|h| pattern.takes(h));
        let own = head.method_text();
        let is_it = |of: &str| match of.strip_prefix('=') {
            Some(alone) => alone == own,
            None => of == method,
        };
        self.path.takes(head.path())
            && (self.methods.is_empty() || self.methods.iter().any(|of| is_it(of)))
            && self.host.as_ref().is_none_or(names_host)
            && self.headers.iter().all(has)
            && self.query.iter().all(|wanted| has_member(head, wanted))
    }

    /// As Kubernetes' Gateway API orders routes: the most specific host, path, method, then the most headers.
    fn rank(&self) -> impl Ord + use<> {
        let host = self.host.as_ref().map_or((0, 0), HostPattern::rank);
        let (path, has_method) = (self.path.rank(), !self.methods.is_empty());
        let (headers, members) = (self.headers.len(), self.query.len());
        (host, path, has_method, headers, members)
    }
}

/// Whether the first member of this name in the query has this value, both without their percent-encoding.
fn has_member(head: &RequestHead, (name, value): &(Box<str>, Box<str>)) -> bool {
    let decoded = |text: &str| percent_decoded(&text.replace('+', " "));
    let mut members = head.query().unwrap_or_default().split('&');
    members
        .find_map(|member| {
            let (own, of) = member.split_once('=').unwrap_or((member, ""));
            (*decoded(own) == *name.as_bytes()).then(|| decoded(of))
        })
        .is_some_and(|of| *of == *value.as_bytes())
}

/// The same for every rule that takes the same calls.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        if let Some(host) = &self.host {
            write!(f, "{host}")?;
        }
        write!(f, "{}", self.path)?;
        let mut headers = self.headers.iter();
        headers.try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        let mut query = self.query.iter();
        query.try_for_each(|(name, value)| write!(f, " ?{name}={value}"))?;
        let mut listeners = self.listeners.iter();
        listeners.try_for_each(|ListenerId(at)| write!(f, " @{at}"))
    }
}

impl Table {
    /// Of these rules; those that rank alike stay in their order.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.sort_by_cached_key(|rule| Reverse(rule.rank()));
        Self(rules)
    }

    /// The rules, in the order of their precedence.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// Whether a rule may take a request, whoever sends it. Two methods are no service's: the answer to TRACE would hold the
    /// gate's credential, and CONNECT asks for a tunnel.
    #[must_use]
    pub(crate) fn may_take(&self, head: &RequestHead) -> bool {
        !self.0.is_empty()
            && !matches!(head.method_text(), "TRACE" | "CONNECT")
            && !is_of_the_api(head.path())
    }

    /// The route that takes a request, of those that are granted to who sends it: as the place of a listed call.
    ///
    /// # Errors
    /// [`Refusal::RouteNotFound`], [`Refusal::Misdirected`].
    pub(crate) fn take(
        &self,
        head: &RequestHead,
        listeners: &Listeners,
        mut is_granted: impl FnMut(RouteId) -> bool,
    ) -> Result<Place, Refusal> {
        let listener = match listeners.is_empty() {
            true => None,
            false => {
                let (id, _) = listeners.entered(head)?;
                Some(id)
            }
        };
        let is_on = |rule: &Rule| {
            rule.listeners.is_empty() || listener.is_some_and(|id| rule.listeners.contains(&id))
        };
        let takes = |rule: &&Rule| is_on(rule) && rule.takes(head) && is_granted(rule.route);
        match self.0.iter().find(takes) {
            Some(rule) => Ok(Place {
                route: rule.route,
                nth: 0,
            }),
            None => Err(Refusal::route_not_found(head)),
        }
    }
}

/// Whether a lenient server could read the first segment of a path as `v1`: percent-decoded, without regard to case,
/// blanks and dots at its ends, or to the width of its letters.
#[must_use]
pub fn is_of_the_api(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let decoded = percent_decoded(first.unwrap_or_default());
    let text = String::from_utf8_lossy(&decoded);
    let cut = text.split(['?', '#', ';', '/', '\\']).next();
    let bare = cut.unwrap_or_default();
    let bare = bare.trim_matches(|c: char| c == '.' || c.is_whitespace() || c.is_control());
    let mut letters = bare.chars();
    let (v, one) = (letters.next(), letters.next());
    letters.next().is_none() && v.is_some_and(may_be_v) && one.is_some_and(may_be_1)
}

/// Letters that compatibility and case folding make `v` of (Unicode, NFKC).
fn may_be_v(c: char) -> bool {
    matches!(
        c,
        'v' | 'V' | 'ｖ' | 'Ｖ' | 'ⓥ' | 'Ⓥ' | 'ⱽ' | 'ᵛ' | 'ᵥ' | 'ⅴ' | 'Ⅴ'
    ) || is_mathematical(c)
}

/// Digits that compatibility folding makes `1` of.
fn may_be_1(c: char) -> bool {
    matches!(c, '1' | '１' | '¹' | '₁' | '①' | '\u{1fbf1}') || is_mathematical(c)
}

/// Alphabets of formulas, and letters in squares and circles; no path has a reason to begin with two of these alone.
fn is_mathematical(c: char) -> bool {
    matches!(c, '\u{1d400}'..='\u{1d7ff}' | '\u{1f110}'..='\u{1f169}')
}

#[cfg(test)]
mod tests;
