//! U8: abandoned answers on a route that reads them to their end.
//!
//! Invariant: one aborted record, however far the gate reads; it has the upstream's usage where that
//! arrived, and the forwarded tokens where not; reading to the end is bounded in tokens, time and number.
//! Not here: routes that cancel (`disconnects`).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{call, record};
use crate::harness::answer::{chunk, delta, events_head, json};
use crate::harness::{Connection, Gate, PartialUpstream, Step, Upstream, eventually, h2};

const TOKENS: u64 = 100_000;

fn gate(address: SocketAddr, drain: &str, more: &str) -> Gate {
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{address}/v1{more} }} }}\n\
         routes: [ {{ workload: w, backend: up, abandon: {{ read_to_end: {drain} }}, \
         limits: [ {{ tokens: {TOKENS}, per: 366d }} ] }} ]\nbounds: {{ reads_to_end: 2 }}\n"
    );
    Gate::start(&config, &[])
}

/// An engine that makes a token in so many milliseconds.
fn engine(each: u64) -> engine::EngineHandle {
    engine::spawn_thread(engine::EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(each),
        ..engine::EngineConfig::default()
    })
    .expect("an engine")
}

fn body(stream: bool, tokens: u32) -> String {
    format!(
        r#"{{"model":"gpt-oss-120b","stream":{stream},"min_tokens":{tokens},"max_tokens":{tokens},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// Remaining tokens, from the refusal of a call that is too large.
fn remaining(gate: &Gate) -> u64 {
    let refused = gate.call(&crate::fixture::call(&body(false, 200_000)));
    assert_eq!(refused.code(), "request_exceeds_limit");
    let left = refused.header("x-ratelimit-remaining-tokens");
    left.expect("the header is set").parse().expect("a number")
}

fn outcomes(gate: &Gate) -> [f64; 4] {
    ["cancelled", "read_to_end", "cut_short", "no_room"].map(|rest| {
        let label = format!("rest=\"{rest}\"");
        gate.metric("tollgate_abandoned_total", &[&label])
    })
}

/// Asserts an aborted record with the usage that the engine reported, and that nothing is still open.
fn assert_read_to_end(gate: &Gate, engine: &engine::EngineHandle, record: &Value, tokens: u64) {
    assert_eq!(record["outcome"], "aborted", "{record}");
    assert_eq!(record["completion_source"], "reported", "{record}");
    assert_eq!(record["completion_tokens"], tokens, "{record}");
    let stats = engine.stats();
    assert_eq!((stats.running, stats.finished_abort), (0, 0), "{stats:?}");
    let spent = record["prompt_tokens"].as_u64().expect("reported") + tokens;
    assert_eq!(remaining(gate), TOKENS - spent);
    assert_eq!(outcomes(gate), [0.0, 1.0, 0.0, 0.0]);
    for gauge in ["open_drains", "open_exchanges", "open_streams"] {
        let open = gate.metric(&format!("tollgate_{gauge}"), &[]);
        assert!(open.abs() < 0.5, "{gauge}: {open}");
    }
}

#[test]
fn an_abandoned_stream_read_to_its_end_is_recorded_with_the_reported_usage() {
    for protocol in ["http1", "http2"] {
        let engine = engine(10);
        let more = format!(", protocol: {protocol}");
        let gate = gate(engine.addr(), "{ tokens: 1K, seconds: 20 }", &more);
        let mut connection = Connection::open(gate.data);
        connection.send(&crate::fixture::call(&body(true, 300)));
        while !String::from_utf8_lossy(connection.unread()).contains("data: ") {
            assert!(connection.more());
        }
        drop(connection);
        let record = gate.records(1).remove(0);
        let sent = record["bytes_out"].as_u64().expect("a count");
        // All of it has more than 150 bytes for each token.
        assert!(sent < 150 * 150, "{sent} forwarded");
        assert_read_to_end(&gate, &engine, &record, 300);
    }
}

#[test]
fn an_abandoned_http2_stream_read_to_its_end_is_recorded_with_the_reported_usage() {
    let engine = engine(10);
    let gate = gate(engine.addr(), "{ tokens: 1K, seconds: 20 }", "");
    h2::run(async {
        let mut client = h2::connect(gate.data).await;
        let request = h2::post("/v1/chat/completions", body(true, 300));
        let response = client.send_request(request).await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200);
        // Dropping it resets the stream; the connection stays open.
    });
    let record = gate.records(1).remove(0);
    assert_read_to_end(&gate, &engine, &record, 300);
}

#[test]
fn an_abandoned_unary_answer_is_read_to_its_end() {
    let engine = engine(10);
    let gate = gate(engine.addr(), "{ tokens: 1K, seconds: 20 }", "");
    let mut connection = Connection::open(gate.data);
    connection.send(&crate::fixture::call(&body(false, 300)));
    eventually("it runs", Duration::from_secs(5), || {
        engine.stats().running == 1
    });
    drop(connection);
    let record = gate.records(1).remove(0);
    assert_eq!(
        (&record["status"], &record["bytes_out"]),
        (&Value::Null, &0.into())
    );
    assert_read_to_end(&gate, &engine, &record, 300);
}

#[test]
fn reading_to_the_end_stops_at_its_token_bound_and_counts_forwarded_tokens() {
    let engine = engine(300);
    let gate = gate(engine.addr(), "{ tokens: 5, seconds: 20 }", "");
    let mut connection = Connection::open(gate.data);
    connection.send(&crate::fixture::call(&body(true, 2000)));
    while !String::from_utf8_lossy(connection.unread()).contains("data: ") {
        assert!(connection.more());
    }
    drop(connection);
    let record = gate.records(1).remove(0);
    assert_eq!(record["completion_source"], "estimated", "{record}");
    let counted = record["completion_tokens"].as_u64().expect("an estimate");
    assert!((1..=4).contains(&counted), "{record}");
    eventually("the engine is told", Duration::from_secs(2), || {
        engine.stats().finished_abort == 1
    });
    let made = engine.stats().generation_tokens;
    assert!((5..20).contains(&made), "{made}");
    assert_eq!(outcomes(&gate), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn reading_to_the_end_is_bounded_in_time_and_concurrency() {
    let upstream = PartialUpstream::start([events_head(), chunk(delta("one").as_bytes())].concat());
    let gate = gate(upstream.address, "{ tokens: 1K, seconds: 6 }", "");
    let mut closed = Vec::new();
    for n in 0..3 {
        let mut connection = Connection::open(gate.data);
        connection.send(&call(&format!("case{n}"), true));
        upstream.reached();
        while !String::from_utf8_lossy(connection.unread()).contains("one") {
            assert!(connection.more());
        }
        drop(connection);
        if n < 2 {
            eventually("it drains", Duration::from_secs(2), || {
                gate.metric("tollgate_open_drains", &[]) > f64::from(n) + 0.5
            });
        }
    }
    let began = Instant::now();
    for _ in 0..3 {
        closed.push(upstream.closed().saturating_duration_since(began));
    }
    assert!(closed[0] < Duration::from_secs(2), "{closed:?}");
    assert!(closed[1] > Duration::from_secs(3), "{closed:?}");
    assert!(closed[2] < Duration::from_secs(9), "{closed:?}");
    for n in 0..3 {
        let record = record(&gate, 3, &format!("case{n}"));
        assert_eq!(record["outcome"], "aborted", "{record}");
        assert_eq!(record["completion_tokens"], 1, "{record}");
    }
    assert_eq!(outcomes(&gate), [0.0, 0.0, 2.0, 1.0]);
}

#[test]
fn a_call_whose_client_disconnected_is_not_retried() {
    let upstream = Upstream::start(|n, _| {
        let sorry = json(503, r#"{"error":{"message":"later"}}"#);
        // Of the first call the client leaves meanwhile.
        let after = Duration::from_secs(if n == 0 { 3 } else { 0 });
        vec![Step::Sleep(after), Step::Send(sorry)]
    });
    let config = format!(
        "backends: {{ up: {{ endpoints: [ {{ url: http://{0}/v1 }}, {{ url: http://{0}/v1 }} ] }} }}\n\
         routes: [ {{ workload: w, backend: up, abandon: {{ read_to_end: {{ tokens: 9, seconds: 9 }} }} }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call("m", false));
    eventually("it is under way", Duration::from_secs(5), || {
        !upstream.seen().is_empty()
    });
    drop(connection);
    let record = gate.records(1).remove(0);
    assert_eq!(
        (&record["outcome"], &record["attempts"]),
        (&"aborted".into(), &1.into())
    );
    assert_eq!(upstream.seen().len(), 1);
    // A client that stays connected is served by whichever endpoint answers.
    let stayed = gate.call(&call("m", false));
    assert!(
        stayed.status >= 500 && upstream.seen().len() > 2,
        "{stayed:?}"
    );
}
