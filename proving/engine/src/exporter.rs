//! The page of a DCGM exporter beside the engine, so that its GPUs can be scraped though there are none.
//!
//! Invariant: figures are of whole seconds or more, however often they are scraped.
//! Not here: what the figures are and how they follow from steps (`dcgm`).

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use crate::dcgm::{Activity, Gpus};
use crate::server::State;

const LEAST_SPAN: Duration = Duration::from_secs(1);
const HOSTNAME: &str = "simulated";

/// What the GPUs did, and what was last told of it.
#[derive(Debug)]
pub(crate) struct Gauge {
    gpus: Gpus,
    now: Activity,
    told: Activity,
    since: Instant,
}

impl Gauge {
    pub(crate) fn new(gpus: Gpus) -> Self {
        Self {
            gpus,
            now: Activity::default(),
            told: Activity::default(),
            since: Instant::now(),
        }
    }

    pub(crate) fn record(&mut self, took: Duration, tokens: u64) {
        self.now.record(took, tokens);
    }

    fn page(&mut self) -> String {
        let span = self.since.elapsed();
        if span >= LEAST_SPAN {
            self.told = self.now.close(span, &self.gpus);
            self.since = Instant::now();
        }
        self.told.page(&self.gpus, HOSTNAME)
    }
}

/// Answers `GET /metrics` until it is dropped.
pub(crate) async fn serve(listener: TcpListener, state: Arc<State>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(&state)))),
                // Out of descriptors: let some connections end before trying again.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

async fn connection(stream: tokio::net::TcpStream, state: Arc<State>) {
    let service =
        hyper::service::service_fn(move |request| std::future::ready(answer(&state, &request)));
    // An error here is a client that left or spoke no HTTP; either way the connection is over.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(state: &State, request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let page = state
        .gauge()
        .filter(|_| request.uri().path() == "/metrics")
        .map(|mut gauge| gauge.page());
    let found = page.is_some();
    let mut response = Response::new(Full::new(Bytes::from(page.unwrap_or_default())));
    if !found {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, form);
    Ok(response)
}
