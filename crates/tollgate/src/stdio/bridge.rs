//! What the gate asks a command, over HTTP on loopback.
//!
//! Invariant: a request without the bridge's secret is refused before anything of it is read.
//! Not here: the process (`session`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

use super::session::{Envelope, Session};
use super::{Bridge, chance};

/// Most processes of one command.
const SESSIONS_MAX: usize = 64;
/// Most of them that one caller has: the others are left to others.
const EACH_MAX: usize = 48;
/// How long a process may wait for its client.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Longest message.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// One that was not used for so long may end for a client that begins.
const LEFT_AFTER: Duration = Duration::from_secs(60);
const SESSION_ID: &str = "mcp-session-id";

type Sessions = RefCell<HashMap<String, Rc<Session>>>;

/// Serves a bridge until no configuration has it.
pub(super) async fn serve(bridge: Arc<Bridge>) {
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
    let sessions: Rc<Sessions> = Rc::default();
    let mut tidying = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, _)) => {
                    let (bridge, sessions) = (Arc::clone(&bridge), Rc::clone(&sessions));
                    tokio::task::spawn_local(async move {
                        let service = service_fn(|request| answer(request, &bridge, &sessions));
                        let serving = http1::Builder::new().serve_connection(TokioIo::new(tcp), service);
                        if let Err(error) = serving.await {
                            tracing::debug!(%error, "a connection to a command ended");
                        }
                    });
                }
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            _ = tidying.tick() => tidy(&sessions),
            () = bridge.over.notified() => break,
        }
    }
    for session in sessions.borrow().values() {
        session.end();
    }
}

/// Ends what nobody uses.
fn tidy(sessions: &Sessions) {
    sessions.borrow_mut().retain(|_, session| {
        let is_idle = !session.is_busy() && session.used.get().elapsed() > IDLE_MAX;
        if is_idle {
            session.end();
        }
        !is_idle && !session.is_over()
    });
}

async fn answer(
    request: Request<Incoming>,
    bridge: &Bridge,
    sessions: &Sessions,
) -> Result<Response<Body>, Infallible> {
    let secret = request.headers().get(header::AUTHORIZATION);
    if !secret.is_some_and(|secret| bridge.secret.is(secret.as_bytes())) {
        return Ok(status(StatusCode::UNAUTHORIZED));
    }
    if bridge.is_over.load(Ordering::Acquire) {
        return Ok(status(StatusCode::SERVICE_UNAVAILABLE));
    }
    let id = request.headers().get(SESSION_ID);
    let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
    let open = id
        .as_ref()
        .and_then(|id| sessions.borrow().get(id).cloned());
    let open = open.filter(|session| !session.is_over());
    Ok(match (request.method().clone(), open) {
        (Method::POST, None) if id.is_none() => begin(request, bridge, sessions).await,
        (Method::POST, Some(session)) => {
            let Some(text) = text(request).await else {
                return Ok(status(StatusCode::PAYLOAD_TOO_LARGE));
            };
            match posted(&session, &text).await {
                Answer::Events(said) => events(None, said, Some(session)),
                Answer::Status(code) => status(code),
            }
        }
        (Method::GET, Some(session)) => session.listen().map_or_else(
            || status(StatusCode::CONFLICT),
            |said| events(None, said, None),
        ),
        (Method::DELETE, Some(session)) => {
            session.end();
            let _ended = id.and_then(|id| sessions.borrow_mut().remove(&id));
            status(StatusCode::NO_CONTENT)
        }
        (_, None) if id.is_some() => status(StatusCode::NOT_FOUND),
        (_, None) => status(StatusCode::BAD_REQUEST),
        (_, Some(_)) => status(StatusCode::METHOD_NOT_ALLOWED),
    })
}

async fn text(request: Request<Incoming>) -> Option<String> {
    let body = Limited::new(request.into_body(), MESSAGE_BYTES_MAX);
    let body = body.collect().await.ok()?.to_bytes();
    String::from_utf8(body.to_vec()).ok()
}

