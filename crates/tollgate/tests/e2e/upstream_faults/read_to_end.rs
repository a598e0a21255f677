//! U8: abandoned answers on a route that reads them to their end.
//!
//! Invariant: one aborted record, however far the gate reads; it has the upstream's usage where that
//! arrived, and the forwarded tokens where not; reading to the end is bounded in tokens, time and number.
//! Not here: routes that cancel (`disconnects`).

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use testing::{Began, eventually};

use super::{call, record};
use crate::harness::answer::{
    DONE, LAST_CHUNK, chunk, counts, delta, events_head, json, usage_event,
};
use crate::harness::{Connection, Gate, PartialUpstream, Signal, Step, Upstream, h2};

const TOKENS: u64 = 100_000;
/// Bounds that nothing here comes to.
const WIDE: &str = "{ tokens: 1K, seconds: 3600 }";

fn gate(address: SocketAddr, drain: &str, more: &str) -> Gate {
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{address}/v1{more} }} }}\n\
         routes: [ {{ workload: w, backend: up, abandon: {{ read_to_end: {drain} }}, \
         limits: [ {{ tokens: {TOKENS}, per: 366d }} ] }} ]\nbounds: {{ reads_to_end: 2 }}\n"
    );
    Gate::start(&config, &[])
}

/// An upstream that begins its answer, and says the rest, with usage at its end, when the gate reads for nobody.
fn in_two_parts(until: Signal) -> Upstream {
    Upstream::start(move |_, seen| {
        let usage = counts(7, 300);
        if seen.json()["stream"] != true {
            let body = format!(r#"{{"id":"c","choices":[],"usage":{usage}}}"#);
            return vec![Step::Until(until.clone()), Step::Send(json(200, &body))];
        }
        let rest = [delta("two").repeat(200), usage_event(&usage), DONE.into()].concat();
        vec![
            Step::Send([events_head(), chunk(delta("one").as_bytes())].concat()),
            Step::Until(until.clone()),
            Step::Send([&chunk(rest.as_bytes())[..], LAST_CHUNK].concat()),
        ]
    })
}

fn body(stream: bool, tokens: u32) -> String {
    format!(
        r#"{{"model":"gpt-oss-120b","stream":{stream},"min_tokens":{tokens},"max_tokens":{tokens},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// Waits until so many answers are read for nobody.
fn drains(gate: &Gate, many: f64) {
    eventually("an answer is read for nobody", || {
        gate.metric("tollgate_open_drains", &[]) == many
    });
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

/// Asserts an aborted record with the usage that the upstream reported, and that nothing is still open.
fn assert_read_to_end(gate: &Gate, record: &Value, tokens: u64) {
    assert_eq!(record["outcome"], "aborted", "{record}");
    assert_eq!(record["completion_source"], "reported", "{record}");
    assert_eq!(record["completion_tokens"], tokens, "{record}");
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
    let abandoned = Signal::default();
    let upstream = in_two_parts(abandoned.clone());
    let gate = gate(upstream.address, WIDE, "");
    leave_a_stream(&gate);
    drains(&gate, 1.0);
    abandoned.give();
    let record = gate.records(1).remove(0);
    let sent = record["bytes_out"].as_u64().expect("a count");
    assert!(sent < 200, "the first event is forwarded: {record}");
    assert_read_to_end(&gate, &record, 300);
}

#[test]
fn an_abandoned_stream_of_an_http2_upstream_is_read_to_its_end() {
    // Some seconds long, so that its client leaves long before its end.
    let engine = engine::spawn_thread(engine::EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(50),
        ..engine::EngineConfig::default()
    });
    let engine = engine.expect("an engine");
    let gate = gate(engine.addr(), WIDE, ", protocol: http2");
    leave_a_stream(&gate);
    let record = gate.records(1).remove(0);
    assert_read_to_end(&gate, &record, 100);
    let stats = engine.stats();
    assert_eq!((stats.running, stats.finished_abort), (0, 0), "{stats:?}");
}

/// Where a route says nothing, what a provider adds to a prompt from elsewhere is heard of at the end alone: whoever leaves before it pays for that too.
#[test]
fn a_call_whose_prompt_is_not_all_in_its_body_is_read_on_where_its_route_says_nothing() {
    let file = r#"{"model":"m","stream":STREAM,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#;
    let said = r#"{"model":"m","stream":STREAM,"messages":[{"role":"user","content":"my file"}]}"#;
    for (text, outcome) in [(file, "read_to_end"), (said, "cancelled")] {
        for streams in ["true", "false"] {
            let abandoned = Signal::default();
            let upstream = in_two_parts(abandoned.clone());
            let config = format!(
                "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
                upstream.address
            );
            let gate = Gate::start(&config, &[]);
            let mut connection = Connection::open(gate.data);
            connection.send(&crate::fixture::call(&text.replace("STREAM", streams)));
            if streams == "true" {
                while !String::from_utf8_lossy(connection.unread()).contains("data: ") {
                    assert!(connection.more());
                }
            } else {
                eventually("the upstream has the call", || !upstream.seen().is_empty());
            }
            drop(connection);
            let rest = format!("rest=\"{outcome}\"");
            if outcome == "read_to_end" {
                drains(&gate, 1.0);
            } else {
                eventually("it is cancelled", || {
                    gate.metric("tollgate_abandoned_total", &[&rest]) == 1.0
                });
            }
            abandoned.give();
            let record = gate.records(1).remove(0);
            let is_read = record["prompt_source"] == "reported" && record["prompt_tokens"] == 7;
            assert_eq!(is_read, outcome == "read_to_end", "{streams} {record}");
            assert!(gate.metric("tollgate_abandoned_total", &[&rest]) == 1.0);
        }
    }
}

/// Leaves when a stream has begun.
fn leave_a_stream(gate: &Gate) {
    let mut connection = Connection::open(gate.data);
    connection.send(&crate::fixture::call(&body(true, 100)));
    while !String::from_utf8_lossy(connection.unread()).contains("data: ") {
        assert!(connection.more());
    }
}

#[test]
fn an_abandoned_http2_stream_read_to_its_end_is_recorded_with_the_reported_usage() {
    let abandoned = Signal::default();
    let upstream = in_two_parts(abandoned.clone());
    let gate = gate(upstream.address, WIDE, "");
    let told = abandoned.clone();
    let leave = async {
        let mut client = h2::connect(gate.data).await;
        let request = h2::post("/v1/chat/completions", body(true, 300));
        let response = client.send_request(request).await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200);
        // Resets the stream; the connection stays open.
        drop(response);
        tokio::task::spawn_blocking(move || told.wait()).await
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drains(&gate, 1.0);
            abandoned.give();
        });
        assert!(h2::run(leave).expect("it waits"), "it is read for nobody");
    });
    let record = gate.records(1).remove(0);
    assert_read_to_end(&gate, &record, 300);
}

