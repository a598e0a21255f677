//! The admin listener: health, readiness, metrics, configuration.
//!
//! Invariant: nothing here changes anything, and nothing here can show a secret: `/config` is the
//! redacted document that `config` made. No web page is answered, neither one that says where it comes from
//! nor one that rebinds its name to this host; where a bearer is configured, nobody reads more than probes
//! without it.
//! Not here: the data plane (`proxy`).

mod extras;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use config::AdminAccess;
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
            let service = service_fn(|request| answer(request, &running));
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
) -> Result<Response<Full<Bytes>>, Infallible> {
    if let Some(refused) = refused(&request, &running.current().access) {
        return Ok(refused);
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

/// The answer to who may not ask.
fn refused(request: &Request<Incoming>, access: &AdminAccess) -> Option<Response<Full<Bytes>>> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    if !access.hosts.allows(header(header::HOST)) {
        let says = "the host that this request names is not one that is answered for; ask by a loopback \
                    address, or add it to listen.hosts";
        let status = StatusCode::MISDIRECTED_REQUEST;
        return Some(fault(status, "host_not_allowed", says));
    }
    let site = request.headers().get("sec-fetch-site");
    let is_foreign = site.is_some_and(|site| site != "none" && site != "same-origin");
    if header(header::ORIGIN).is_some() || is_foreign {
        let says = "web pages are not answered here";
        return Some(fault(StatusCode::FORBIDDEN, "origin_not_allowed", says));
    }
    let bearer = access.bearer.as_ref()?;
    let is_probe = matches!(
        request.uri().path(),
        "/livez" | "/health" | "/healthz" | "/readyz"
    );
    let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
    let is_known = match (given.next(), given.next()) {
        (Some(only), None) => brought(only).is_some_and(|secret| bearer.is(secret)),
        _ => false,
    };
    if is_probe || is_known {
        return None;
    }
    let says = "send the gateway's admin credential as authorization: Bearer …";
    let mut refused = fault(StatusCode::UNAUTHORIZED, "credential_required", says);
    let challenge = HeaderValue::from_static("Bearer realm=\"tollgate\"");
    let headers = refused.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    Some(refused)
}

/// What stands behind `Bearer`.
fn brought(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, secret) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(secret)
}
