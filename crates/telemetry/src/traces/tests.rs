//! Batches on their way to a collector that takes them, is away, or refuses.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use policy::record::Sink;
use policy::trace::Trace;
use prost::Message as _;
use testing::{Began, PATIENCE, eventually};

use super::spans::FULL;
use super::{
    BATCH, Collector, LINGER, Message, QUEUE, Service, TraceStats, Traces, Undelivered, close,
};
use crate::sample::{completed, snapshot};
use crate::worker_metrics::WorkerMetrics;

struct Told {
    answers: Vec<Result<(), Undelivered>>,
    offers: Sender<u64>,
}

/// How many there are in a batch.
fn spans(request: &[u8]) -> u64 {
    let read = ExportTraceServiceRequest::decode(request).expect("it is OTLP");
    let spans = read.resource_spans.iter().flat_map(|of| &of.scope_spans);
    spans.map(|of| of.spans.len() as u64).sum()
}

impl Collector for Told {
    fn offer(&mut self, request: &[u8], _: Duration) -> Result<(), Undelivered> {
        self.offers.send(spans(request)).expect("the test listens");
        if self.answers.len() > 1 {
            self.answers.remove(0)
        } else {
            self.answers[0].clone()
        }
    }
}

fn traces(answers: &[Result<(), Undelivered>]) -> (Traces, Receiver<u64>) {
    let (offers, offered) = channel();
    let answers = answers.to_vec();
    (
        Traces::start(service(), Told { answers, offers }).unwrap(),
        offered,
    )
}

fn service() -> Service {
    Service {
        name: "t".to_owned(),
        version: "0".to_owned(),
        instance: "0".to_owned(),
    }
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

/// Closes it as [`Traces::close`] does, and waits for its thread for as long as that takes.
fn end(traces: &Traces) {
    traces.shared.is_closing.store(true, Ordering::SeqCst);
    close(&traces.sender, &traces.queue, || Message::Close, PATIENCE);
}

#[test]
fn spans_arrive_together_within_about_a_second() {
    let (traces, offered) = traces(&[Ok(())]);
    let mut facts = facts(&traces);
    let began = Began::now();
    exchanges(&mut facts, 5, true);
    exchanges(&mut facts, 5, false);
    facts.tick();
    assert_eq!(offered.recv_timeout(PATIENCE), Ok(5));
    // They waited for company.
    began.took_at_least(LINGER);
    exchanges(&mut facts, 3, true);
    drop(facts);
    end(&traces);
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
    assert_eq!(offered.recv_timeout(PATIENCE), Ok(64));
    assert_eq!(offered.recv_timeout(PATIENCE), Ok(64));
    drop(facts);
    end(&traces);
    let stats = traces.stats();
    assert_eq!((stats.sent, stats.failures, stats.undelivered), (64, 1, 0));
}

#[test]
fn what_a_collector_never_takes_is_dropped_at_once_and_counted() {
    let never = Err(Undelivered::Never("400".to_owned()));
    let (traces, offered) = traces(&[never]);
    let mut facts = facts(&traces);
    exchanges(&mut facts, 64, true);
    assert_eq!(offered.recv_timeout(PATIENCE), Ok(64));
    drop(facts);
    end(&traces);
    assert_eq!(offered.iter().count(), 0, "it was offered once");
    let stats = traces.stats();
    assert_eq!((stats.sent, stats.failures, stats.undelivered), (0, 1, 64));
}

/// Answers nothing until it is let, and that it takes nothing from then on.
struct Dead {
    offers: Sender<u64>,
    let_go: Receiver<()>,
}

impl Collector for Dead {
    fn offer(&mut self, request: &[u8], _: Duration) -> Result<(), Undelivered> {
        self.offers.send(spans(request)).expect("the test listens");
        // Whoever waits for it after all waits not for ever.
        let let_go = self.let_go.recv_timeout(PATIENCE);
        assert_eq!(let_go, Err(RecvTimeoutError::Disconnected));
        later()
    }
}

#[test]
fn a_dead_collector_costs_workers_nothing_but_counted_spans() {
    let (offers, offered) = channel();
    let (let_go, held) = channel();
    let dead = Dead {
        offers,
        let_go: held,
    };
    let traces = Traces::start(service(), dead).unwrap();
    let mut facts = facts(&traces);
    const FIRST: u64 = BATCH as u64;
    const SPANS: u64 = 6_400;
    exchanges(&mut facts, FIRST, true);
    let held = offered.recv_timeout(PATIENCE).expect("an offer");
    // It returns while the collector holds the thread: nobody waited.
    exchanges(&mut facts, SPANS, true);
    facts.tick();
    assert_eq!(offered.try_recv(), Err(TryRecvError::Empty));
    let queued = (QUEUE * FULL) as u64;
    assert_eq!(traces.stats().crowded_out, FIRST + SPANS - held - queued);
    drop(facts);
    std::thread::scope(|scope| {
        scope.spawn(|| end(&traces));
        eventually("it closes", || {
            traces.shared.is_closing.load(Ordering::SeqCst)
        });
        drop(let_go);
    });
    // What was offered before is offered once more, and all else once.
    let last: Vec<u64> = offered.iter().collect();
    assert_eq!((last[0], last[1..].iter().sum()), (held, queued));
    let stats = traces.stats();
    assert_eq!(stats.failures, 1 + last.len() as u64);
    assert_eq!(
        stats.crowded_out + stats.undelivered,
        FIRST + SPANS,
        "each is counted once: {stats:?}"
    );
}