#[test]
fn an_abandoned_unary_answer_is_read_to_its_end() {
    let abandoned = Signal::default();
    let upstream = in_two_parts(abandoned.clone());
    let gate = gate(upstream.address, WIDE, "");
    let mut connection = Connection::open(gate.data);
    connection.send(&crate::fixture::call(&body(false, 300)));
    eventually("it runs", || upstream.count() == 1);
    drop(connection);
    drains(&gate, 1.0);
    abandoned.give();
    let record = gate.records(1).remove(0);
    assert_eq!(
        (&record["status"], &record["bytes_out"]),
        (&Value::Null, &0.into())
    );
    assert_read_to_end(&gate, &record, 300);
}

#[test]
fn reading_to_the_end_stops_at_its_token_bound_and_counts_forwarded_tokens() {
    let (abandoned, closed) = <(Signal, Signal)>::default();
    let (until, when_closed) = (abandoned.clone(), closed.clone());
    let upstream = Upstream::start(move |_, _| {
        let more = chunk(delta("x").as_bytes()).repeat(10);
        vec![
            Step::Send([events_head(), chunk(delta("one").as_bytes())].concat()),
            Step::Until(until.clone()),
            Step::Send(more),
            Step::Hang(when_closed.clone()),
        ]
    });
    let gate = gate(upstream.address, "{ tokens: 5, seconds: 3600 }", "");
    leave_a_stream(&gate);
    drains(&gate, 1.0);
    abandoned.give();
    assert!(closed.wait(), "the upstream is told");
    let record = gate.records(1).remove(0);
    assert_eq!(record["completion_source"], "estimated", "{record}");
    assert_eq!(record["completion_tokens"], 1, "{record}");
    assert_eq!(outcomes(&gate), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn reading_to_the_end_is_bounded_in_time_and_concurrency() {
    let begun = [events_head(), chunk(delta("one").as_bytes())].concat();
    let assert_aborted = |gate: &Gate, calls, case| {
        let record = record(gate, calls, case);
        assert_eq!(record["outcome"], "aborted", "{record}");
        assert_eq!(record["completion_tokens"], 1, "{record}");
    };
    let leave = |gate: &Gate, upstream: &PartialUpstream, case| {
        let mut connection = Connection::open(gate.data);
        connection.send(&call(case, true));
        upstream.reached();
        while !String::from_utf8_lossy(connection.unread()).contains("one") {
            assert!(connection.more());
        }
    };
    // For the third there is no room while two are read, which goes on for an hour.
    let upstream = PartialUpstream::start(begun.clone());
    let wide = gate(upstream.address, WIDE, "");
    for (case, many) in [("case0", 1.0), ("case1", 2.0)] {
        leave(&wide, &upstream, case);
        drains(&wide, many);
    }
    leave(&wide, &upstream, "case2");
    upstream.closed();
    assert_aborted(&wide, 1, "case2");
    assert_eq!(outcomes(&wide), [0.0, 0.0, 0.0, 1.0]);
    drains(&wide, 2.0);

    let upstream = PartialUpstream::start(begun);
    let brief = gate(upstream.address, "{ tokens: 1K, seconds: 1 }", "");
    let began = Began::now();
    leave(&brief, &upstream, "case");
    upstream.closed();
    began.took_at_least(Duration::from_millis(900));
    assert_aborted(&brief, 1, "case");
    assert_eq!(outcomes(&brief), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn a_call_whose_client_disconnected_is_not_retried() {
    let left = Signal::default();
    let until = left.clone();
    let upstream = Upstream::start(move |_, _| {
        let sorry = json(503, r#"{"error":{"message":"later"}}"#);
        vec![Step::Until(until.clone()), Step::Send(sorry)]
    });
    let config = format!(
        "backends: {{ up: {{ endpoints: [ {{ url: http://{0}/v1 }}, {{ url: http://{0}/v1 }} ] }} }}\n\
         routes: [ {{ workload: w, backend: up, abandon: {{ read_to_end: {{ tokens: 9, seconds: 3600 }} }} }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call("m", false));
    eventually("it is under way", || upstream.count() == 1);
    drop(connection);
    drains(&gate, 1.0);
    left.give();
    let record = gate.records(1).remove(0);
    assert_eq!(
        (&record["outcome"], &record["attempts"]),
        (&"aborted".into(), &1.into())
    );
    assert_eq!(upstream.count(), 1);
    // A client that stays connected is served by whichever endpoint answers.
    let stayed = gate.call(&call("m", false));
    assert!(stayed.status >= 500 && upstream.count() > 2, "{stayed:?}");
}
