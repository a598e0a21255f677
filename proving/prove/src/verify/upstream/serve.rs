//! Listening, reading calls and sending answers, as the upstream was told to.
//!
//! Invariant: a call is in the book before its answer begins, a piece of an answer before it is sent.
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
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{BODY_BYTES_MAX, BYTES_MAX, CALLS_MAX, Command, Does, Seen, Shared, open, reply};
use crate::verify::client::pairs;

/// Between two events of a stream.
const INTERVAL: Duration = Duration::from_millis(20);

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
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(request, peer, &shared).await) }
    });
    // An error is a client that left, or an answer that we broke.
    drop(
        http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

/// A call that was read.
struct Arrived {
    peer: SocketAddr,
    head: http::request::Parts,
    body: Vec<u8>,
    is_cut: bool,
}

/// Writes a call down; gives its entry, what the upstream does, and how it is refused where it is.
fn note(shared: &Shared, arrived: Arrived) -> (Writer, Does, Option<(StatusCode, &'static str)>) {
    let mut book = open(shared);
    let Arrived { head, body, .. } = arrived;
    let given: Vec<&HeaderValue> = head.headers.get_all(AUTHORIZATION).iter().collect();
    let is_known = matches!(given[..], [one] if one.as_bytes() == book.credential);
    let is_full = book.calls.len() >= CALLS_MAX || book.bytes >= BYTES_MAX;
    let plain = match book.does {
        _ if is_full => Some((StatusCode::SERVICE_UNAVAILABLE, "too_many")),
        _ if arrived.is_cut => Some((StatusCode::PAYLOAD_TOO_LARGE, "too_large")),
        _ if !is_known => Some((book.refuses, "invalid_api_key")),
        Does::Fail(status) => Some((status, "on_demand")),
        Does::Answer | Does::Break(_) | Does::Hang | Does::Down => None,
    };
    let at = book.calls.len();
    if !is_full {
        book.bytes += body.len();
        let path = head.uri.path_and_query();
        book.calls.push(Seen {
            peer: arrived.peer,
            method: head.method.to_string(),
            path: path.map_or_else(String::new, ToString::to_string),
            headers: pairs(&head.headers),
            body,
            is_cut: arrived.is_cut,
            sent: Vec::new(),
            last_sent: None,
            usage: plain.is_none().then(|| reply::usage(at as u64)),
        });
    }
    let writer = Writer {
        shared: Arc::clone(shared),
        at,
    };
    (writer, book.does, plain)
}

type Answered = Response<Either<Full<Bytes>, Pieces>>;

async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: &Shared) -> Answered {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let (body, is_cut) = match body {
        Ok(body) => (body.to_bytes().to_vec(), false),
        Err(_) => (Vec::new(), true),
    };
    let wanted = reply::Wanted::of(&body);
    let arrived = Arrived {
        peer,
        head,
        body,
        is_cut,
    };
    let (book, does, plain) = note(shared, arrived);
    if let Some((status, code)) = plain {
        let text = reply::error("this upstream says no", code);
        return book.at_once(status, text);
    }
    let (number, usage) = (book.at as u64, reply::usage(book.at as u64));
    match (does, wanted.streams) {
        (Does::Hang, _) => std::future::pending().await,
        (Does::Break(events), true) => {
            let mut all = reply::events(number, &wanted, usage);
            all.truncate(events as usize);
            book.in_pieces(all, true, "text/event-stream")
        }
        (Does::Break(_), false) => {
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
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert("x-upstream-call", HeaderValue::from(self.at));
        response
    }
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
