//! Requests to a service: HTTP/1.1 or HTTP/2, over connections that are kept.
//!
//! Invariant: everything that is waited for has its bound, everything that is read has its size. A redirect is an
//! answer like any other, and is never followed. A request is sent a second time only where a kept connection turned
//! out to be gone before any answer; all that is sent here may be asked twice.
//! Not here: what is asked and how its answer is read (`jwks`, `introspection`, `token`, …).

mod connection;
mod pool;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::dial::Dialer;
use crate::fault::Fault;
use crate::tls::Tls;
use crate::url::{Origin, Url};
pub(crate) use connection::Connection;
use pool::Pool;

/// The bounds of a client, and how it speaks.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The longest until there is a connection: look-up, TCP and TLS.
    pub connect: Duration,
    /// The longest from the request to the head of its answer.
    pub head: Duration,
    /// The longest that all of it may take, with the wait for a free place.
    pub total: Duration,
    /// Requests that run at once; more wait.
    pub requests: usize,
    /// Connections that are kept for each host and port.
    pub kept: usize,
    /// How long a connection is kept unused.
    pub idle: Duration,
    /// The service may stand at a link-local address, as metadata services do.
    pub allow_link_local: bool,
    /// What is spoken.
    pub protocol: Protocol,
}

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Over TLS what the service prefers, in clear HTTP/1.1.
    Either,
    /// HTTP/2 alone, in clear too, as gRPC has it.
    Http2,
}

/// Requests to a service at once. As many connections are kept: with fewer, a service that is asked at every call is
/// opened a connection for most of them (`prove oauth-rbac`: 35 µs of the gate's CPU each).
const AT_ONCE: usize = 64;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            head: Duration::from_secs(5),
            total: Duration::from_secs(10),
            requests: AT_ONCE,
            kept: AT_ONCE,
            idle: Duration::from_secs(60),
            allow_link_local: false,
            protocol: Protocol::Either,
        }
    }
}

/// Sends requests; clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    bounds: Bounds,
    dialer: Dialer,
    pool: Arc<Pool>,
    running: Semaphore,
}

/// One request.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    /// What the request names as its host, where that is not the URL's.
    pub(crate) host: Option<HeaderValue>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The most of an answer's body that is read.
    pub(crate) body_max: usize,
    /// The head of the answer says what matters: where its body does not come whole until then, it is left out.
    pub(crate) head_is_enough_at: Option<Instant>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(method: Method, url: &'a Url, body_max: usize) -> Self {
        Self {
            method,
            url,
            host: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            body_max,
            head_is_enough_at: None,
        }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// Its body was read to its end.
    is_whole: bool,
}

impl Client {
    /// One with no connection yet.
    #[must_use]
    pub fn new(tls: &Tls, bounds: Bounds) -> Self {
        let spoken: &[&[u8]] = match bounds.protocol {
            Protocol::Either => &[b"h2", b"http/1.1"],
            Protocol::Http2 => &[b"h2"],
        };
        let dialer = Dialer {
            tls: tls.speaking(spoken),
            allow_link_local: bounds.allow_link_local,
            #[cfg(test)]
            memory: None,
        };
        Self::dialling(dialer, bounds)
    }

    fn dialling(dialer: Dialer, bounds: Bounds) -> Self {
        Self(Arc::new(Inner {
            dialer,
            pool: Arc::new(Pool::new(bounds.kept, bounds.idle)),
            running: Semaphore::new(bounds.requests.clamp(1, Semaphore::MAX_PERMITS)),
            bounds,
        }))
    }