/// Starts a process for a client that begins.
async fn begin(request: Request<Incoming>, bridge: &Bridge, sessions: &Sessions) -> Response<Body> {
    let caller = request.headers().get(TOOL_CALLER);
    let caller = caller.and_then(|caller| caller.to_str().ok());
    let caller: Box<str> = caller.unwrap_or_default().into();
    let Some(text) = text(request).await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Some(id) = chance() else {
        return status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    if let Err(full) = make_room(sessions, &caller) {
        match full {
            Full::Command => tracing::warn!(
                server = bridge.server,
                SESSIONS_MAX,
                "a server of tools has as many processes as it may have: a new session waits or is refused"
            ),
            Full::Caller => tracing::warn!(
                server = bridge.server,
                EACH_MAX,
                "one caller has as many processes of a server of tools as one may have: a new session of that caller waits or is refused"
            ),
        }
        return status(StatusCode::SERVICE_UNAVAILABLE);
    }
    let session = match Session::begin(&bridge.server, &bridge.program, caller) {
        Ok(session) => session,
        Err(error) => {
            tracing::warn!(server = bridge.server, command = bridge.program.command, %error, "cannot start a server of tools");
            return status(StatusCode::BAD_GATEWAY);
        }
    };
    let begun = Begun::new(id.clone(), Rc::clone(&session), sessions);
    let mut told = match posted(&session, &text).await {
        Answer::Events(mut said) => match said.recv().await {
            Some(first) => {
                begun.is_known.set(true);
                events(Some(first), said, Some(session))
            }
            // Its process ended, and says why in the log.
            None => status(StatusCode::BAD_GATEWAY),
        },
        Answer::Status(code) => {
            begun.is_known.set(code.is_success());
            status(code)
        }
    };
    if begun.is_known.get()
        && let Ok(id) = id.parse()
    {
        told.headers_mut().insert(SESSION_ID, id);
    }
    told
}

/// A session whose client does not know its id yet: where the client does not wait, its process ends.
struct Begun<'a> {
    id: String,
    session: Rc<Session>,
    sessions: &'a Sessions,
    is_known: Cell<bool>,
}

impl<'a> Begun<'a> {
    fn new(id: String, session: Rc<Session>, sessions: &'a Sessions) -> Self {
        let mut open = sessions.borrow_mut();
        open.insert(id.clone(), Rc::clone(&session));
        Self {
            id,
            session,
            sessions,
            is_known: Cell::new(false),
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_known.get() {
            self.session.end();
            self.sessions.borrow_mut().remove(&self.id);
        }
    }
}

/// Ends the process that has waited the longest for its client, and at least a minute, where there are too many.
fn make_room(sessions: &Sessions, caller: &str) -> Result<(), Full> {
    tidy(sessions);
    let mut sessions = sessions.borrow_mut();
    let is_its = |session: &Session| *session.caller == *caller;
    let own = sessions.values().filter(|session| is_its(session)).count();
    let full = match (own < EACH_MAX, sessions.len() < SESSIONS_MAX) {
        (true, true) => return Ok(()),
        (true, false) => Full::Command,
        (false, _) => Full::Caller,
    };
    // Nobody's process ends for another client while it is in use, and whoever has his share makes room of his own.
    let idle = sessions.iter().filter(|(_, session)| {
        let is_left = !session.is_busy() && session.used.get().elapsed() >= LEFT_AFTER;
        is_left && (full == Full::Command || is_its(session))
    });
    let oldest = idle.min_by_key(|(_, session)| session.used.get());
    if let Some(id) = oldest.map(|(id, _)| id.clone())
        && let Some(session) = sessions.remove(&id)
    {
        session.end();
        return Ok(());
    }
    Err(full)
}

/// Why no process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    /// The command has as many as it may have.
    Command,
    /// The caller has.
    Caller,
}

