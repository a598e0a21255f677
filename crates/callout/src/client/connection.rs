//! One connection: HTTP/1.1 for one request at a time, HTTP/2 for many.
//!
//! Invariant: what was read to its end and left the connection good is used again; all else closes it.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{timeout, timeout_at};

use super::{Call, Reply};
use crate::dial::Dialled;
use crate::fault::Fault;

/// The most of a head.
const HEAD_BYTES_MAX: u16 = 32 << 10;
/// Fields of a head.
const FIELDS_MAX: usize = 100;
/// How long a connection may take to be ready again after an answer.
const SETTLES_IN: Duration = Duration::from_millis(100);
/// A connection of HTTP/2 with requests in flight is tried so often, and has so long to answer.
const PING_EVERY: Duration = Duration::from_secs(5);

pub(crate) enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why there is no head of an answer.
pub(super) enum Unsent {
    /// The connection ended before it.
    Gone(String),
    Never(Fault),
}

impl From<Unsent> for Fault {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Gone(why) => Self::Broken(why),
            Unsent::Never(fault) => fault,
        }
    }
}

impl Connection {
    pub(super) async fn over(dialled: Dialled, is_http2: bool) -> Result<Self, Fault> {
        let stream = TokioIo::new(dialled.stream);
        let broken = |error: hyper::Error| Fault::Broken(error.to_string());
        if is_http2 || dialled.is_http2 {
            let shaken = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_EVERY)
                .max_header_list_size(u32::from(HEAD_BYTES_MAX))
                .handshake(stream)
                .await;
            let (sender, connection) = shaken.map_err(broken)?;
            tokio::spawn(async move { drop(connection.await) });
            return Ok(Self::Http2(sender));
        }
        let shaken = http1::Builder::new()
            .max_buf_size(usize::from(HEAD_BYTES_MAX))
            .max_headers(FIELDS_MAX)
            .handshake(stream)
            .await;
        let (sender, connection) = shaken.map_err(broken)?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self::Http1(sender))
    }

    /// The same connection for another request, where it carries several.
    pub(super) fn shared(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request, and waits for the head of its answer.
    pub(super) async fn head(&mut self, call: &Call<'_>) -> Result<Response<Incoming>, Unsent> {
        let request = self.request(call).map_err(Unsent::Never)?;
        let gone = |error: hyper::Error| {
            if error.is_parse() || error.is_parse_too_large() {
                return Unsent::Never(Fault::Broken(error.to_string()));
            }
            Unsent::Gone(error.to_string())
        };
        match self {
            Self::Http1(sender) => {
                sender.ready().await.map_err(gone)?;
                sender.send_request(request).await.map_err(gone)
            }
            Self::Http2(sender) => {
                sender.ready().await.map_err(gone)?;
                sender.send_request(request).await.map_err(gone)
            }
        }
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Full<Bytes>>, Fault> {
        let origin = call.url.origin();
        let mut request = Request::builder().method(call.method.clone());
        request = if let Self::Http1(_) = self {
            request.uri(call.url.target())
        } else {
            let (scheme, target) = (origin.scheme(), call.url.target());
            let named = call.host.as_ref().and_then(|host| host.to_str().ok());
            let authority = named.map_or_else(|| origin.authority(), str::to_owned);
            let uri = format!("{scheme}://{authority}{target}");
            request.version(Version::HTTP_2).uri(uri)
        };
        let request = request.body(Full::new(call.body.clone()));
        let unaskable = Fault::Unaskable("its host or path fits no request line");
        let mut request = request.map_err(|_| unaskable.clone())?;
        *request.headers_mut() = call.headers.clone();
        if let Self::Http1(_) = self {
            let host = match &call.host {
                Some(host) => host.clone(),
                None => origin.authority().parse().map_err(|_| unaskable)?,
            };
            request.headers_mut().insert(header::HOST, host);
        }
        let agent =
            header::HeaderValue::from_static(concat!("tollgate/", env!("CARGO_PKG_VERSION")));
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(agent);
        Ok(request)
    }

    /// Whether it can be used again.
    pub(super) async fn is_good_again(&mut self) -> bool {
        match self {
            Self::Http1(sender) => timeout(SETTLES_IN, sender.ready())
                .await
                .is_ok_and(|ready| ready.is_ok()),
            Self::Http2(sender) => !sender.is_closed(),
        }
    }
}

/// Reads an answer to its end, or its head alone where that is enough.
pub(super) async fn read(head: Response<Incoming>, call: &Call<'_>) -> Result<Reply, Fault> {
    let (head, body) = head.into_parts();
    if head.status.is_informational() {
        return Err(Fault::Garbage("it changes the protocol, unasked"));
    }
    let mut reply = Reply {
        status: head.status,
        headers: head.headers,
        body: Bytes::new(),
        trailers: None,
        is_whole: false,
    };
    let Some(until) = call.head_is_enough_at else {
        reply.read(body, call.body_max).await?;
        return Ok(reply);
    };
    let read = timeout_at(until, reply.read(body, call.body_max)).await;
    if !read.is_ok_and(|read| read.is_ok()) {
        reply.body = Bytes::new();
    }
    Ok(reply)
}

impl Reply {
    async fn read(&mut self, body: Incoming, body_max: usize) -> Result<(), Fault> {
        let mut codings = self.headers.get_all(header::CONTENT_ENCODING).iter();
        if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Fault::Garbage("it is compressed, unasked"));
        }
        let read = Limited::new(body, body_max).collect().await;
        let read = read.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Fault::Large(body_max)
            } else {
                Fault::Broken(error.to_string())
            }
        })?;
        self.trailers = read.trailers().cloned();
        self.body = read.to_bytes();
        self.is_whole = true;
        Ok(())
    }
}
