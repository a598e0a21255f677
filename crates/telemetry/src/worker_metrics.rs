//! One worker's facts: where `policy` puts its records.
//!
//! Invariant: owned by one worker; no lock, no atomic, no wait. A scrape takes a copy. Dropping it
//! hands over the lines that it still holds.
//! Not here: merging the workers' copies (`merge`), the text page (`render`).

use std::any::Any;
use std::fmt::Display;
use std::time::Duration;

use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record, Sink, Trouble, Wait};
use policy::snapshot::Snapshot;
use policy::trace::AttemptSpan;

use crate::access_log::Lines;
use crate::conditions::Reporter;
use crate::histogram::ASKED;
use crate::names::NameId;
use crate::series::{CellKey, Series, operation_index};
use crate::traces::Spans;
use crate::view::{Views, refused};

/// A worker's metrics and its buffers of access-log lines and spans.
#[derive(Debug, Default)]
pub struct WorkerMetrics {
    series: Series,
    views: Views,
    lines: Option<Lines>,
    spans: Option<Spans>,
    reporter: Option<Reporter>,
}

impl WorkerMetrics {
    /// Nothing counted yet; with `lines`, each exchange leaves an access-log line there.
    #[must_use]
    pub fn new(lines: Option<Lines>) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }

    /// With `reporter`, the log is told of trouble.
    #[must_use]
    pub fn with_reporter(self, reporter: Option<Reporter>) -> Self {
        Self { reporter, ..self }
    }

    /// With `spans`, each sampled exchange leaves its spans there.
    #[must_use]
    pub fn with_spans(self, spans: Option<Spans>) -> Self {
        Self { spans, ..self }
    }
}

impl Sink for WorkerMetrics {
    fn exchange(&mut self, snapshot: &Snapshot, record: &Record) {
        let view = self.views.of(snapshot, &mut self.series);
        let key = CellKey {
            operation: operation_index(record.operation),
            workload: view.workload(record.workload),
            route: view.route(record.route),
            backend: view.backend(record.backend),
            model: view.model(record.model_sent.as_ref()),
        };
        self.series.ended(key, record);
        let tokens = &record.tokens;
        if let (true, Some(reporter)) = (tokens.is_charged_beyond_text(), &mut self.reporter) {
            reporter.charged_beyond_text(snapshot, record);
        }
        if let (true, Some(reporter)) = (tokens.is_disbelieved(), &mut self.reporter) {
            reporter.disbelieved(snapshot, record);
        }
        if !snapshot.prices.is_empty() {
            let charge = record.charge;
            let currency = charge.map_or(NameId::NONE, |charge| view.currency(charge.price));
            let cost = charge.and_then(|charge| charge.cost).map(|cost| cost.0);
            let of = [key.workload, key.model, currency];
            self.series.charged(of, cost, record);
        }
        if let Some(kind) = record.limited {
            refused(&mut self.series, key.workload, key.route, kind);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(view.names_cached(snapshot), snapshot, record);
        }
        if let Some(spans) = &mut self.spans {
            spans.exchange(snapshot, record);
        }
    }

    fn attempt(&mut self, snapshot: &Snapshot, attempt: &AttemptRecord) {
        let view = self.views.of(snapshot, &mut self.series);
        view.tried(
            &mut self.series,
            attempt.endpoint,
            attempt.result,
            attempt.retry,
        );
        // What was not sent says nothing of its endpoint, neither good nor bad.
        if let (Ok(_), None, Some(reporter)) =
            (attempt.result, attempt.trouble(), &mut self.reporter)
        {
            reporter.well(snapshot, attempt.endpoint);
        }
    }

    fn trouble(&mut self, snapshot: &Snapshot, trouble: Trouble, detail: &dyn Display) {
        if let Some(reporter) = &mut self.reporter {
            reporter.trouble(snapshot, trouble, detail);
        }
    }

    fn span(&mut self, snapshot: &Snapshot, span: &AttemptSpan) {
        if let Some(spans) = &mut self.spans {
            spans.attempt(snapshot, span);
        }
    }

    fn abandoned(&mut self, rest: DisconnectOutcome) {
        let rests = DisconnectOutcome::ALL
            .iter()
            .zip(&mut self.series.abandoned);
        for (_, n) in rests.filter(|(this, _)| **this == rest) {
            *n += 1;
        }
    }

    fn waited(&mut self, what: Wait, took: Duration) {
        let all = Wait::ALL.iter().zip(&mut self.series.waits);
        for (_, times) in all.filter(|(this, _)| **this == what) {
            times.time(&ASKED, took);
        }
    }

    fn closed(&mut self, at: Closed) {
        let all = Closed::ALL.iter().zip(&mut self.series.closed);
        for (_, n) in all.filter(|(this, _)| **this == at) {
            *n += 1;
        }
    }

    fn moved(&mut self, connections: u64) {
        self.series.moved += connections;
    }

    fn gauge(&mut self, gauge: Gauge, delta: i64) {
        self.series.gauges[gauge_index(gauge)] += delta;
    }

    fn tick(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.flush();
        }
        if let Some(spans) = &mut self.spans {
            spans.flush();
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.flush();
        }
    }

    fn copy(&self) -> Box<dyn Any + Send> {
        Box::new(MetricsSnapshot(self.series.clone()))
    }
}

/// What one worker had counted when it was asked.
#[derive(Debug, Clone)]
pub struct MetricsSnapshot(pub(crate) Series);

impl MetricsSnapshot {
    /// The copy behind what [`Sink::copy`] of a [`WorkerMetrics`] returned; `None` for another sink's.
    #[must_use]
    pub fn of(any: Box<dyn Any + Send>) -> Option<Self> {
        any.downcast().ok().map(|copied| *copied)
    }
}

/// Position of a gauge in tables.
pub(crate) fn gauge_index(gauge: Gauge) -> usize {
    match gauge {
        Gauge::Connections => 0,
        Gauge::Exchanges => 1,
        Gauge::Streams => 2,
        Gauge::UpstreamConnections => 3,
        Gauge::ReadsToEnd => 4,
        Gauge::BodyBytes => 5,
    }
}

#[cfg(test)]
mod tests;
