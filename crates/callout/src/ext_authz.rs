//! Whether a call may be made, as an authorisation service of Envoy's kind says it, over HTTP or over gRPC.
//!
//! Invariant: no answer is never a yes and never a no; what it means is declared at the route. What cannot be asked
//! because of the request itself is a no, and so is a no whose body is too long or does not come: no caller can make a
//! service that says no look like one that is down. A no is never told with a status that says yes.
//! Not here: what is done with the headers of an answer (the host).

mod grpc;
mod http;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use tokio::time::Instant;

use crate::client::Client;
use crate::fault::Fault;
use crate::service::{Answered, Handle};
use crate::url::Url;

/// The longest body of a no, and the longest answer over gRPC.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Headers of an answer that are passed on, and their bytes.
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Headers that say how a message is framed or where it goes: no list lets them pass, either way.
const FRAMING: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];

/// How an authorisation service is asked.
#[derive(Debug, Clone)]
pub struct ExtAuthzSettings {
    /// Over what.
    pub transport: AuthzTransport,
    /// The longest wait, whatever the question says.
    pub timeout: Duration,
    /// Headers of the request that it sees.
    pub request_headers: Vec<String>,
    /// Headers of its yes that the host is told.
    pub answer_headers: Vec<String>,
    /// Headers of its no that the host is told.
    pub denied_headers: Vec<String>,
}

/// Over what an authorisation service is asked.
#[derive(Debug, Clone)]
pub enum AuthzTransport {
    /// HTTP: the request's own method and path, without its body. The URL's path stands before it.
    Http(Url),
    /// gRPC, `envoy.service.auth.v3.Authorization/Check`. Its client must speak HTTP/2 (`Protocol::Http2`).
    Grpc {
        /// Where.
        url: Url,
        /// What the service is told beside the request (`context_extensions`).
        context_extensions: BTreeMap<String, String>,
    },
}

impl ExtAuthzSettings {
    /// 200 ms; it sees `authorization` alone, and the host is told no headers.
    #[must_use]
    pub fn new(transport: AuthzTransport) -> Self {
        Self {
            transport,
            timeout: Duration::from_millis(200),
            request_headers: vec!["authorization".to_owned()],
            answer_headers: Vec::new(),
            denied_headers: Vec::new(),
        }
    }
}

/// A request that is asked about.
#[derive(Debug, Clone, Default)]
pub struct AuthzRequest {
    /// The gate's id of it.
    pub id: String,
    /// Its method.
    pub method: String,
    /// `http` or `https`, as the client called.
    pub scheme: String,
    /// The host that it names.
    pub host: String,
    /// Its path and query.
    pub path: String,
    /// `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// The length of its body, where it is known.
    pub size: Option<u64>,
    /// Its headers, names in lower case; those that the service does not see may be left out ([`ExtAuthz::sees`]).
    pub headers: Vec<(String, Vec<u8>)>,
    /// Who calls.
    pub source: AuthzPeer,
    /// The gate.
    pub destination: AuthzPeer,
}

/// One end of a request.
#[derive(Debug, Clone, Default)]
pub struct AuthzPeer {
    /// Its address.
    pub address: Option<SocketAddr>,
    /// What it is called.
    pub service: String,
    /// Who it is, as was verified.
    pub principal: String,
}

/// What the service says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorized {
    /// The call may be made.
    Allowed(AuthzFacts),
    /// It may not.
    Denied(Denial),
}

/// What a yes says beside it, as far as the lists let it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthzFacts {
    /// Headers for the upstream.
    pub headers: Vec<AuthzHeader>,
    /// Headers that the upstream is not to see; names in lower case, not checked against any list.
    pub removed: Vec<String>,
    /// Headers for the client.
    pub to_client: Vec<AuthzHeader>,
}

/// A header that the service gives: name and value are such as a message can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthzHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
    /// It is added to what is there; else it stands instead of that.
    pub is_added: bool,
}

/// A no, as the client may be told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// A status from 300 to 499; 403 where the service said another.
    pub status: u16,
    /// Headers, as far as the list lets them.
    pub headers: Vec<AuthzHeader>,
    /// The body, where it came whole.
    pub body: Bytes,
}

impl Denial {
    fn new(status: u16, headers: Vec<AuthzHeader>, body: Bytes) -> Self {
        let is_no = (300..=499).contains(&status);
        Self {
            status: if is_no { status } else { 403 },
            headers,
            body,
        }
    }

    fn alone(status: StatusCode) -> Authorized {
        Authorized::Denied(Self::new(status.as_u16(), Vec::new(), Bytes::new()))
    }
}

/// The way to one authorisation service; clones are the same one.
#[derive(Debug, Clone)]
pub struct ExtAuthz {
    asker: Arc<Asker>,
    handle: Handle,
}

#[derive(Debug)]
struct Asker {
    client: Client,
    transport: AuthzTransport,
    timeout: Duration,
    request_headers: Names,
    answer_headers: Names,
    denied_headers: Names,
}

impl ExtAuthz {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: ExtAuthzSettings) -> Self {
        let asker = Asker {
            client,
            transport: settings.transport,
            timeout: settings.timeout,
            request_headers: Names::of(&settings.request_headers),
            answer_headers: Names::of(&settings.answer_headers),
            denied_headers: Names::of(&settings.denied_headers),
        };
        Self {
            asker: Arc::new(asker),
            handle: handle.clone(),
        }
    }

    /// Whether it sees a header of this name (in lower case).
    #[must_use]
    pub fn sees(&self, name: &str) -> bool {
        self.asker.request_headers.has(name)
    }

    /// Asks. A fault says that nobody can tell now: what that means is declared by whoever asks.
    pub fn ask(&self, request: AuthzRequest, within: Duration) -> Answered<Authorized> {
        let asker = Arc::clone(&self.asker);
        let within = within.min(asker.timeout);
        let asked = Instant::now();
        self.handle.ask(within, async move {
            let question = Question {
                request: &request,
                within,
                // In time to tell of a no without its body.
                enough_at: asked + within / 10 * 9,
            };
            match &asker.transport {
                AuthzTransport::Http(url) => asker.http(url, &question).await,
                AuthzTransport::Grpc {
                    url,
                    context_extensions,
                } => asker.grpc(url, context_extensions, &question).await,
            }
        })
    }
}

struct Question<'a> {
    request: &'a AuthzRequest,
    within: Duration,
    enough_at: Instant,
}

/// Names of headers that may pass.
#[derive(Debug)]
struct Names(BTreeSet<String>);

impl Names {
    fn of(names: &[String]) -> Self {
        let lower = names.iter().map(|name| name.to_ascii_lowercase());
        Self(lower.filter(|name| !FRAMING.contains(&&**name)).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Headers that may pass, within their bounds.
    fn pass(&self, headers: impl Iterator<Item = AuthzHeader>) -> Result<Vec<AuthzHeader>, Fault> {
        let passed: Vec<AuthzHeader> = headers.filter(|header| self.has(&header.name)).collect();
        let size = |header: &AuthzHeader| header.name.len() + header.value.len();
        let bytes: usize = passed.iter().map(size).sum();
        if passed.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
            return Err(Fault::Garbage("its headers are too many or too long"));
        }
        Ok(passed)
    }
}

impl AuthzHeader {
    /// One that a message can hold; none where it cannot.
    fn new(name: &str, value: &[u8], is_added: bool) -> Option<Self> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(value).ok()?;
        Some(Self {
            name: name.as_str().to_owned(),
            value: value.as_bytes().to_vec(),
            is_added,
        })
    }
}

#[cfg(test)]
mod tests;
