//! Propagation and sampling of the trace context.

use super::{
    PARENT, TRACE, attributes, call, collector, config, some_spans, spans, traced, upstream,
};
use crate::harness::{Connection, Gate, Upstream};

fn header_values(upstream: &Upstream, name: &str) -> Vec<String> {
    upstream.seen().last().expect("a call").header(name)
}

#[test]
fn without_tracing_the_trace_context_passes_unchanged() {
    let upstream = upstream(0);
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let headers = ["traceparent: anything", "tracestate: b=2"];
    assert_eq!(gate.call(&call(&headers)).status, 200);
    assert_eq!(header_values(&upstream, "traceparent"), ["anything"]);
    assert_eq!(header_values(&upstream, "tracestate"), ["b=2"]);
    assert!(gate.records(1)[0].get("trace_id").is_none());
    assert!(!gate.metrics().contains("tollgate_trace_"));
}

#[test]
fn the_callers_sampling_decision_is_kept_and_the_ratio_applies_otherwise() {
    let (upstream, collector) = (upstream(0), collector());
    let mut gate = traced(&upstream, collector.address, ", ratio: 0");
    let mut connection = Connection::open(gate.data);
    for _ in 0..20 {
        assert_eq!(connection.call(&call(&[])).status, 200);
        let [made] = &header_values(&upstream, "traceparent")[..] else {
            panic!("one")
        };
        assert!(
            made.starts_with("00-") && made.ends_with("-00") && made.len() == 55,
            "{made}"
        );
    }
    let ids: std::collections::HashSet<String> = gate
        .records(20)
        .iter()
        .map(|r| r["trace_id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), 20, "each call has a trace of its own");
    let unsampled = PARENT.replace("-01", "-00");
    assert_eq!(
        connection
            .call(&call(&[&format!("traceparent: {unsampled}")]))
            .status,
        200
    );
    let [made] = &header_values(&upstream, "traceparent")[..] else {
        panic!("one")
    };
    assert!(
        made.starts_with(&format!("00-{TRACE}-")) && made.ends_with("-00"),
        "{made}"
    );
    assert!(
        !made.contains("00f067aa0ba902b7"),
        "the span is the gate's own"
    );
    assert_eq!(
        connection
            .call(&call(&[&format!("traceparent: {PARENT}")]))
            .status,
        200
    );
    // At its end a gate delivers what it has.
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
    let spans = spans(&collector);
    assert_eq!(
        spans.len(),
        2,
        "of 22 calls one was sampled, by its caller: {spans:?}"
    );
}

#[test]
fn a_malformed_traceparent_starts_a_new_trace_and_drops_tracestate() {
    let (upstream, collector) = (upstream(0), collector());
    let gate = traced(&upstream, collector.address, "");
    let again = format!("traceparent: {PARENT}");
    let cases: [&[&str]; 3] = [
        &["traceparent: 00-zzz", "tracestate: c=3"],
        &["tracestate: c=3"],
        &[&again, &again, "tracestate: c=3"],
    ];
    for headers in cases {
        assert_eq!(gate.call(&call(headers)).status, 200);
        let [made] = &header_values(&upstream, "traceparent")[..] else {
            panic!("one")
        };
        assert!(made.ends_with("-01") && !made.contains(TRACE), "{made}");
        assert_eq!(header_values(&upstream, "tracestate"), [""; 0]);
    }
    let spans = some_spans(&collector, 6);
    assert!(
        spans
            .iter()
            .filter(|span| span.kind == 2)
            .all(|span| span.parent_span_id.is_empty())
    );
}

#[test]
fn a_refusal_leaves_one_span_and_no_usage() {
    let (upstream, collector) = (upstream(0), collector());
    let gate = traced(&upstream, collector.address, "");
    let nobody = crate::harness::post("/v1/chat/completions", &["x-workload-app: nobody"], "{}");
    assert_eq!(gate.call(&nobody).status, 404);
    let spans = some_spans(&collector, 1);
    let [span] = &spans[..] else {
        panic!("{spans:?}")
    };
    let has = attributes(span);
    assert_eq!(has["error.type"], "workload_not_registered");
    assert_eq!(has["tollgate.outcome"], "refused");
    assert!(!has.contains_key("gen_ai.usage.input_tokens"));
}
