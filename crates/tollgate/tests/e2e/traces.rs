//! Spans as a collector receives them, and trace context as upstreams see it.
//!
//! Not here: every attribute of a span (unit tests of `telemetry`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::harness::{Connection, Gate, Step, Upstream, chat, free_address, post};

mod context;
mod grpc;
mod jaeger;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector that accepts every export over HTTP.
fn collector() -> Upstream {
    Upstream::start(|_, _| {
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        vec![Step::Send(answer.into())]
    })
}

/// An upstream whose first `bad` answers are 503; later ones succeed.
fn upstream(bad: usize) -> Upstream {
    Upstream::start(move |n, _| {
        let status = if n < bad {
            "503 Service Unavailable"
        } else {
            "200 OK"
        };
        let body = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":22,"total_tokens":33}}"#;
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send((head + body).into_bytes())]
    })
}

fn config(upstream: SocketAddr, traces: &str) -> String {
    format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{upstream}/v1 }}, also: {{ url: http://{upstream}/v1 }} }}\n\
         routes: [ {{ name: all, workload: w, backend: [up, also], limits: [ {{ requests: 100000, per: 1m }} ] }} ]\n\
         ledger: {{ path: usage.db }}\n{traces}\n"
    )
}

fn traced(upstream: &Upstream, collector: SocketAddr, more: &str) -> Gate {
    let traces = format!("traces: {{ otlp: \"http://{collector}\"{more} }}");
    Gate::start(&config(upstream.address, &traces), &[])
}

/// A chat call with these header lines.
fn call(headers: &[&str]) -> Vec<u8> {
    let headers = [&["x-workload-app: w"], headers].concat();
    post("/v1/chat/completions", &headers, &chat("m", false))
}

/// The spans of a request's body.
fn decoded(body: &[u8]) -> Vec<Span> {
    let read = ExportTraceServiceRequest::decode(body).expect("it is OTLP");
    let of = read
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    of.flat_map(|of| of.spans).collect()
}

/// Every span that a collector received.
fn spans(collector: &Upstream) -> Vec<Span> {
    collector
        .seen()
        .iter()
        .flat_map(|seen| decoded(&seen.body))
        .collect()
}

/// Waits for this many spans.
fn some_spans(collector: &Upstream, count: usize) -> Vec<Span> {
    let what = format!("{count} spans arrive");
    testing::eventually(&what, || spans(collector).len() >= count);
    spans(collector)
}

