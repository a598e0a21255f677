//! What the gate writes, read by OpenTelemetry's own messages.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use policy::attempt::Failure;
use policy::caller::{Caller, Proven};
use policy::id::EndpointId;
use policy::limit::Kind;
use policy::record::{Outcome, Record};
use policy::trace::{AttemptSpan, Trace};
use prost::Message as _;

use super::{Service, request};
use crate::sample::{completed, limited, snapshot, unknown};
use crate::traces::fact::Fact;

const TRACE: Trace = Trace {
    id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
    span: 0x00f0_67aa_0ba9_02b7,
    parent: Some(0xfedc_ba98_7654_3210),
    is_sampled: true,
};

fn service() -> Service {
    Service {
        name: "edge".to_owned(),
        version: "1.2.3".to_owned(),
        instance: "gate-1".to_owned(),
    }
}

fn read(facts: &[Fact]) -> Vec<Span> {
    let bytes = request(&service(), facts);
    let mut read = ExportTraceServiceRequest::decode(&*bytes).expect("it is OTLP");
    assert_eq!(
        read.encode_to_vec().len(),
        bytes.len(),
        "no field is unknown to OTLP"
    );
    assert_eq!(read.resource_spans.len(), 1);
    let mut of = read.resource_spans.remove(0);
    let resource = attributes(&of.resource.expect("a resource").attributes);
    assert_eq!(resource["service.name"], "edge");
    assert_eq!(resource["service.version"], "1.2.3");
    assert_eq!(resource["service.instance.id"], "gate-1");
    let of = of.scope_spans.remove(0);
    assert_eq!(of.scope.expect("a scope").name, "tollgate");
    of.spans
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match pair.value.clone().and_then(|v| v.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => panic!("{}: {other:?}", pair.key),
    };
    let read: BTreeMap<_, _> = pairs
        .iter()
        .map(|pair| (pair.key.clone(), text(pair)))
        .collect();
    assert_eq!(read.len(), pairs.len(), "a key stands once");
    read
}

fn exchange(record: Record) -> Span {
    let fact = Fact::exchange(TRACE, &snapshot("v1", &["a"]), &record);
    let mut spans = read(&[fact]);
    assert_eq!(spans.len(), 1);
    spans.remove(0)
}

fn attempt(number: u32, result: Option<Result<u16, Failure>>) -> Span {
    let span = AttemptSpan {
        trace: TRACE,
        id: 7,
        endpoint: EndpointId(0),
        number,
        started_unix_ms: 1_785_585_600_123,
        after: Duration::from_micros(40),
        took: Duration::from_millis(20),
        result,
    };
    read(&[Fact::attempt(&snapshot("v1", &["a"]), &span)]).remove(0)
}

