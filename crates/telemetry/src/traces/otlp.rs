//! Spans as OTLP has them: names and attributes of OpenTelemetry's conventions.
//!
//! The exchange is a span of kind SERVER that carries the `gen_ai.*` attributes; its attempts are of
//! kind CLIENT and carry none, so that a reader who adds up usage over spans counts each call once.
//! Field numbers: opentelemetry-proto 1.x, `trace/v1/trace.proto` and `common/v1/common.proto`.
//! Invariant: no attribute can hold a prompt, an answer, a credential or a query string: the facts
//! have none.
//! Not here: the encoding (`protobuf`).

use std::time::Duration;

use policy::attribution::{kept, tags};
use policy::record::{Count, Outcome, Record};

use super::fact::{Attempt, Exchange, Fact};
use super::protobuf::Message;
use crate::histogram::nanos;
use crate::series::{RESULTS, operation_index, provider_label, result_index};

/// Who sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// `service.name`.
    pub name: String,
    /// `service.version`.
    pub version: String,
    /// `service.instance.id`.
    pub instance: String,
}

const SERVER: u64 = 2;
const CLIENT: u64 = 3;
const ERROR: u64 = 2;
/// The flag of W3C that a sampled span has; that it is known whether the parent is remote; that it is.
const SAMPLED: u32 = 0x01;
const KNOWS_REMOTE: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// An `ExportTraceServiceRequest` with these spans.
pub(super) fn request(service: &Service, facts: &[Fact]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |spans| {
        spans.message(1, |resource| {
            let mut resource = Attributes(resource, 1);
            resource.text("service.name", &service.name);
            resource.text("service.version", &service.version);
            resource.text("service.instance.id", &service.instance);
        });
        spans.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.text(1, "tollgate").text(2, &service.version);
            });
            for fact in facts {
                of_scope.message(2, |span| match fact {
                    Fact::Exchange(exchange) => write_exchange(span, exchange),
                    Fact::Attempt(attempt) => write_attempt(span, attempt),
                });
            }
        });
    });
    request.finish()
}

fn write_exchange(span: &mut Message, exchange: &Exchange) {
    let (trace, record) = (&exchange.trace, &exchange.record);
    // A new field of the record is asked for here: it is in the span, or is not.
    let Record {
        id: _,
        trace: _,
        started_unix_ms: _,
        client: _,
        operation: _,
        workload: _,
        caller: _,
        hides_user: _,
        route: _,
        endpoint: _,
        backend: _,
        model_asked: _,
        model_sent: _,
        streamed: _,
        status: _,
        outcome: _,
        code: _,
        reason: _,
        attempts: _,
        tokens: _,
        duration: _,
        first_byte: _,
        own: _,
        // Not in it.
        upstream_id: _,
        listed: _,
        mcp_path: _,
        limited: _,
        charge: _,
        unconfirmed: _,
        estimate_reason: _,
        uncounted: _,
        prompt_doubt: _,
        extra: _,
        bytes_in: _,
        bytes_out: _,
        upstream: _,
    } = record;
    let begins = record.started_unix_ms.saturating_mul(1_000_000);
    span.bytes(1, &trace.id.to_be_bytes());
    span.bytes(2, &trace.span.to_be_bytes());
    if let Some(parent) = trace.parent {
        span.bytes(4, &parent.to_be_bytes());
    }
    let operation = record.operation.map(|operation| operation.as_str());
    let name = [operation, record.model_asked.as_deref()];
    let name: Vec<&str> = name.into_iter().flatten().collect();
    let name = if name.is_empty() {
        "exchange".to_owned()
    } else {
        name.join(" ")
    };
    span.text(5, &name);
    times(span, SERVER, begins, record.duration);
    let mut attributes = Attributes(span, 9);
    attributes.known("gen_ai.operation.name", operation);
    let provider = provider_label(operation_index(record.operation));
    attributes.text("gen_ai.provider.name", provider);
    attributes.known("gen_ai.request.model", record.model_asked.as_deref());
    tokens(&mut attributes, exchange);
    if record.status != 0 {
        attributes.number("http.response.status_code", u64::from(record.status));
    }
    let error = if record.code.is_empty() || record.outcome == Outcome::Completed {
        None
    } else {
        Some(record.code)
    };
    let status = record.status.to_string();
    attributes.known(
        "error.type",
        error.or((record.status >= 500).then_some(&*status)),
    );
    let client = record.client.map(|client| client.to_string());
    attributes.known("client.address", client.as_deref());
    attributes.text("tollgate.request_id", &record.id);
    attributes.text("tollgate.outcome", record.outcome.as_str());
    attributes.known("tollgate.workload", exchange.workload.as_deref());
    who(&mut attributes, record);
    let reason = record.reason.as_deref().and_then(kept);
    attributes.known("tollgate.reason", reason.as_deref());
    attributes.known("tollgate.route", exchange.route.as_deref());
    attributes.known("tollgate.backend", exchange.backend.as_deref());
    attributes.known("tollgate.endpoint", exchange.endpoint.as_deref());
    attributes.known("tollgate.model_sent", record.model_sent.as_deref());
    attributes.flag("tollgate.streamed", record.streamed);
    attributes.number("tollgate.attempts", u64::from(record.attempts));
    attributes.seconds("tollgate.first_byte", record.first_byte);
    attributes.seconds("tollgate.own", record.own);
    let is_error = record.outcome == Outcome::Failed || record.status >= 500;
    end(
        span,
        is_error,
        record.code,
        if trace.parent.is_some() { REMOTE } else { 0 },
    );
}