/// A span's attributes as text.
fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: Option<&Value>| match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = span.attributes.iter();
    let pairs = pairs.map(|a| {
        (
            a.key.as_str(),
            text(a.value.as_ref().and_then(|v| v.value.as_ref())),
        )
    });
    pairs.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn one_span_for_the_exchange_and_one_for_each_attempt() {
    let (upstream, collector) = (upstream(1), collector());
    let gate = traced(&upstream, collector.address, ", service: edge");
    let headers = [&*format!("traceparent: {PARENT}"), "tracestate: a=1"];
    assert_eq!(gate.call(&call(&headers)).status, 200);
    let spans = some_spans(&collector, 3);
    assert_eq!(spans.len(), 3, "{spans:?}");
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    let (exchange, attempts): (Vec<&Span>, _) = spans.iter().partition(|span| span.kind == 2);
    let [exchange] = exchange[..] else {
        panic!("{spans:?}")
    };
    let attempts: Vec<&Span> = attempts;
    assert_eq!(hex(&exchange.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(exchange.name, "chat m");
    let has = attributes(exchange);
    assert_eq!(has["gen_ai.usage.input_tokens"], "11");
    assert_eq!(has["gen_ai.usage.output_tokens"], "22");
    assert_eq!(has["tollgate.attempts"], "2");
    let [first, second] = attempts[..] else {
        panic!("{attempts:?}")
    };
    assert_eq!([&first.name, &second.name], ["attempt up", "attempt also"]);
    assert_eq!(attributes(first)["http.response.status_code"], "503");
    assert_eq!(attributes(second)["http.response.status_code"], "200");
    assert_eq!(attributes(second)["http.request.resend_count"], "1");
    for attempt in [first, second] {
        assert_eq!(attempt.parent_span_id, exchange.span_id);
        assert!(attempt.start_time_unix_nano >= exchange.start_time_unix_nano);
        assert!(attempt.end_time_unix_nano <= exchange.end_time_unix_nano);
    }
    assert!(first.end_time_unix_nano <= second.start_time_unix_nano);
    assert_eq!(
        second.end_time_unix_nano, exchange.end_time_unix_nano,
        "until the last byte"
    );
    // Each upstream call carries the span of its own attempt in `traceparent`.
    let parents: Vec<String> = upstream
        .seen()
        .iter()
        .flat_map(|seen| seen.header("traceparent"))
        .collect();
    let expected = [first, second].map(|span| format!("00-{TRACE}-{}-01", hex(&span.span_id)));
    assert_eq!(parents, expected);
    assert!(
        upstream
            .seen()
            .iter()
            .all(|seen| seen.header("tracestate") == ["a=1"])
    );
    let post = &collector.seen()[0];
    assert!(
        post.head.starts_with("POST /v1/traces HTTP/1.1\r\n"),
        "{}",
        post.head
    );
    assert_eq!(post.header("content-type"), ["application/x-protobuf"]);
    assert_eq!(gate.records(1)[0]["trace_id"], TRACE);
    // Once the gate has read that they were taken.
    testing::eventually("they are counted", || {
        gate.metric("tollgate_trace_spans_sent_total", &[]) == 3.0
    });
    assert_eq!(row(gate)["trace_id"], TRACE);
}

/// The one row of a gate's ledger, after its end.
fn row(mut gate: Gate) -> serde_json::Value {
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
    let ledger = gate.path("usage.db").display().to_string();
    let args = ["usage", "--ledger", &ledger, "export", "--form", "jsonl"];
    let ended = crate::harness::tollgate(gate.dir.path(), &args, &[]);
    serde_json::from_str(ended.out.trim()).expect("one row")
}

#[test]
fn open_and_queued_spans_are_flushed_at_shutdown() {
    let (upstream, collector) = (upstream(0), collector());
    let mut gate = traced(&upstream, collector.address, "");
    let mut connection = Connection::open(gate.data);
    for _ in 0..100 {
        assert_eq!(connection.call(&call(&[])).status, 200);
    }
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
    assert_eq!(spans(&collector).len(), 200);
    assert_eq!(collector.connections(), 1, "one connection is kept");
}

#[test]
fn an_unreachable_or_hung_collector_delays_no_call() {
    let upstream = upstream(0);
    let hangs = Upstream::start(|_, _| vec![Step::Sleep(Duration::from_secs(3600))]);
    for collector in [free_address(), hangs.address] {
        let mut gate = traced(&upstream, collector, "");
        let mut connection = Connection::open(gate.data);
        // A call that waited for the collector would wait for an hour.
        for _ in 0..600 {
            assert_eq!(connection.call(&call(&[])).status, 200);
        }
        testing::eventually("it is said", || {
            gate.metric("tollgate_trace_failures_total", &[]) > 0.0
                && gate.log().contains("traces are not delivered")
        });
        assert_eq!(gate.metric("tollgate_trace_spans_sent_total", &[]), 0.0);
        assert_eq!(gate.admin("/readyz").status, 200);
        // Nor does the end wait for the collector.
        gate.signal(libc::SIGTERM);
        assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
    }
}

#[test]
fn a_batch_refused_by_the_collector_is_not_retried() {
    let upstream = upstream(0);
    let collector = Upstream::start(|_, _| {
        vec![Step::Send(
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".into(),
        )]
    });
    let gate = traced(
        &upstream,
        collector.address,
        ", credential: { inline: canary, header: x-key }",
    );
    assert_eq!(gate.call(&call(&[])).status, 200);
    testing::eventually("they are counted", || {
        gate.metric("tollgate_trace_spans_lost_total", &["reason=\"collector\""]) == 2.0
    });
    assert_eq!(collector.seen().len(), 1);
    assert_eq!(collector.seen()[0].header("x-key"), ["canary"]);
    assert!(!gate.log().contains("canary"));
    assert!(!gate.admin("/config").text().contains("canary"));
}
