//! The admin listener: health, readiness, metrics, configuration.
//!
//! Invariant: nothing here changes anything, and nothing here can show a secret: `/config` is the
//! redacted document that `config` made. On loopback, only a loopback `Host` is answered, so that a
//! web page cannot read it by rebinding its name.
//! Not here: the data plane (`proxy`).

mod extras;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use telemetry::{Copied, Merged};

use crate::counting::Counting;
use crate::running::Running;

/// Connections served at once; more wait.
const CONNECTIONS: usize = 256;

/// Serves until aborted.
pub(crate) async fn serve(listener: std::net::TcpListener, running: Arc<Running>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot serve the admin endpoint");
            return;
        }
    };
    let is_loopback = listener.local_addr().is_ok_and(|a| a.ip().is_loopback());
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let tcp = match listener.accept().await {
            Ok((tcp, _)) => tcp,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(|request| answer(request, &running, is_loopback));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(tcp), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "admin connection ended");
            }
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    running: &Running,
    is_loopback: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if is_loopback && !names_loopback(&request) {
        return Ok(fault(
            StatusCode::FORBIDDEN,
            "forbidden_host",
            "ask by a loopback address",
        ));
    }
    let response = match request.uri().path() {
        "/livez" | "/health" | "/healthz" | "/readyz" | "/metrics" | "/stats/prometheus"
        | "/config" | "/ledger"
            if !matches!(*request.method(), Method::GET | Method::HEAD) =>
        {
            let mut refused = fault(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "use GET or HEAD",
            );
            refused
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            refused
        }
        "/livez" | "/healthz" => health(running.gate.is_alive() || is_draining(running), running),
        "/health" | "/readyz" => health(running.is_ready(), running),
        "/metrics" | "/stats/prometheus" => {
            let page = merged(running).await.render(&extras::of(running));
            text(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                page,
            )
        }
        "/config" => {
            let current = running.current();
            let page = serde_json::json!({
                "version": current.snapshot.version,
                "document": *current.document,
            });
            text(StatusCode::OK, "application/json", format!("{page:#}\n"))
        }
        "/ledger" if running.outlets.books.is_some() => text(
            StatusCode::OK,
            "application/json",
            extras::ledger_page(running),
        ),
        _ => fault(
            StatusCode::NOT_FOUND,
            "unknown_url",
            "here are /livez, /readyz, /health, /metrics, /stats/prometheus, /config and, where there is one, /ledger",
        ),
    };
    Ok(response)
}

/// All workers' facts, with everything configured at least at 0.
pub(crate) async fn merged(running: &Running) -> Merged {
    let copies = running.gate.scrape().await;
    let copies = copies.into_iter().filter_map(Copied::of);
    let counted = running.outlets.counting.as_ref().and_then(Counting::copy);
    let mut merged = telemetry::merge(copies.chain(counted).collect());
    merged.register(&running.current().snapshot);
    merged
}

fn is_draining(running: &Running) -> bool {
    running.draining.load(std::sync::atomic::Ordering::SeqCst)
}

fn health(good: bool, running: &Running) -> Response<Full<Bytes>> {
    let (status, word) = match (good, is_draining(running)) {
        (true, _) => (StatusCode::OK, "ok"),
        (false, true) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let ledger = if running.is_ledger_away() {
        ",\"ledger\":\"unavailable\""
    } else {
        ""
    };
    text(
        status,
        "application/json",
        format!("{{\"status\":\"{word}\"{ledger}}}\n"),
    )
}

fn fault(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    let body = serde_json::json!({
        "error": {
            "message": message, "type": "invalid_request_error", "param": null, "code": code
        }
    });
    text(status, "application/json", body.to_string())
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn names_loopback(request: &Request<Incoming>) -> bool {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|h| h.to_str().ok());
    let Some(host) = host else { return true };
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|b| b.is_ascii_digit()) {
            name
        } else {
            host
        }
    });
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
