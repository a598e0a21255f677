//! Whether a call may be made, as an authorisation service of Envoy's kind says it, over HTTP or over gRPC.
//!
//! Invariant: no answer is never a yes and never a no; what it means is declared at the route. What cannot be asked
//! because of the request itself is a no, and so is a no whose body is too long or does not come: no caller can make a
//! service that says no look like one that is down. A no is never told with a status that says yes.
//! Nothing else that an answer says is looked at: no header of it reaches the upstream or the client.

mod grpc;
mod http;
mod messages;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::service::{Answered, Handle};
use crate::url::Url;

/// The longest body of a no, and the longest answer over gRPC.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Headers that say how a message is framed or where it goes: no list lets the service see them.
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

/// Over what an authorisation service is asked.
#[derive(Debug, Clone)]
pub enum AuthzTransport {
    /// HTTP: the request's own method and path, without its body. The URL's path stands before it.
    Http(Url),
    /// gRPC, `envoy.service.auth.v3.Authorization/Check`. Its client must speak HTTP/2 (`Protocol::Http2`).
    Grpc(Url),
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
    /// Its headers, names in lower case; those that the service does not see may be left out ([`ExtAuthz::sees`]).
    pub headers: Vec<(String, Vec<u8>)>,
    /// Who calls.
    pub source: AuthzPeer,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authorized {
    /// The call may be made.
    Allowed,
    /// It may not, with a status from 300 to 499: 403 where the service said another.
    Denied(u16),
}

impl Authorized {
    const FORBIDDEN: Self = Self::Denied(403);

    fn denied(status: u16) -> Self {
        match status {
            300..=499 => Self::Denied(status),
            _ => Self::FORBIDDEN,
        }
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
    /// Names in lower case.
    request_headers: BTreeSet<String>,
}

impl ExtAuthz {
    /// One that has asked nothing yet, and sees these headers of requests.
    #[must_use]
    pub fn new(
        handle: &Handle,
        client: Client,
        transport: AuthzTransport,
        request_headers: &[String],
    ) -> Self {
        let seen = request_headers.iter();
        let seen = seen.map(|name| name.to_ascii_lowercase());
        let asker = Asker {
            client,
            transport,
            request_headers: seen.filter(|name| !FRAMING.contains(&&**name)).collect(),
        };
        Self {
            asker: Arc::new(asker),
            handle: handle.clone(),
        }
    }

    /// Whether it sees a header of this name (in lower case).
    #[must_use]
    pub fn sees(&self, name: &str) -> bool {
        self.asker.request_headers.contains(name)
    }

    /// Asks. A fault says that nobody can tell now: what that means is declared by whoever asks.
    pub fn ask(&self, request: AuthzRequest, within: Duration) -> Answered<Authorized> {
        let asker = Arc::clone(&self.asker);
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
                AuthzTransport::Grpc(url) => asker.grpc(url, &question).await,
            }
        })
    }
}

struct Question<'a> {
    request: &'a AuthzRequest,
    within: Duration,
    enough_at: Instant,
}

#[cfg(test)]
mod tests;
