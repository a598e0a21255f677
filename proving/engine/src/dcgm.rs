//! The page of a DCGM exporter beside the engine, so that its GPUs can be scraped though there are none.
//!
//! Invariant: figures are of whole seconds or more, however often they are scraped. One `# HELP` and one `# TYPE` for
//! each family, then one line for each GPU. The host is named twice: exporters before 4.5 say `Hostname`, which AIPerf
//! reads, and later ones `hostname`.
//! Not here: the families and how their figures follow from steps (`simulator::gpus`).

use std::convert::Infallible;
use std::fmt::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use simulator::gpus::{Activity, Gpus, dcgm};

use crate::listener;

const LEAST_SPAN: Duration = Duration::from_secs(1);
const HOSTNAME: &str = "simulated";

/// What the GPUs did, and what was last shown of it.
#[derive(Debug)]
pub(crate) struct ActivityMeter {
    gpus: Gpus,
    /// Engines in parallel, each with so many GPUs.
    ranks: usize,
    now: Activity,
    shown: Activity,
    since: Instant,
}

impl ActivityMeter {
    pub(crate) fn new(gpus: Gpus, ranks: usize) -> Self {
        Self {
            gpus,
            ranks,
            now: Activity::default(),
            shown: Activity::default(),
            since: Instant::now(),
        }
    }

    pub(crate) fn record(&mut self, took: Duration, tokens: u64) {
        self.now.record(took, tokens);
    }

    fn page(&mut self) -> String {
        let span = self.since.elapsed();
        if span >= LEAST_SPAN {
            self.shown = self.now.close(span, &self.gpus);
            self.since = Instant::now();
        }
        page(&self.shown, &self.gpus, self.ranks, HOSTNAME)
    }
}

type Shared = Option<Arc<Mutex<ActivityMeter>>>;

/// Answers `GET /metrics` until it is dropped; without a machine there is no page.
pub(crate) async fn serve(listener: TcpListener, meter: Shared) {
    // An error here is a listener that the runtime does not take: then there is no page.
    let _ = listener::serve(listener, std::future::pending::<()>(), |stream| {
        connection(stream, meter.clone())
    })
    .await;
}

async fn connection(stream: tokio::net::TcpStream, meter: Shared) {
    let service =
        hyper::service::service_fn(move |request| std::future::ready(answer(&meter, &request)));
    // An error here is a client that left or spoke no HTTP; either way the connection is over.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(
    meter: &Shared,
    request: &Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let page = meter
        .as_ref()
        .filter(|_| request.uri().path() == "/metrics")
        .map(|meter| meter.lock().unwrap_or_else(PoisonError::into_inner).page());
    let found = page.is_some();
    let mut response = Response::new(Full::new(Bytes::from(page.unwrap_or_default())));
    if !found {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, form);
    Ok(response)
}

fn page(activity: &Activity, gpus: &Gpus, ranks: usize, hostname: &str) -> String {
    let mut page = String::new();
    for family in dcgm::families(activity, gpus) {
        let (name, kind, help) = (family.name, family.kind, family.help);
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for gpu in 0..gpus.count * ranks as u32 {
            let labels = dcgm::labels(gpu, gpus, hostname);
            let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(&value)));
            let _ = writeln!(page, "{name}{{{}}} {}", labels.join(","), family.value);
        }
    }
    page
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
