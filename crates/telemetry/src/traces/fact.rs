//! What a worker hands over of a sampled exchange: facts, not yet words.
//!
//! Invariant: a fact outlives the snapshot that it came with.
//! Not here: how facts become spans (`otlp`).

use std::sync::Arc;

use policy::record::{Names, Record};
use policy::snapshot::Snapshot;
use policy::trace::{AttemptSpan, Trace};

/// One span's facts.
#[derive(Debug, Clone)]
pub(super) enum Fact {
    /// An exchange.
    Exchange(Box<Exchange>),
    /// One of its attempts.
    Attempt(Attempt),
}

#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) trace: Trace,
    pub(super) record: Record,
    pub(super) workload: Option<Arc<str>>,
    pub(super) route: Option<Arc<str>>,
    pub(super) backend: Option<Arc<str>>,
    pub(super) endpoint: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) span: AttemptSpan,
    pub(super) backend: Option<Arc<str>>,
    pub(super) endpoint: Option<Arc<str>>,
    /// Where it went: host and port.
    pub(super) server: Option<(String, u16)>,
}

impl Fact {
    pub(super) fn exchange(trace: Trace, snapshot: &Snapshot, record: &Record) -> Self {
        let names = Names::of(snapshot, record);
        Self::Exchange(Box::new(Exchange {
            trace,
            workload: names.workload.cloned(),
            route: names.route.cloned(),
            backend: names.backend.cloned(),
            endpoint: names.endpoint.map(|e| Arc::clone(&e.name)),
            record: record.clone(),
        }))
    }

    pub(super) fn attempt(snapshot: &Snapshot, span: &AttemptSpan) -> Self {
        let Names {
            backend, endpoint, ..
        } = Names::of_endpoint(snapshot, span.endpoint);
        Self::Attempt(Attempt {
            span: *span,
            backend: backend.cloned(),
            endpoint: endpoint.map(|e| Arc::clone(&e.name)),
            server: endpoint.map(|e| (e.origin.host.clone(), e.origin.port)),
        })
    }
}