#[test]
fn an_exchange_is_a_server_span_with_the_usage() {
    let span = exchange(completed(0));
    assert_eq!(span.trace_id, TRACE.id.to_be_bytes());
    assert_eq!(span.span_id, TRACE.span.to_be_bytes());
    assert_eq!(span.parent_span_id, 0xfedc_ba98_7654_3210_u64.to_be_bytes());
    assert_eq!((span.name.as_str(), span.kind), ("chat asked", 2));
    assert_eq!(span.start_time_unix_nano, 1_785_585_600_123_000_000);
    assert_eq!(
        span.end_time_unix_nano - span.start_time_unix_nano,
        450_000_000
    );
    assert_eq!(span.flags, 0x301);
    assert_eq!(span.status, None);
    let has = attributes(&span.attributes);
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "asked"),
        ("gen_ai.usage.input_tokens", "100"),
        ("gen_ai.usage.output_tokens", "21"),
        ("gen_ai.usage.cache_read.input_tokens", "64"),
        ("tollgate.input_source", "reported"),
        ("http.response.status_code", "200"),
        ("tollgate.request_id", "req-1"),
        ("tollgate.workload", "a"),
        ("tollgate.route", "all"),
        ("tollgate.backend", "on-prem"),
        ("tollgate.endpoint", "on-prem#0"),
        ("tollgate.model_sent", "gpt-oss-120b"),
        ("tollgate.streamed", "true"),
        ("tollgate.attempts", "1"),
        ("tollgate.first_byte", "0.05"),
        ("tollgate.own", "0.000018"),
    ] {
        assert_eq!(has.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(!has.contains_key("error.type"));
    let mut messages = completed(0);
    messages.operation = Some(policy::operation::Operation::Messages);
    let has = exchange(messages);
    let has = attributes(&has.attributes);
    assert_eq!(has["gen_ai.operation.name"], "messages");
    assert_eq!(has["gen_ai.provider.name"], "anthropic");
}

#[test]
fn a_refusal_has_no_usage_and_a_failure_is_an_error() {
    let refused = exchange(limited(0, Kind::Requests));
    let has = attributes(&refused.attributes);
    assert_eq!(has["error.type"], "rate_limit_exceeded");
    assert!(
        has.keys().all(|key| !key.starts_with("gen_ai.usage")),
        "{has:?}"
    );
    assert_eq!(
        refused.status, None,
        "the client's fault is no error of the server"
    );
    let mut failed = completed(0);
    failed.outcome = Outcome::Failed;
    failed.code = "upstream_reset";
    let failed = exchange(failed).status.expect("a status");
    assert_eq!(
        (failed.code, failed.message.as_str()),
        (2, "upstream_reset")
    );
    let nobody = exchange(unknown());
    assert_eq!(
        attributes(&nobody.attributes)["tollgate.outcome"],
        "refused"
    );
    let mut early = unknown();
    early.operation = None;
    assert_eq!(exchange(early).name, "exchange");
}

#[test]
fn an_attempt_is_a_client_span_below_its_exchange() {
    let span = attempt(1, Some(Ok(200)));
    assert_eq!(span.parent_span_id, TRACE.span.to_be_bytes());
    assert_eq!(span.span_id, 7_u64.to_be_bytes());
    assert_eq!((span.name.as_str(), span.kind), ("attempt on-prem#0", 3));
    assert_eq!(span.start_time_unix_nano, 1_785_585_600_123_040_000);
    assert_eq!(
        span.end_time_unix_nano - span.start_time_unix_nano,
        20_000_000
    );
    assert_eq!((span.flags, span.status), (0x101, None));
    let has = attributes(&span.attributes);
    assert_eq!(
        (has["server.address"].as_str(), has["server.port"].as_str()),
        ("on-prem-0.test", "80")
    );
    assert_eq!(has["http.response.status_code"], "200");
    assert!(
        has.keys().all(|key| !key.starts_with("gen_ai.")),
        "usage is counted once: {has:?}"
    );
    let again = attempt(3, Some(Err(Failure::Reset)));
    let has = attributes(&again.attributes);
    assert_eq!(has["http.request.resend_count"], "2");
    assert_eq!(has["error.type"], "upstream_reset");
    assert_eq!(again.status.expect("a status").code, 2);
    let busy = attempt(1, Some(Ok(503)));
    assert_eq!(attributes(&busy.attributes)["error.type"], "503");
    assert_eq!(busy.status.expect("a status").code, 2);
    let left = attempt(1, None);
    assert_eq!(attributes(&left.attributes)["error.type"], "client_left");
    assert_eq!(left.status, None);
}

#[test]
fn numbers_of_every_length_are_read_as_they_were() {
    for shift in 0..64 {
        let mut record = completed(0);
        record.tokens.prompt = policy::record::Count::Counted(1 << shift);
        let has = attributes(&exchange(record).attributes);
        let expected = i64::try_from(1_u64 << shift).unwrap_or(i64::MAX);
        assert_eq!(has["gen_ai.usage.input_tokens"], expected.to_string());
    }
}

#[test]
fn a_span_says_who_as_far_as_it_may() {
    let caller = Caller {
        by: Proven::Key,
        key: Some("k1".into()),
        user: Some("ada".into()),
        tags: [("team".into(), "search".into())].into(),
        ..Caller::default()
    };
    let mut record = Record {
        caller: Some(caller.into()),
        reason: Some("over its time".into()),
        ..completed(0)
    };
    let said = |record: &Record| attributes(&exchange(record.clone()).attributes);
    let has = said(&record);
    for (key, value) in [
        ("enduser.id", "ada"),
        ("tollgate.key", "k1"),
        ("tollgate.tags", r#"{"team":"search"}"#),
        ("tollgate.identity", "key"),
        ("tollgate.reason", "over its time"),
    ] {
        assert_eq!(has.get(key).map(String::as_str), Some(value), "{key}");
    }
    record.hides_user = true;
    let has = said(&record);
    assert!(!has.contains_key("enduser.id") && has.contains_key("tollgate.key"));
    assert!(!said(&completed(0)).contains_key("tollgate.identity"));
}
