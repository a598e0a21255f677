//! Upstream targets: backends, their endpoints, and where to connect.
//!
//! Not here: which one a call goes to ([`crate::attempt`]), how long an attempt may take (`bounds`).

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Chain;
use super::bounds::{PoolBounds, Timeouts};
use crate::balancing::Balancer;
use crate::credential::{KnownSet, UpstreamAuth};
use crate::id::{BackendId, EndpointId};
use crate::model::ModelPattern;
use crate::picker::Picker;
use crate::plain::actions::FieldEdits;
use crate::retry::Ejection;
use crate::secret::Secret;

/// A named upstream target.
#[derive(Debug, Default)]
pub struct Backend {
    /// For logs and labels.
    pub name: Arc<str>,
    /// It serves plain HTTP or tools, and no model.
    pub is_plain: bool,
    /// Its addresses; none where it is closed.
    pub endpoints: Vec<EndpointId>,
    /// It is closed since none of its addresses is ready, and not for a fault.
    pub is_unready: bool,
    /// Models it is known to serve, for `/v1/models`; may be empty.
    pub models: Vec<Arc<str>>,
    /// Names that it has for models of which the gate uses another name, by that name. Prices, limits, budgets and
    /// records go by the gate's name.
    pub model_names: BTreeMap<Arc<str>, Box<str>>,
    /// How a model may be spelt there in more than one way. None where bodies name it, to the letter.
    pub spellings: Option<Spellings>,
    /// What calls to it pass, behind those of their route: a translation, where it speaks another dialect than its clients.
    pub filters: Chain,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// When an endpoint of it is left alone.
    pub ejection: Ejection,
    /// How many connections there may be to each of its addresses.
    pub pool: PoolBounds,
    /// Some credential of it is given for the caller's own token.
    pub exchanges_tokens: bool,
    /// Headers of every request to it; they replace what the client sent by these names.
    pub headers: Vec<AddedHeader>,
    /// Headers of an API that do not go to it, of those that would ([`crate::credential::OF_APIS`]).
    pub withheld_headers: KnownSet,
    /// Whether its streams are asked for their usage where the client does not ask.
    pub ask_usage: AskUsage,
    /// Members of the query of every request to it; they replace the client's of these names.
    pub query: Vec<AddedMember>,
    /// How its endpoints share its calls, where that is not by weight alone ([`super::Snapshot::is_balanced`]).
    pub balancer: Option<Balancer>,
    /// Who picks one of its endpoints for each call, where somebody does ([`super::Snapshot::is_balanced`]).
    pub picker: Option<Arc<dyn Picker>>,
}

/// Whether streams of a backend are asked to report their usage where the client does not ask: those that do so only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskUsage {
    /// Unless it refuses calls that ask.
    #[default]
    Auto,
    /// Whatever it answers.
    Always,
    /// The gate counts for itself what it reports.
    Never,
}

/// A header of every request to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedHeader {
    /// Its name, in lower case.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: AddedValue,
}

/// The value of a header that takes the place of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedValue {
    /// This one.
    Fixed(Box<[u8]>),
    /// Of the client's list those that are named here; a `*` at the end fits any rest.
    OfClient(Box<[Box<str>]>),
}

impl AddedValue {
    /// What a request has of it, whose client sent these lines of it; nothing where nothing is left.
    #[must_use]
    pub fn of<'c>(&self, lines: impl Iterator<Item = &'c [u8]>) -> Option<Box<[u8]>> {
        if let Self::Fixed(value) = self {
            return Some(value.clone());
        }
        let kept: Vec<&[u8]> = said(lines).filter(|value| self.passes(value)).collect();
        (!kept.is_empty()).then(|| kept.join(&b","[..]).into())
    }

    /// Whether a request goes without a value that its client listed in these lines.
    #[must_use]
    pub fn leaves_out<'c>(&self, lines: impl Iterator<Item = &'c [u8]>) -> bool {
        matches!(self, Self::OfClient(_)) && said(lines).any(|value| !self.passes(value))
    }

    /// Whether this value of the client's list passes.
    fn passes(&self, value: &[u8]) -> bool {
        let Self::OfClient(allowed) = self else {
            return false;
        };
        allowed.iter().any(|of| match of.strip_suffix('*') {
            Some(start) => value.starts_with(start.as_bytes()),
            None => *value == *of.as_bytes(),
        })
    }
}

/// The values of a list in these lines.
fn said<'c>(lines: impl Iterator<Item = &'c [u8]>) -> impl Iterator<Item = &'c [u8]> {
    let values = lines.flat_map(|line| line.split(|b| *b == b','));
    values
        .map(<[u8]>::trim_ascii)
        .filter(|value| !value.is_empty())
}

/// A member of the query of every request to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMember {
    /// Its name, which needs no encoding.
    pub name: Box<str>,
    /// Its value, encoded.
    pub value: Box<str>,
}

impl Backend {
    /// What it calls a model.
    #[must_use]
    #[inline]
    pub fn model_name<'a>(&'a self, model: &'a str) -> &'a str {
        if self.model_names.is_empty() {
            return model;
        }
        self.model_names.get(model).map_or(model, |name| name)
    }

    /// Names of models, as the gate uses them, that the configuration says it has.
    pub fn known_models(&self) -> impl Iterator<Item = &Arc<str>> {
        self.models.iter().chain(self.model_names.keys())
    }

