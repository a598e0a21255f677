//! Batches on their way to a collector that takes them, is away, or refuses.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use policy::record::Sink;
use policy::trace::Trace;
use prost::Message as _;

use super::{Collector, Service, TraceStats, Traces, Undelivered};
use crate::sample::{completed, snapshot};
use crate::worker_metrics::WorkerMetrics;

struct Told {
    answers: Vec<Result<(), Undelivered>>,
    offers: Sender<usize>,
}

impl Collector for Told {
    fn offer(&mut self, request: &[u8], _: Duration) -> Result<(), Undelivered> {
        let read = ExportTraceServiceRequest::decode(request).expect("it is OTLP");
        let spans = read.resource_spans.iter().flat_map(|of| &of.scope_spans);
        self.offers
            .send(spans.map(|of| of.spans.len()).sum())
            .expect("the test listens");
        if self.answers.len() > 1 {
            self.answers.remove(0)
        } else {
            self.answers[0].clone()
        }
    }
}

fn traces(answers: &[Result<(), Undelivered>]) -> (Traces, Receiver<usize>) {
    let (offers, offered) = channel();
    let service = Service {
        name: "t".to_owned(),
        version: "0".to_owned(),
        instance: "0".to_owned(),
    };
    let answers = answers.to_vec();
    (
        Traces::start(service, Told { answers, offers }).unwrap(),
        offered,
    )
}

fn facts(traces: &Traces) -> WorkerMetrics {
    WorkerMetrics::new(None).with_spans(Some(traces.spans()))
}

fn exchanges(facts: &mut WorkerMetrics, count: u64, is_sampled: bool) {
    let snapshot = snapshot("v1", &["a"]);
    for n in 1..=count {
        let mut record = completed(0);
        record.trace = Some(Trace {
            id: 1,
            span: n,
            parent: None,
            is_sampled,
        });
        facts.exchange(&snapshot, &record);
    }
}

fn later() -> Result<(), Undelivered> {
    Err(Undelivered::Later("nobody listens".to_owned()))
}

#[test]
fn spans_arrive_together_within_about_a_second() {
    let (traces, offered) = traces(&[Ok(())]);
    let mut facts = facts(&traces);
    exchanges(&mut facts, 5, true);
    exchanges(&mut facts, 5, false);
    facts.tick();
    let began = Instant::now();
    assert_eq!(offered.recv_timeout(Duration::from_secs(5)), Ok(5));
    assert!(
        began.elapsed() > Duration::from_millis(500),
        "they waited for company"
    );
    exchanges(&mut facts, 3, true);
    drop(facts);
    traces.close();
    assert_eq!(
        offered.try_recv(),
        Ok(3),
        "what a worker held at its end is sent"
    );
    assert_eq!(
        traces.stats(),
        TraceStats {
            sent: 8,
            ..TraceStats::default()
        }
    );
}

#[test]
fn a_batch_is_offered_again_when_the_collector_is_away() {
    let (traces, offered) = traces(&[later(), Ok(())]);
    let mut facts = facts(&traces);
    exchanges(&mut facts, 64, true);
    assert_eq!(offered.recv_timeout(Duration::from_secs(5)), Ok(64));
    assert_eq!(offered.recv_timeout(Duration::from_secs(5)), Ok(64));
    drop(facts);
    traces.close();
    let stats = traces.stats();
    assert_eq!((stats.sent, stats.failures, stats.undelivered), (64, 1, 0));
}

#[test]
fn what_a_collector_never_takes_is_dropped_at_once_and_counted() {
    let never = Err(Undelivered::Never("400".to_owned()));
    let (traces, offered) = traces(&[never]);
    let mut facts = facts(&traces);
    exchanges(&mut facts, 64, true);
    assert_eq!(offered.recv_timeout(Duration::from_secs(5)), Ok(64));
    drop(facts);
    traces.close();
    assert_eq!(offered.try_recv().ok(), None, "it was offered once");
    let stats = traces.stats();
    assert_eq!((stats.sent, stats.failures, stats.undelivered), (0, 1, 64));
}

#[test]
fn a_dead_collector_costs_workers_nothing_but_counted_spans() {
    let (traces, _offered) = traces(&[later()]);
    let mut facts = facts(&traces);
    let began = Instant::now();
    const SPANS: u64 = 20_000;
    exchanges(&mut facts, SPANS, true);
    facts.tick();
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "a worker waited: {:?}",
        began.elapsed()
    );
    assert!(
        traces.stats().crowded_out > SPANS / 2,
        "{:?}",
        traces.stats()
    );
    drop(facts);
    let closing = Instant::now();
    traces.close();
    assert!(
        closing.elapsed() < Duration::from_secs(4),
        "{:?}",
        closing.elapsed()
    );
    let stats = traces.stats();
    assert_eq!(
        stats.crowded_out + stats.undelivered,
        SPANS,
        "each is counted once: {stats:?}"
    );
}
