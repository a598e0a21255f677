//! Connections, and the pages that stand beside the API: probes, metrics, configuration, ledger.
//!
//! Not here: the API (`api`), who asks (`access`).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use policy::admin::{Role, Roles};
use tokio::task::JoinHandle;

use crate::access::{By, Principal};
use crate::gateway::{Gateway, Health};
use crate::keys::KeyDesk;
use crate::reply::{Refusal, Reply, json, method_not_allowed, no_store, refusal, text};
use crate::{access, api, login};

/// Connections served at once: one more ends the oldest, so that nobody keeps probes out by holding on to all.
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
    let desk = Arc::new(KeyDesk::new(gateway));
    // The oldest first.
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let (tcp, from) = match listener.accept().await {
            Ok((tcp, from)) => (tcp, from.ip()),
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if open.len() >= CONNECTIONS {
            open.retain(|connection| !connection.is_finished());
        }
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let desk = Arc::clone(&desk);
        open.push_back(tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &desk, from));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(tcp), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "admin connection ended");
            }
        }));
    }
}

async fn answer<G: Gateway>(
    request: Request<Incoming>,
    desk: &KeyDesk<G>,
    from: IpAddr,
) -> Result<Reply, Infallible> {
    let answered = route(request, desk, from).await;
    Ok(answered.unwrap_or_else(|refused| *refused))
}

async fn route<G: Gateway>(
    request: Request<Incoming>,
    desk: &KeyDesk<G>,
    from: IpAddr,
) -> Result<Reply, Refusal> {
    let gateway = &*desk.gateway;
    let access = gateway.access();
    let people = gateway.people();
    let people = people.as_deref();
    access::check_origin(&request, &access, people)?;
    if let Some(probe) = probe(request.uri().path(), gateway.health()) {
        read_only(&request)?;
        return Ok(probe);
    }
    if let Some(people) = people
        && let Some(step) = login::step(&request, people, from).await?
    {
        return Ok(step);
    }
    let is_person = people.is_some() && access::is_for_a_person(&request);
    let caller = match (access::principal(&request, &access, people), people) {
        (Ok(caller), _) => caller,
        (Err(refused), Some(people))
            if is_person && refused.status() == StatusCode::UNAUTHORIZED =>
        {
            return Ok(login::instead(&request, people));
        }
        (Err(refused), _) => return Err(refused),
    };
    if caller.by != By::Session {
        return page(request, &caller, desk).await;
    }
    if is_person && caller.roles == Roles::NONE {
        return Ok(login::no_role(&caller));
    }
    if request.uri().path() == "/" {
        read_only(&request)?;
        return Ok(login::home(&caller, gateway));
    }
    // A browser keeps nothing of what it was shown for a session.
    let mut reply = page(request, &caller, desk).await?;
    no_store(&mut reply);
    Ok(reply)
}

async fn page<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    desk: &KeyDesk<G>,
) -> Result<Reply, Refusal> {
    let gateway = &*desk.gateway;
    let path = request.uri().path();
    if api::is_of(path) {
        return api::answer(request, caller, desk).await;
    }
    if !matches!(
        path,
        "/metrics" | "/stats/prometheus" | "/config" | "/ledger"
    ) {
        return Err(unknown());
    }
    caller.may(Role::Read)?;
    read_only(&request)?;
    match path {
        "/config" => Ok(json(&api::config(gateway))),
        "/ledger" => api::ledger(gateway)
            .map(|state| json(&state))
            .map_err(|_| unknown()),
        _ => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            Ok(text(StatusCode::OK, kind, gateway.metrics().await))
        }
    }
}

fn unknown() -> Refusal {
    let says = "here are /livez, /readyz, /health, /metrics, /stats/prometheus, /config, /api/v1 and, where there is \
                one, /ledger";
    refusal(StatusCode::NOT_FOUND, "unknown_url", says)
}

fn read_only<B>(request: &Request<B>) -> Result<(), Refusal> {
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(method_not_allowed(api::READ)),
    }
}

/// The answer of a probe, where a path is one.
fn probe(path: &str, health: Health) -> Option<Reply> {
    let good = match path {
        "/livez" | "/healthz" => health.is_alive || health.is_draining,
        "/health" | "/readyz" => health.is_ready,
        _ => return None,
    };
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
    let page = format!("{{\"status\":\"{word}\"{ledger}}}\n");
    Some(text(status, "application/json", page))
}

#[cfg(test)]
mod tests;
