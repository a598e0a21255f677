//! A page of what goes on, for a browser: it asks for the state once a second.
//!
//! Invariant: it only ever answers GET, with its page or the state; other hosts' names are refused, so that no other
//! page can read it.
//! Not here: what the state is (`live`).

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::live::Now;

const PAGE: &str = include_str!("watch/page.html");
const SCRIPT: &str = include_str!("watch/page.js");
const STYLE: &str = include_str!("watch/page.css");
/// What a page of ours may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// A request's head may take so long.
const HEAD: std::time::Duration = std::time::Duration::from_secs(3);
/// Browsers that may look at once.
const MOST_CONNECTIONS: usize = 64;

/// The server of the page.
pub(super) struct Watch {
    state: Arc<Mutex<Bytes>>,
}

impl Watch {
    /// Listens.
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(Bytes::from_static(b"{}")));
        let runtime = crate::runtime::make()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        eprintln!("watch it at http://{}/", listener.local_addr()?);
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("watch".into())
            .spawn(move || runtime.block_on(serve(listener, shared)))?;
        Ok(Self { state })
    }

    /// Shows this from now on.
    pub(super) fn show(&self, now: &Now) {
        let json = serde_json::to_vec(now).expect("text keys and numbers");
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = json.into();
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<Bytes>>) {
    let permits = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request, &state);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // Who breaks off is gone.
            drop(http.serve_connection(TokioIo::new(stream), service).await);
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, state: &Mutex<Bytes>) -> Response<Full<Bytes>> {
    let host = request
        .headers()
        .get("host")
        .and_then(|host| host.to_str().ok());
    let name = host.map(|host| match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    });
    let is_address = |name: &str| {
        name.trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok()
    };
    if !name.is_some_and(|name| name == "localhost" || is_address(name)) {
        return plain(StatusCode::FORBIDDEN, "ask by address, or as localhost\n");
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "GET alone\n");
    }
    match request.uri().path() {
        "/" => with(PAGE.into(), "text/html; charset=utf-8"),
        "/page.js" => with(SCRIPT.into(), "text/javascript"),
        "/page.css" => with(STYLE.into(), "text/css"),
        "/state.json" => {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
            with(state, "application/json")
        }
        _ => plain(StatusCode::NOT_FOUND, "there are /, and /state.json\n"),
    }
}

fn plain(status: StatusCode, says: &'static str) -> Response<Full<Bytes>> {
    let mut response = with(says.into(), "text/plain");
    *response.status_mut() = status;
    response
}

fn with(body: Bytes, kind: &'static str) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .header("content-type", kind)
        .header("cache-control", "no-store")
        .header("x-content-type-options", "nosniff")
        .header("referrer-policy", "no-referrer")
        .header("content-security-policy", POLICY)
        .body(Full::new(body));
    response.expect("headers that are written here")
}
