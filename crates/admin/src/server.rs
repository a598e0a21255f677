//! Connections, and the pages that stand beside the API: probes, metrics, configuration, ledger.
//!
//! Not here: the API (`api`), who is answered (`access`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::gateway::{Gateway, Health};
use crate::reply::{Reply, fault, json, method_not_allowed, text};
use crate::{access, api};

/// Connections served at once; more wait.
const CONNECTIONS: usize = 256;

/// Serves until aborted.
pub async fn serve<G: Gateway>(listener: std::net::TcpListener, gateway: Arc<G>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot serve the admin endpoint");
            return;
        }
    };
    let slots = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
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
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let _slot = slot;
            let service = service_fn(|request| answer(request, &*gateway));
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

async fn answer<B>(request: Request<B>, gateway: &impl Gateway) -> Result<Reply, Infallible> {
    if let Some(refused) = access::refused(&request, &gateway.access()) {
        return Ok(refused);
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    Ok(match request.uri().path() {
        "/livez" | "/health" | "/healthz" | "/readyz" | "/metrics" | "/stats/prometheus"
        | "/config" | "/ledger"
            if !is_read =>
        {
            method_not_allowed()
        }
        "/livez" | "/healthz" => {
            let health = gateway.health();
            probe(health.is_alive || health.is_draining, health)
        }
        "/health" | "/readyz" => {
            let health = gateway.health();
            probe(health.is_ready, health)
        }
        "/metrics" | "/stats/prometheus" => text(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            gateway.metrics().await,
        ),
        path if api::is_of(path) => api::answer(request.method(), path, gateway),
        path => {
            let name = path.strip_prefix('/');
            let name = name.filter(|name| matches!(*name, "config" | "ledger"));
            match name.and_then(|name| api::resource(name, gateway)) {
                Some(resource) => json(&resource),
                None => fault(
                    StatusCode::NOT_FOUND,
                    "unknown_url",
                    "here are /livez, /readyz, /health, /metrics, /stats/prometheus, /config and, where there is one, /ledger",
                ),
            }
        }
    })
}

fn probe(good: bool, health: Health) -> Reply {
    let (status, word) = if good {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, health.unwell())
    };
    let ledger = if health.ledger_available == Some(false) {
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

#[cfg(test)]
mod tests;