    /// Whether this is a second spelling of a model in its API, or none that can stand in a path of it: what a path of `.`, `..` or
    /// nothing between two slashes means, is for whoever reads it to say.
    #[cold]
    pub(super) fn is_other_spelling(&self, name: &str, patterns: &[ModelPattern]) -> bool {
        let Some(spellings) = &self.spellings else {
            return false;
        };
        let is_no_segment = |part: &str| matches!(part, "" | "." | "..");
        if name.split('/').any(is_no_segment) {
            return true;
        }
        // Of patterns those that write a beginning; which capitals a pattern means nobody knows.
        let is_written = |pattern: &ModelPattern| match pattern {
            ModelPattern::Exact(_) => false,
            ModelPattern::Prefix(start) => {
                !spellings.has_capitals(name)
                    && spellings.is_second(start)
                    && name.starts_with(start.as_str())
            }
        };
        if self.known_models().any(|known| **known == *name) || patterns.iter().any(is_written) {
            return false;
        }
        let exact = patterns.iter().filter_map(ModelPattern::exact);
        let written = self.models.iter().chain(exact);
        let written = written.map(|known| self.model_name(known));
        let mut sent = written.chain(self.model_names.values().map(|own| &**own));
        spellings.is_second(name) || sent.any(|other| spellings.are_two_of_one(name, other))
    }

    /// Whether it alone uses this name, for a model that the gate names otherwise.
    pub(super) fn is_private_name(&self, name: &str) -> bool {
        self.model_names.values().any(|own| **own == *name) && !self.model_names.contains_key(name)
    }
}

/// How a model may be spelt at a backend in more than one way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spellings {
    /// How a name may begin that stands for the same one without that beginning.
    pub beginnings: Box<[&'static str]>,
    /// Capitals are as good as small letters.
    pub is_caseless: bool,
}

impl Spellings {
    /// Whether a name is another one's second spelling by itself.
    fn is_second(&self, name: &str) -> bool {
        self.has_capitals(name)
            || self
                .beginnings
                .iter()
                .any(|begins| name.starts_with(begins))
    }

    /// Whether there are letters in it that stand for small ones. Of those that are not ASCII nobody knows.
    fn has_capitals(&self, name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        self.is_caseless && !name.bytes().all(is_plain)
    }

    fn are_two_of_one(&self, one: &str, other: &str) -> bool {
        let (bare, of_other) = (self.bare(one), self.bare(other));
        let is_one = bare == of_other || self.is_caseless && bare.eq_ignore_ascii_case(of_other);
        is_one && one != other
    }

    fn bare<'n>(&self, name: &'n str) -> &'n str {
        let mut begins = self.beginnings.iter();
        let rest = begins.find_map(|begins| name.strip_prefix(begins));
        rest.map_or(name, |rest| self.bare(rest))
    }
}

/// Protocol spoken to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1; over TLS too.
    Http1,
    /// HTTP/2: prior knowledge in clear, ALPN `h2` required over TLS.
    Http2,
    /// Over TLS whichever ALPN chooses; in clear HTTP/1.1.
    Auto,
}

/// Where to connect. Endpoints with equal origins share a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether to speak TLS.
    pub tls: bool,
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// HTTP version.
    pub protocol: Protocol,
    /// The name by which its certificate is asked for and checked; that of the host unless said.
    pub tls_name: Option<Arc<str>>,
    /// Names of which its certificate has to have one, in place of that by which it is asked for: what has a colon is a URI, all else
    /// a host. None: that name is checked.
    pub alt_names: Arc<[Box<str>]>,
    /// PEM file of extra roots, empty for the system's.
    pub ca_file: String,
    /// SHA-256 of the certificate that the gate shows there, in hex; empty for none. Two that differ never share a
    /// connection.
    pub certificate: String,
    /// The proxy on the way there.
    pub proxy: Option<Arc<Proxy>>,
    /// No metadata service and no neighbour of the link is connected to under its name ([`crate::address`]).
    pub is_kept_off_the_link: bool,
    /// Nor is the gate's own machine.
    pub is_kept_off_the_machine: bool,
}

impl Origin {
    /// Whether its proxy reads the requests: HTTP/1.1 in clear, with targets in absolute form. All else goes through
    /// a tunnel.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.proxy.is_some() && !self.tls && self.protocol != Protocol::Http2
    }
}

/// An HTTP proxy, spoken to in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of `proxy-authorization`.
    pub authorization: Option<Secret>,
}

impl Hash for Proxy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port).hash(state);
    }
}

/// One address with its credential.
#[derive(Debug)]
pub struct Endpoint {
    /// `backend` or `backend#1` for logs and labels.
    pub name: Arc<str>,
    /// The backend it belongs to.
    pub backend: BackendId,
    /// Where to connect.
    pub origin: Origin,
    /// `host[:port]` as sent in `host` / `:authority`.
    pub authority: String,
    /// Path put in place of `/v1`, such as `/v1` or `/v1beta/openai`, or before that of plain HTTP; no trailing slash.
    pub base_path: String,
    /// Share of traffic among its siblings; at least 1.
    pub weight: u32,
    /// The one credential that goes upstream.
    pub auth: UpstreamAuth,
    /// What becomes of fields of calls of plain HTTP to it, where something does.
    pub edits: Option<Box<FieldEdits>>,
}
