//! `prove tool-server`: servers of tools (MCP) that give back what they are given, in a process of its own.
//!
//! Every path `/NAME/mcp` is a server, all of them alike: the tools `echo`, answered in JSON, `echo_events`, answered by an
//! event, `echo_session`, which tells its session as well, and `ask`, which wants to be asked again with its `requestState`; all for
//! clients with a session (2025-06-18, 2025-11-25) and without one (2026-07-28). A `GET` is a stream of one log
//! message a second.
//! Invariant: an answer carries the id of its request, and of what was asked nothing is kept.
//! Not here: what a message is answered (`answer`), an upstream for calls to models (`upstream`).

mod answer;
mod stream;

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use clap::Args;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::host::{descriptors, ports};
use crate::upstream;
use answer::{Answer, Kind};
use stream::Said;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BODY_BYTES_MAX: usize = 4 << 20;

/// Where it listens.
#[derive(Debug, Args)]
pub(crate) struct ToolServer {
    #[arg(long)]
    port: u16,
    /// Whoever connects here is told how many connections there were.
    #[arg(long)]
    count_port: Option<u16>,
}

/// What all connections share.
#[derive(Debug, Default)]
struct Shared {
    /// How many sessions were begun.
    sessions: AtomicU64,
}

/// Serves until it is ended from outside.
pub(crate) fn serve(options: &ToolServer) -> io::Result<()> {
    descriptors::raise();
    let connections = Arc::new(AtomicU64::new(0));
    if let Some(port) = options.count_port {
        let listener = TcpListener::bind(ports::loopback(port))?;
        let counted = Arc::clone(&connections);
        let tell = move || upstream::tell(&listener, || counted.load(Ordering::Relaxed));
        thread::Builder::new().name("count".into()).spawn(tell)?;
    }
    let serving = accept(options.port, &connections);
    crate::runtime::make_local()?.block_on(serving)
}

async fn accept(port: u16, connections: &AtomicU64) -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind(ports::loopback(port)).await?;
    let shared = Rc::new(Shared::default());
    loop {
        let (stream, _) = listener.accept().await?;
        connections.fetch_add(1, Ordering::Relaxed);
        // Without it only latency suffers.
        let _ = stream.set_nodelay(true);
        let shared = Rc::clone(&shared);
        let service = service_fn(move |request| {
            let shared = Rc::clone(&shared);
            async move { Ok::<_, Infallible>(shared.answer(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // An error is a client that left.
        tokio::task::spawn_local(async move { drop(connection.await) });
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Said> {
        match *request.method() {
            Method::POST => {}
            Method::GET if request.uri().path().ends_with("/mcp") => {
                return said(StatusCode::OK, Kind::Events, Said::ticking());
            }
            Method::GET | Method::DELETE => {
                return said(StatusCode::OK, Kind::Json, Said::whole(Bytes::new()));
            }
            _ => {
                return said(
                    StatusCode::METHOD_NOT_ALLOWED,
                    Kind::Json,
                    Said::whole(Bytes::new()),
                );
            }
        }
        let session = request.headers().get(SESSION);
        let session = session.and_then(|id| id.to_str().ok().map(str::to_owned));
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX);
        let Ok(body) = body.collect().await else {
            return said(
                StatusCode::PAYLOAD_TOO_LARGE,
                Kind::Json,
                Said::whole(Bytes::new()),
            );
        };
        let Answer {
            status,
            kind,
            begins,
            body,
        } = answer::answer(&body.to_bytes(), session.as_deref());
        let body = match kind {
            Kind::Json => Said::whole(body),
            Kind::Events => Said::event(body),
            Kind::Listening => Said::opened(body),
        };
        let mut response = said(status, kind, body);
        if begins {
            let number = self.sessions.fetch_add(1, Ordering::Relaxed);
            let id = format!("echo-{number:08x}-5f0c1f4e");
            let id = HeaderValue::from_str(&id).expect("letters and digits");
            response.headers_mut().insert(SESSION, id);
        }
        response
    }
}

fn said(status: StatusCode, kind: Kind, body: Said) -> Response<Said> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let says = match kind {
        Kind::Json => "application/json",
        Kind::Events | Kind::Listening => "text/event-stream",
    };
    let says = HeaderValue::from_static(says);
    response.headers_mut().insert(CONTENT_TYPE, says);
    response
}
