//! Listening, reading calls and sending answers, as the upstream was told to.
//!
//! Invariant: a call is in the book as soon as its head is there, a piece of its body as soon as that came, a piece of an
//! answer before it is sent.
//! Not here: telling it (`upstream`).

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::wire::Wire;
use super::{
    BODY_BYTES_MAX, BYTES_MAX, Behaviour, CALLS_MAX, Command, Seen, Shared, Usage, open, reply,
};
use crate::verify::client::pairs;

/// Between two events of a stream: so long that a client which is late by half a second still has the first before the last
/// is sent.
const INTERVAL: Duration = Duration::from_millis(80);

/// Serves until nobody is left to tell it anything.
pub(super) async fn serve(
    listener: TcpListener,
    mut told: mpsc::UnboundedReceiver<Command>,
    shared: &Shared,
) {
    let address = listener.local_addr();
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            command = told.recv() => {
                let Some(Command::Listen(is_open, done)) = command else { break };
                listener = None;
                let mut outcome = Ok(());
                if is_open {
                    match bind(&address).await {
                        Ok(bound) => listener = Some(bound),
                        Err(error) => outcome = Err(error),
                    }
                } else {
                    connections.shutdown().await;
                }
                let _ = done.send(outcome);
            }
            Some((stream, peer)) = accept(listener.as_ref()) => {
                connections.spawn(connection(stream, peer, Arc::clone(shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn bind(address: &io::Result<SocketAddr>) -> io::Result<TcpListener> {
    match address {
        Ok(address) => TcpListener::bind(address).await,
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// Never without a listener.
async fn accept(listener: Option<&TcpListener>) -> Option<(TcpStream, SocketAddr)> {
    match listener {
        None => std::future::pending().await,
        Some(listener) => match listener.accept().await {
            Ok(accepted) => Some(accepted),
            Err(_) => {
                // Out of descriptors: not at full speed.
                tokio::time::sleep(INTERVAL).await;
                None
            }
        },
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, shared: Shared) {
    // Without it only latency suffers.
    let _ = stream.set_nodelay(true);
    let wire = Wire::new(stream, peer, &shared);
    let service = service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        // Before anything is waited for: a head is known even where nothing follows.
        let (book, shared) = (note(&shared, peer, &head), Arc::clone(&shared));
        async move { Ok::<_, Infallible>(answer((head, body), book, &shared).await) }
    });
    // An error is a client that left, or an answer that we broke.
    drop(
        http1::Builder::new()
            .serve_connection(TokioIo::new(wire), service)
            .await,
    );
}

/// Writes a head down; gives its entry, or nothing where the book is full.
fn note(shared: &Shared, peer: SocketAddr, head: &request::Parts) -> Option<Writer> {
    let mut book = open(shared);
    if book.calls.len() >= CALLS_MAX || book.bytes >= BYTES_MAX {
        return None;
    }
    let (at, path) = (book.calls.len(), head.uri.path_and_query());
    book.calls.push(Seen {
        peer,
        method: head.method.to_string(),
        path: path.map_or_else(String::new, ToString::to_string),
        headers: pairs(&head.headers),
        body: Vec::new(),
        is_whole: false,
        is_cut: false,
        sent: Vec::new(),
        last_sent: None,
        usage: None,
    });
    Some(Writer {
        shared: Arc::clone(shared),
        at,
    })
}

/// How a call is refused, where it is.
fn refused(
    shared: &Shared,
    head: &request::Parts,
    is_cut: bool,
) -> Option<(StatusCode, &'static str)> {
    let book = open(shared);
    let given: Vec<&HeaderValue> = head.headers.get_all(AUTHORIZATION).iter().collect();
    let is_known = matches!(given[..], [one] if one.as_bytes() == book.credential);
    match book.does {
        _ if is_cut => Some((StatusCode::PAYLOAD_TOO_LARGE, "too_large")),
        _ if !is_known => Some((book.refuses, "invalid_api_key")),
        Behaviour::Fail(status) => Some((status, "on_demand")),
        Behaviour::Answer | Behaviour::Break(_) | Behaviour::Hang | Behaviour::Down => None,
    }
}

type Answered = Response<Either<Full<Bytes>, Pieces>>;

async fn answer(
    (head, body): (request::Parts, Incoming),
    book: Option<Writer>,
    shared: &Shared,
) -> Answered {
    let Some(book) = book else {
        let text = reply::error("this upstream says no", "too_many");
        let body = Either::Left(Full::new(text.into()));
        return response(StatusCode::SERVICE_UNAVAILABLE, "application/json", body);
    };
    let body = book.body(body).await;
    if let Some((status, code)) = refused(shared, &head, body.is_none()) {
        let text = reply::error("this upstream says no", code);
        return book.at_once(status, text);
    }
    let wanted = reply::Wanted::of(&body.unwrap_or_default());
    let (number, usage) = (book.at as u64, reply::usage(book.at as u64));
    let does = book.promises(usage);
    match (does, wanted.streams) {
        (Behaviour::Hang, _) => std::future::pending().await,
        (Behaviour::Break(events), true) => {
            let mut all = reply::events(number, &wanted, usage);
            all.truncate(events as usize);
            book.in_pieces(all, true, "text/event-stream")
        }
        (Behaviour::Break(_), false) => {
            let mut text = reply::whole(number, &wanted.model, usage);
            text.truncate(60);
            book.in_pieces(vec![text], true, "application/json")
        }
        (_, true) => {
            let all = reply::events(number, &wanted, usage);
            book.in_pieces(all, false, "text/event-stream")
        }
        (_, false) => book.at_once(StatusCode::OK, reply::whole(number, &wanted.model, usage)),
    }
}

/// The entry of one call.
struct Writer {
    shared: Shared,
    at: usize,
}

impl Writer {
    /// Reads a body and keeps it as far as it comes; `None` where it is too long or does not come to its end.
    async fn body(&self, mut body: Incoming) -> Option<Vec<u8>> {
        while let Some(frame) = body.frame().await {
            let frame = frame.ok()?.into_data();
            let book = &mut *open(&self.shared);
            let seen = book.calls.get_mut(self.at)?;
            match frame {
                Ok(data) if seen.body.len() + data.len() > BODY_BYTES_MAX => {
                    seen.is_cut = true;
                    return None;
                }
                Ok(data) => {
                    seen.body.extend_from_slice(&data);
                    book.bytes += data.len();
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    seen.headers.extend(pairs(&trailers));
                }
            }
        }
        let mut book = open(&self.shared);
        let seen = book.calls.get_mut(self.at)?;
        seen.is_whole = true;
        Some(seen.body.clone())
    }

    /// Writes down the usage that the answer tells; gives what the upstream does.
    fn promises(&self, usage: Usage) -> Behaviour {
        let mut book = open(&self.shared);
        if let Some(seen) = book.calls.get_mut(self.at) {
            seen.usage = Some(usage);
        }
        book.does
    }

    fn note(&self, piece: &str) {
        let mut book = open(&self.shared);
        if let Some(seen) = book.calls.get_mut(self.at) {
            seen.sent.extend_from_slice(piece.as_bytes());
            seen.last_sent = Some(Instant::now());
        }
    }

    fn at_once(&self, status: StatusCode, text: String) -> Answered {
        self.note(&text);
        let body = Either::Left(Full::new(text.into()));
        self.head(status, "application/json", body)
    }

    fn in_pieces(self, pieces: Vec<String>, is_broken: bool, kind: &'static str) -> Answered {
        let (send, receive) = mpsc::channel(1);
        let head = self.head(StatusCode::OK, kind, Either::Right(Pieces(receive)));
        tokio::spawn(async move {
            for (number, piece) in pieces.into_iter().enumerate() {
                if number > 0 {
                    tokio::time::sleep(INTERVAL).await;
                }
                self.note(&piece);
                if send.send(Ok(piece.into())).await.is_err() {
                    return;
                }
            }
            if is_broken {
                tokio::time::sleep(INTERVAL).await;
                let _ = send
                    .send(Err(io::ErrorKind::ConnectionAborted.into()))
                    .await;
            }
        });
        head
    }

    fn head(
        &self,
        status: StatusCode,
        kind: &'static str,
        body: Either<Full<Bytes>, Pieces>,
    ) -> Answered {
        let mut response = response(status, kind, body);
        let headers = response.headers_mut();
        headers.insert("x-upstream-call", HeaderValue::from(self.at));
        response
    }
}

fn response(status: StatusCode, kind: &'static str, body: Either<Full<Bytes>, Pieces>) -> Answered {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A body that comes piece by piece; an error cuts the connection.
struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