    /// One that a test answers in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(tls: &Tls, bounds: Bounds, memory: crate::dial::Memory) -> Self {
        let dialer = Dialer {
            tls: tls.speaking(&[]),
            allow_link_local: bounds.allow_link_local,
            memory: Some(memory),
        };
        Self::dialling(dialer, bounds)
    }

    /// Sends a request, and reads its answer whole.
    pub(crate) async fn send(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let within = self.0.bounds.total;
        let sent = timeout(within, self.send_in_turn(call)).await;
        sent.unwrap_or(Err(Fault::Late {
            waited_for: "whole answer",
            within,
        }))
    }

    /// Sends a request whose answer does not end soon, and gives its head, with what keeps its body coming. It takes no place among
    /// those that run, and no connection that another needs.
    pub(crate) async fn open(
        &self,
        call: &Call<'_>,
    ) -> Result<(Response<Incoming>, Connection), Fault> {
        let Inner { bounds, pool, .. } = &*self.0;
        let origin = call.url.origin();
        let mut was_kept = true;
        loop {
            let kept = pool.take(origin).filter(|_| was_kept);
            was_kept = kept.is_some();
            let mut connection = match kept {
                Some(kept) => kept,
                None => self.connect(origin).await?,
            };
            if let Some(shared) = connection.shared() {
                Pool::keep(pool, origin, shared);
            }
            let head = timeout(bounds.head, connection.head(call)).await;
            let late = Fault::Late {
                waited_for: "answer",
                within: bounds.head,
            };
            match head.map_err(|_| late)? {
                Ok(head) => return Ok((head, connection)),
                Err(connection::Unsent::Gone(_)) if was_kept => was_kept = false,
                Err(unsent) => return Err(unsent.into()),
            }
        }
    }

    async fn send_in_turn(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Inner { pool, running, .. } = &*self.0;
        let _place = running.acquire().await.map_err(|_| Fault::Full)?;
        let origin = call.url.origin();
        if let Some(kept) = pool.take(origin)
            && let Some(answered) = self.answer(kept, call, true).await
        {
            return answered;
        }
        let fresh = self.connect(origin).await?;
        let answered = self.answer(fresh, call, false).await;
        answered.unwrap_or(Err(Fault::Broken("no answer came".to_owned())))
    }

    /// The answer on one connection; none where it was kept and is gone.
    async fn answer(
        &self,
        mut connection: Connection,
        call: &Call<'_>,
        was_kept: bool,
    ) -> Option<Result<Reply, Fault>> {
        let Inner { bounds, pool, .. } = &*self.0;
        let head = match timeout(bounds.head, connection.head(call)).await {
            Ok(Ok(head)) => head,
            Ok(Err(connection::Unsent::Gone(_))) if was_kept => return None,
            Ok(Err(unsent)) => return Some(Err(unsent.into())),
            Err(_) => {
                return Some(Err(Fault::Late {
                    waited_for: "answer",
                    within: bounds.head,
                }));
            }
        };
        let reply = connection::read(head, call).await;
        if reply.as_ref().is_ok_and(|reply| reply.is_whole) && connection.is_good_again().await {
            Pool::keep(pool, call.url.origin(), connection);
        }
        Some(reply)
    }

    async fn connect(&self, origin: &Origin) -> Result<Connection, Fault> {
        let Inner { bounds, dialer, .. } = &*self.0;
        let is_http2 = bounds.protocol == Protocol::Http2;
        let connecting = async {
            let dialled = dialer.dial(origin).await?;
            Connection::over(dialled, is_http2).await
        };
        let connected = timeout(bounds.connect, connecting).await;
        connected.unwrap_or(Err(Fault::Late {
            waited_for: "connection",
            within: bounds.connect,
        }))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { bounds, .. } = &*self.0;
        f.debug_tuple("Client").field(bounds).finish()
    }
}

impl Reply {
    /// Its body, of a good status and of a media type (`application/json`).
    pub(crate) fn good(&self, media: &[&str], otherwise: &'static str) -> Result<&Bytes, Fault> {
        if self.status != StatusCode::OK && self.status != StatusCode::CREATED {
            return Err(self.refusal());
        }
        let mut kinds = self.headers.get_all(header::CONTENT_TYPE).iter();
        let kind = kinds.next();
        if kinds.next().is_some() {
            return Err(Fault::Garbage("its content-type stands twice"));
        }
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_known = media.iter().any(|known| kind.eq_ignore_ascii_case(known));
        is_known
            .then_some(&self.body)
            .ok_or(Fault::Garbage(otherwise))
    }

    /// Whether its body was read to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether two readers could differ on where its body ends.
    pub(crate) fn has_two_lengths(&self) -> bool {
        let has = |name| self.headers.contains_key(name);
        has(header::CONTENT_LENGTH) && has(header::TRANSFER_ENCODING)
    }

    /// As a fault, by its status alone.
    pub(crate) fn refusal(&self) -> Fault {
        Fault::Status {
            status: self.status.as_u16(),
            code: None,
        }
    }
}

/// A header value that is never logged or indexed.
pub(crate) fn secret_value(value: &[u8]) -> Result<HeaderValue, Fault> {
    let value = HeaderValue::from_bytes(value);
    let mut value = value.map_err(|_| Fault::Credential("it fits no header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