/// Who is behind it, as far as that is kept.
fn who(attributes: &mut Attributes<'_>, record: &Record) {
    let Some(caller) = &record.caller else {
        return;
    };
    let key = caller.key.as_deref().and_then(kept);
    attributes.known("enduser.id", record.user().as_deref());
    attributes.known("tollgate.key", key.as_deref());
    attributes.known("tollgate.tags", tags(&caller.tags).as_deref());
    attributes.text("tollgate.identity", caller.by.as_str());
}

fn tokens(attributes: &mut Attributes<'_>, exchange: &Exchange) {
    let record = &exchange.record;
    // What a refused call would have cost is no usage.
    if record.outcome == Outcome::Refused {
        return;
    }
    let counts = [
        (
            "gen_ai.usage.input_tokens",
            "tollgate.input_source",
            record.tokens.prompt,
        ),
        (
            "gen_ai.usage.output_tokens",
            "tollgate.output_source",
            record.tokens.completion,
        ),
    ];
    for (name, source, count) in counts {
        if count != Count::Unknown {
            attributes.number(name, count.tokens().unwrap_or(0));
            attributes.text(source, count.source());
        }
    }
    if let Some(cached) = record.tokens.cached {
        attributes.number("gen_ai.usage.cache_read.input_tokens", cached);
    }
}

fn write_attempt(span: &mut Message, attempt: &Attempt) {
    let facts = &attempt.span;
    let began = facts
        .started_unix_ms
        .saturating_mul(1_000_000)
        .saturating_add(nanos(facts.after));
    span.bytes(1, &facts.trace.id.to_be_bytes());
    span.bytes(2, &facts.id.to_be_bytes());
    span.bytes(4, &facts.trace.span.to_be_bytes());
    let endpoint = attempt.endpoint.as_deref().unwrap_or_default();
    span.text(5, format!("attempt {endpoint}").trim_end());
    times(span, CLIENT, began, facts.took);
    let mut attributes = Attributes(span, 9);
    attributes.known("tollgate.backend", attempt.backend.as_deref());
    attributes.known("tollgate.endpoint", attempt.endpoint.as_deref());
    if let Some((host, port)) = &attempt.server {
        attributes.text("server.address", host);
        attributes.number("server.port", u64::from(*port));
    }
    if facts.number > 1 {
        attributes.number("http.request.resend_count", u64::from(facts.number - 1));
    }
    let why = match facts.result {
        None => Some("client_left".to_owned()),
        Some(Ok(status)) => {
            attributes.number("http.response.status_code", u64::from(status));
            (status >= 400).then(|| status.to_string())
        }
        Some(Err(failure)) => RESULTS
            .get(result_index(Err(failure)))
            .map(|&why| why.to_owned()),
    };
    attributes.known("error.type", why.as_deref());
    let is_error = facts.result.is_some() && why.is_some();
    end(span, is_error, why.as_deref().unwrap_or_default(), 0);
}

fn times(span: &mut Message, kind: u64, begins: u64, took: Duration) {
    span.number(6, kind).fixed64(7, begins);
    span.fixed64(8, begins.saturating_add(nanos(took)));
}

/// Status and flags, which end a span.
fn end(span: &mut Message, is_error: bool, why: &str, remote: u32) {
    if is_error {
        span.message(15, |status| {
            status.text(2, why).number(3, ERROR);
        });
    }
    span.fixed32(16, SAMPLED | KNOWS_REMOTE | remote);
}

/// The attributes of something, in this field of it.
struct Attributes<'m>(&'m mut Message, u64);

impl Attributes<'_> {
    fn text(&mut self, key: &str, value: &str) {
        self.put(key, |any| {
            any.text(1, value);
        });
    }

    fn known(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.put(key, |any| {
            any.number(2, u64::from(value));
        });
    }

    fn number(&mut self, key: &str, value: u64) {
        // Signed on the wire: what is beyond it is at its end.
        let value = value.min(i64::MAX.unsigned_abs());
        self.put(key, |any| {
            any.number(3, value);
        });
    }

    fn seconds(&mut self, key: &str, value: Option<Duration>) {
        if let Some(value) = value {
            self.put(key, |any| {
                any.fixed64(4, value.as_secs_f64().to_bits());
            });
        }
    }

    fn put(&mut self, key: &str, value: impl FnOnce(&mut Message)) {
        self.0.message(self.1, |pair| {
            pair.text(1, key).message(2, value);
        });
    }
}

#[cfg(test)]
mod tests;
