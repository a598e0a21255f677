//! What the gate asks a command, over HTTP on loopback.
//!
//! Invariant: a request without the bridge's secret is refused before anything of it is read, and of one for which there is no room nothing
//! is kept.
//! Not here: how many sessions there are (`sessions`), the process (`session`, `process`).

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, interval, sleep};

use proxy::TOOL_CALLER;

use super::session::{Line, Message, Session};
use super::sessions::{Begun, Room, Sessions};
use super::{Bridge, chance};

/// How often it is looked who uses no session any more.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Longest message.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
const SESSION_ID: &str = "mcp-session-id";

/// Serves a bridge until no configuration has it.
pub(super) async fn serve(bridge: Arc<Bridge>, room: Room) {
    let listener = bridge
        .listener
        .try_clone()
        .and_then(tokio::net::TcpListener::from_std);
    let listener = match listener {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(server = bridge.server, %error, "cannot serve a command");
            return;
        }
    };
    let sessions = Sessions::new(Arc::clone(&bridge), room);
    let mut tidying = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, _)) => {
                    let sessions = Rc::clone(&sessions);
                    tokio::task::spawn_local(async move {
                        let service = service_fn(|request| answer(request, &sessions));
                        let serving = http1::Builder::new().serve_connection(TokioIo::new(tcp), service);
                        if let Err(error) = serving.await {
                            tracing::debug!(%error, "a connection to a command ended");
                        }
                    });
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            _ = tidying.tick() => sessions.tidy(),
            () = bridge.over.notified() => break,
        }
    }
    sessions.end_all();
}

async fn answer(
    request: Request<Incoming>,
    sessions: &Sessions,
) -> Result<Response<Body>, Infallible> {
    let secret = request.headers().get(header::AUTHORIZATION);
    if !secret.is_some_and(|secret| sessions.bridge.secret.is(secret.as_bytes())) {
        return Ok(status(StatusCode::UNAUTHORIZED));
    }
    if sessions.is_over() {
        return Ok(status(StatusCode::SERVICE_UNAVAILABLE));
    }
    let id = request.headers().get(SESSION_ID);
    let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
    let open = id.as_ref().and_then(|id| sessions.get(id));
    Ok(match (request.method().clone(), open) {
        (Method::POST, None) if id.is_none() => {
            begin(request, sessions).await.unwrap_or_else(status)
        }
        (Method::POST, Some(session)) => {
            let message = message(request, sessions, &session.caller, Some(&session)).await;
            match message {
                Ok(message) => match posted(&session, message).await {
                    Answer::Events(said) => events(None, said, Some(session)),
                    Answer::Status(code) => status(code),
                },
                Err(code) => status(code),
            }
        }
        (Method::GET, Some(session)) => session.listen().map_or_else(
            || status(StatusCode::CONFLICT),
            |said| events(None, said, None),
        ),
        (Method::DELETE, Some(_)) => {
            id.iter().for_each(|id| sessions.end(id));
            status(StatusCode::NO_CONTENT)
        }
        (_, None) if id.is_some() => status(StatusCode::NOT_FOUND),
        (_, None) => status(StatusCode::BAD_REQUEST),
        (_, Some(_)) => status(StatusCode::METHOD_NOT_ALLOWED),
    })
}

/// Reads a message, where there is room for it.
async fn message(
    request: Request<Incoming>,
    sessions: &Sessions,
    caller: &Rc<str>,
    session: Option<&Session>,
) -> Result<Message, StatusCode> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    // The gate says how long it is.
    let length = length.unwrap_or(MESSAGE_BYTES_MAX);
    if length > MESSAGE_BYTES_MAX {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let held = sessions.waits(caller, session, length);
    let mut body = Limited::new(request.into_body(), length);
    if held.is_none() {
        // It is taken all the same: whoever still sends does not hear a refusal.
        while let Some(Ok(_)) = body.frame().await {}
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let body = body.collect().await;
    let body = body.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?.to_bytes();
    Message::new(body.into(), held).ok_or(StatusCode::BAD_REQUEST)
}

/// Starts a process for a client that begins.
async fn begin(
    request: Request<Incoming>,
    sessions: &Sessions,
) -> Result<Response<Body>, StatusCode> {
    let caller = request.headers().get(TOOL_CALLER);
    let caller = caller.and_then(|caller| caller.to_str().ok());
    let caller: Rc<str> = caller.unwrap_or_default().into();
    let message = message(request, sessions, &caller, None).await?;
    let id = chance().ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
    let place = sessions.place(&caller).await;
    let place = place.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    // It may be so since it was waited: nobody would end a process that began now.
    if sessions.is_over() {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let (server, program) = (&*sessions.bridge.server, &sessions.bridge.program);
    let unread = Rc::clone(&sessions.room.unread);
    let session = Session::begin(server, program, caller, (Some(place), unread));
    let session = session.map_err(|error| {
        tracing::warn!(server, command = program.command, %error, "cannot start a server of tools");
        StatusCode::BAD_GATEWAY
    })?;
    let begun = Begun::new(id.clone(), Rc::clone(&session), sessions);
    let (mut told, is_known) = match posted(&session, message).await {
        Answer::Events(mut said) => match said.recv().await {
            Some(first) => (events(Some(first), said, Some(session)), true),
            // Its process ended, and says why in the log.
            None => (status(StatusCode::BAD_GATEWAY), false),
        },
        Answer::Status(code) => (status(code), code.is_success()),
    };
    begun.answered(is_known);
    if is_known && let Ok(id) = id.parse() {
        told.headers_mut().insert(SESSION_ID, id);
    }
    Ok(told)
}

/// How a message is answered.
enum Answer {
    Status(StatusCode),
    /// By what its process says.
    Events(Receiver<Line>),
}

/// One message.
async fn posted(session: &Rc<Session>, message: Message) -> Answer {
    let Some(envelope) = message.read() else {
        return Answer::Status(StatusCode::BAD_REQUEST);
    };
    if envelope.id.is_none() || envelope.method.is_none() {
        let is_taken = session.send(message).await;
        return Answer::Status(if is_taken {
            StatusCode::ACCEPTED
        } else {
            StatusCode::BAD_GATEWAY
        });
    }
    let Some(said) = session.call(&envelope) else {
        return Answer::Status(StatusCode::CONFLICT);
    };
    if !session.send(message).await {
        return Answer::Status(StatusCode::BAD_GATEWAY);
    }
    Answer::Events(said)
}

/// What is said, as events; a session is in use as long as somebody hears of it.
fn events(first: Option<Line>, said: Receiver<Line>, of: Option<Rc<Session>>) -> Response<Body> {
    let mut response = Response::new(Body::Events { first, said, of });
    let kind = header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What an answer holds.
enum Body {
    Nothing,
    Events {
        first: Option<Line>,
        said: Receiver<Line>,
        of: Option<Rc<Session>>,
    },
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self::Events { first, said, of } = &mut *self else {
            return Poll::Ready(None);
        };
        let line = match first.take() {
            Some(first) => Some(first),
            None => ready!(said.poll_recv(cx)),
        };
        if let Some(session) = of {
            session.used.set(Instant::now());
        }
        Poll::Ready(line.map(|line| Ok(Frame::data(format!("data: {}\n\n", line.text).into()))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Nothing);
    *response.status_mut() = status;
    response
}