/// How a message is answered.
enum Answer {
    Status(StatusCode),
    /// By what its process says.
    Events(Receiver<String>),
}

/// One message.
async fn posted(session: &Rc<Session>, text: &str) -> Answer {
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else {
        return Answer::Status(StatusCode::BAD_REQUEST);
    };
    if envelope.id.is_none() || envelope.method.is_none() {
        let is_taken = session.send(text).await;
        return Answer::Status(if is_taken {
            StatusCode::ACCEPTED
        } else {
            StatusCode::BAD_GATEWAY
        });
    }
    let Some(said) = session.call(&envelope) else {
        return Answer::Status(StatusCode::CONFLICT);
    };
    if !session.send(text).await {
        return Answer::Status(StatusCode::BAD_GATEWAY);
    }
    Answer::Events(said)
}

/// What is said, as events; a session is in use as long as somebody hears of it.
fn events(
    first: Option<String>,
    said: Receiver<String>,
    of: Option<Rc<Session>>,
) -> Response<Body> {
    let mut response = Response::new(Body::Events { first, said, of });
    let kind = header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What an answer holds.
enum Body {
    Nothing,
    Events {
        first: Option<String>,
        said: Receiver<String>,
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
        Poll::Ready(line.map(|line| {
            Ok(Frame::data(
                format!(
                    "data: {line}

"
                )
                .into(),
            ))
        }))
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

#[cfg(test)]
mod tests {
    use config::Program;

    use super::*;

    #[test]
    fn a_process_whose_client_did_not_wait_ends_and_a_call_that_nobody_waits_for_keeps_none() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let local = tokio::task::LocalSet::new();
        runtime.block_on(local.run_until(async {
            let program = Program {
                command: "cat".into(),
                args: Vec::new(),
                environment: Vec::new(),
                directory: None,
            };
            let begun = Session::begin("echo", &program, "a".into());
            let session = begun.expect("a process");
            let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
            let envelope = serde_json::from_str(message).expect("a message");
            let waits = session.call(&envelope).expect("a call");
            assert!(session.is_busy());
            drop(waits);
            assert!(!session.is_busy());
            let sessions = Sessions::default();
            let known = Begun::new("a".into(), Rc::clone(&session), &sessions);
            known.is_known.set(true);
            drop(known);
            assert_eq!(sessions.borrow().len(), 1);
            drop(Begun::new("a".into(), Rc::clone(&session), &sessions));
            assert!(sessions.borrow().is_empty());
            // It is told by then: nobody but its own task is waited for.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(session.is_over());
        }));
    }

    #[test]
    fn one_caller_leaves_processes_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let local = tokio::task::LocalSet::new();
        runtime.block_on(local.run_until(async {
            let program = Program {
                command: "cat".into(),
                args: Vec::new(),
                environment: Vec::new(),
                directory: None,
            };
            let sessions = Sessions::default();
            let begin = |caller: &str, nth: usize| -> Result<(), Full> {
                make_room(&sessions, caller)?;
                let begun = Session::begin("echo", &program, caller.into());
                let session = begun.expect("a process");
                let id = format!("{caller}{nth}");
                sessions.borrow_mut().insert(id, session);
                Ok(())
            };
            for nth in 0..EACH_MAX {
                assert_eq!(begin("a", nth), Ok(()));
            }
            assert_eq!(begin("a", EACH_MAX), Err(Full::Caller));
            for nth in 0..SESSIONS_MAX - EACH_MAX {
                assert_eq!(begin("b", nth), Ok(()));
            }
            assert_eq!(begin("b", 99), Err(Full::Command));
            assert_eq!(begin("a", 99), Err(Full::Caller));
            let all: Vec<_> = sessions.borrow().values().cloned().collect();
            for session in &all {
                session.end();
            }
            while !all.iter().all(|session| session.is_over()) {
                tokio::task::yield_now().await;
            }
        }));
    }
}
