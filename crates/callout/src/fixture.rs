//! Servers for tests: real HTTP on loopback, with or without TLS, or in memory.
//!
//! Tests have a paused clock. In memory time passes as soon as nobody does anything. On loopback the kernel may be doing
//! something: there it stands still, so that no bound of a client can hit what a machine is slow to do.
//! Not here: what they answer (each test).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use testing::PATIENCE;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client::{Bounds, Client, Protocol};
use crate::dial::Memory;
use crate::tls::Tls;
use crate::url::Url;

/// A request as a server read it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The host that it names.
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) is_http2: bool,
    /// Which connection of the server brought it.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str());
        value.and_then(Result::ok).unwrap_or("(none)")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// What a server does with a request.
pub(crate) enum Does {
    Answer(Response<Pieces>),
    /// Closes the connection without an answer.
    Close,
    /// Never answers.
    Hang,
    /// Answers after a while.
    After(Duration, Response<Pieces>),
}

/// A body, and what comes after its bytes.
pub(crate) struct Pieces {
    bytes: Option<Bytes>,
    then: Then,
}

pub(crate) enum Then {
    End,
    Hang,
    Break,
    BreakAfter(Pin<Box<tokio::time::Sleep>>),
    Trailers(HeaderMap),
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match std::mem::replace(&mut self.then, Then::End) {
            Then::End => Poll::Ready(None),
            Then::Hang => {
                self.then = Then::Hang;
                Poll::Pending
            }
            // What came before it has left by then.
            Then::Break => {
                let mut wait = Box::pin(tokio::time::sleep(Duration::from_millis(10)));
                let is_over = wait.as_mut().poll(cx).is_ready();
                self.then = Then::BreakAfter(wait);
                if is_over {
                    self.poll_frame(cx)
                } else {
                    Poll::Pending
                }
            }
            Then::BreakAfter(mut wait) => {
                if wait.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into())));
                }
                self.then = Then::BreakAfter(wait);
                Poll::Pending
            }
            Then::Trailers(trailers) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
        }
    }
}

pub(crate) fn response(status: u16, kind: &str, body: impl Into<Bytes>) -> Response<Pieces> {
    body_then(status, kind, body, Then::End)
}

pub(crate) fn body_then(
    status: u16,
    kind: &str,
    body: impl Into<Bytes>,
    then: Then,
) -> Response<Pieces> {
    let bytes = Some(body.into());
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .body(Pieces { bytes, then })
        .expect("a response")
}

pub(crate) fn json(body: impl Into<Bytes>) -> Does {
    Does::Answer(response(200, "application/json", body))
}

pub(crate) fn status(status: u16) -> Does {
    Does::Answer(response(status, "application/json", "{}"))
}

type Answering = dyn Fn(&Seen) -> Does + Send + Sync;

/// What a server was asked, and how it answers.
#[derive(Clone)]
struct Site {
    answering: Arc<Answering>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Site {
    fn new(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> Self {
        Self {
            answering: Arc::new(answering),
            seen: Arc::default(),
            connections: Arc::default(),
        }
    }

    async fn answer(
        self,
        connection: usize,
        request: Request<Incoming>,
    ) -> io::Result<Response<Pieces>> {
        let (head, body) = request.into_parts();
        let is_http2 = head.version == http::Version::HTTP_2;
        let named = head.headers.get(header::HOST);
        let named = named.map(|host| host.to_str().expect("text").to_owned());
        let host = head.uri.authority().map(ToString::to_string).or(named);
        let seen = Seen {
            method: head.method.to_string(),
            target: head.uri.path_and_query().expect("a target").to_string(),
            host: host.expect("a host"),
            headers: head.headers,
            body: body.collect().await.map_err(io::Error::other)?.to_bytes(),
            is_http2,
            connection,
        };
        self.all().push(seen.clone());
        match (self.answering)(&seen) {
            Does::Answer(response) => Ok(response),
            Does::Close => Err(io::ErrorKind::ConnectionAborted.into()),
            Does::Hang => std::future::pending().await,
            Does::After(wait, response) => {
                tokio::time::sleep(wait).await;
                Ok(response)
            }
        }
    }

    async fn serve<S>(self, stream: S, is_http2: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let service = service_fn(move |request| self.clone().answer(connection, request));
        let stream = TokioIo::new(stream);
        if is_http2 {
            let builder = http2::Builder::new(TokioExecutor::new());
            drop(builder.serve_connection(stream, service).await);
        } else {
            drop(
                http1::Builder::new()
                    .serve_connection(stream, service)
                    .await,
            );
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server; dropped, it is down.
pub(crate) struct Server {
    site: Site,
    base: String,
    accepting: Option<tokio::task::JoinHandle<Infallible>>,
    /// Of one on loopback.
    _still: Option<mpsc::Sender<()>>,
}

impl Server {
    /// HTTP/1.1 in clear.
    pub(crate) async fn start(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> Self {
        Self::with(answering, None, false).await
    }

    /// HTTP/2 in clear.
    pub(crate) async fn http2(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> Self {
        Self::with(answering, None, true).await
    }

    pub(crate) async fn with(
        answering: impl Fn(&Seen) -> Does + Send + Sync + 'static,
        tls: Option<TlsAcceptor>,
        is_http2: bool,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let site = Site::new(answering);
        let serving = site.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.expect("a connection");
                let (site, tls) = (serving.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => site.serve(tcp, is_http2).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                let spoken = stream.get_ref().1.alpn_protocol();
                                let is_http2 = spoken == Some(b"h2");
                                site.serve(stream, is_http2).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            site,
            base: format!("{scheme}://{address}"),
            accepting: Some(accepting),
            _still: Some(still()),
        }
    }

    /// One in memory, whatever host it is asked for, and the client that asks it. It speaks what the bounds say.
    pub(crate) fn in_memory(
        bounds: Bounds,
        answering: impl Fn(&Seen) -> Does + Send + Sync + 'static,
    ) -> (Self, Client) {
        let site = Site::new(answering);
        let serving = site.clone();
        let is_http2 = bounds.protocol == Protocol::Http2;
        let memory: Memory = Arc::new(move |_| {
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            tokio::spawn(serving.clone().serve(theirs, is_http2));
            Ok(ours)
        });
        let server = Self {
            site,
            base: "http://server.test".to_owned(),
            accepting: None,
            _still: None,
        };
        (server, Client::in_memory(&tls(), bounds, memory))
    }

    pub(crate) fn url(&self, target: &str) -> Url {
        Url::parse(&self.text(target)).expect("a URL")
    }

    pub(crate) fn text(&self, target: &str) -> String {
        format!("{}{target}", self.base)
    }

    /// All that it was asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.site.all().clone()
    }

    pub(crate) fn asked(&self) -> usize {
        self.site.all().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.site.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// Trust in nobody: for what is spoken in clear.
pub(crate) fn tls() -> Tls {
    Tls::nobody().expect("a version of TLS")
}

pub(crate) fn client() -> Client {
    Client::new(&tls(), Bounds::default())
}

/// Holds the paused clock of this test, until what it gives is dropped. What waits all the same waits not for ever: the
/// clock goes on after [`PATIENCE`].
pub(crate) fn still() -> mpsc::Sender<()> {
    let (held, over) = mpsc::channel();
    // A runtime's clock does not go on by itself beside a thread that works for it.
    drop(tokio::task::spawn_blocking(move || {
        over.recv_timeout(PATIENCE).is_ok()
    }));
    held
}
