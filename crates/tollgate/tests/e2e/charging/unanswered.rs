//! Calls without a whole answer: abandoned by the client, timed out, or broken.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;

use super::{AuditedGate, body, named, number};
use crate::harness::answer::{COMPLETION, json, whole};
use crate::harness::{Connection, PartialUpstream, Step, Upstream, h2};
use crate::ledger::rows;

/// The least estimate in tokens for a prompt of 120 KB.
const LONG_PROMPT: u64 = 25_000;

/// An engine that sends no answer for an hour.
fn slow_engine() -> engine::EngineHandle {
    engine::spawn_thread(engine::EngineConfig {
        models: vec!["m".to_owned()],
        ttft: Duration::from_hours(1),
        ..engine::EngineConfig::default()
    })
    .expect("an engine")
}

#[test]
fn calls_whose_client_disconnects_before_the_answer_are_charged_and_marked() {
    for protocol in ["http1", "http2"] {
        let engine = slow_engine();
        let audited = AuditedGate::one(engine.addr(), &format!(", protocol: {protocol}"));
        for (n, stream) in [false, true, false].into_iter().enumerate() {
            let mut connection = Connection::open(audited.gate.data);
            connection.send(&named(&format!("left-{n}"), &body(stream, 500, 120_000)));
            testing::eventually("it runs", || engine.stats().running == 1);
            // The engine sends the head of a stream at once.
            assert!(!stream || connection.more());
            drop(connection);
            testing::eventually("it is cancelled", || engine.stats().running == 0);
        }
        let rows = audited.end(3);
        // The answer of the stream has started, without content.
        let left = "left_before_answer".into();
        let reasons = [&left, &Value::Null, &left];
        for (n, completion) in [500, 0, 500].into_iter().enumerate() {
            let row = &rows[&format!("left-{n}")];
            assert!(number(row, "prompt_tokens") > LONG_PROMPT, "{row}");
            assert_eq!(row["prompt_source"], "estimated", "{row}");
            assert_eq!(number(row, "completion_tokens"), completion, "{row}");
            assert_eq!(&row["estimate_reason"], reasons[n], "{row}");
            assert_eq!(row["outcome"], "aborted", "{row}");
        }
        engine.stop();
    }
}

#[test]
fn an_http2_stream_reset_before_the_answer_is_charged() {
    let upstream = PartialUpstream::start(Vec::new());
    let audited = AuditedGate::one(upstream.address, "");
    let _upstream = h2::run(async {
        let mut client = h2::connect(audited.gate.data).await;
        let mut request = h2::post("/v1/chat/completions", body(true, 500, 4000));
        let id = http::HeaderValue::from_static("left");
        request.headers_mut().insert("x-request-id", id);
        let reached = tokio::task::spawn_blocking(move || {
            upstream.reached();
            upstream
        });
        tokio::select! {
            _ = client.send_request(request) => panic!("nothing is answered"),
            upstream = reached => upstream.expect("the gate calls"),
        }
    });
    let rows = audited.end(1);
    let row = &rows["left"];
    assert!(number(row, "prompt_tokens") > 900, "{row}");
    assert_eq!(row["estimate_reason"], "left_before_answer", "{row}");
}

#[test]
fn the_prompt_of_an_unanswered_call_is_counted_where_a_tokenizer_is_configured() {
    let upstream = PartialUpstream::start(Vec::new());
    let backends = format!("up: {{ url: http://{}/v1 }}", upstream.address);
    let audited = AuditedGate::start(&backends, "up", "", "tokenizers: { m: cl100k }");
    let mut connection = Connection::open(audited.gate.data);
    connection.send(&named("left", &body(false, 300, 4000)));
    upstream.reached();
    drop(connection);
    upstream.closed();
    let rows = audited.end(1);
    let row = &rows["left"];
    assert_eq!(row["prompt_source"], "counted", "{row}");
    assert!(number(row, "prompt_tokens").abs_diff(800) < 30, "{row}");
    assert_eq!(row["completion_source"], "estimated", "{row}");
    assert_eq!(number(row, "completion_tokens"), 300, "{row}");
}

#[test]
fn a_call_not_sent_whole_is_not_charged() {
    // Accepts the connection and reads nothing: the kernel buffers some megabytes of the body.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let audited = AuditedGate::one(listener.local_addr().expect("it is bound"), "");
    let mut connection = Connection::open(audited.gate.data);
    connection.send(&named("left", &body(false, 500, 24_000_000)));
    let (upstream, _) = listener.accept().expect("the gate calls");
    let sent = upstream.set_read_timeout(Some(testing::PATIENCE));
    sent.and_then(|()| upstream.peek(&mut [0]))
        .expect("it sends");
    drop(connection);
    let rows = audited.end(1);
    let row = &rows["left"];
    assert_eq!(row["outcome"], "aborted", "{row}");
    assert!(row["prompt_tokens"].is_null(), "{row}");
    assert!(row["estimate_reason"].is_null(), "{row}");
}

/// A call that fails: its id, and the status and code of its answer.
type Failing = (&'static str, u16, &'static str);

fn assert_fails(audited: &AuditedGate, (id, status, code): Failing) {
    let answer = audited.gate.call(&named(id, &body(false, 700, 4000)));
    assert_eq!((answer.status, answer.code().as_str()), (status, code));
}

fn assert_charged_its_reservation(rows: &HashMap<String, Value>, (id, _, code): Failing) {
    let row = &rows[id];
    assert_eq!(number(row, "completion_tokens"), 700, "{row}");
    assert!(number(row, "prompt_tokens") > 900, "{row}");
    let held = number(row, "reserved_tokens");
    assert_eq!(number(row, "prompt_tokens") + 700, held, "{row}");
    assert_eq!(row["completion_source"], "estimated", "{row}");
    assert_eq!(row["estimate_reason"], code, "{row}");
}

#[test]
fn an_attempt_that_timed_out_or_broke_is_charged_its_reservation() {
    let upstream = Upstream::start(|_, seen| match seen.header("x-request-id")[0].as_str() {
        "hangs" => vec![Step::Sleep(Duration::from_hours(1))],
        "breaks" => vec![Step::Reset],
        "malformed" => vec![Step::Send(b"HTTP/1.1 what\r\n\r\n".to_vec()), Step::Close],
        "unknown" => vec![Step::Send(whole(200, "text/plain", b"{}"))],
        "html" => vec![Step::Send(whole(200, "text/html", b"<p>"))],
        "error" => vec![Step::Send(json(500, r#"{"error":{"message":"no"}}"#))],
        "billed" => {
            let error_with_usage = r#"{"error":{"message":"no"},"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
            vec![Step::Send(json(500, error_with_usage))]
        }
        _ => vec![Step::Send(json(200, COMPLETION))],
    });
    // Its deadline would be a slow machine's, too, for all but the one that hangs.
    let impatient = AuditedGate::one(upstream.address, ", timeouts: { first_byte: 300ms }");
    let hangs = ("hangs", 504, "upstream_timeout");
    assert_fails(&impatient, hangs);
    assert_charged_its_reservation(&impatient.end(1), hangs);

    let audited = AuditedGate::one(upstream.address, "");
    let cases = [
        ("breaks", 502, "upstream_reset"),
        ("malformed", 502, "upstream_malformed"),
        ("unknown", 502, "upstream_bad_response"),
    ];
    for case in cases {
        assert_fails(&audited, case);
    }
    assert_fails(&audited, ("html", 502, "upstream_bad_response"));
    for case in ["error", "billed"] {
        let answer = audited.gate.call(&named(case, &body(false, 700, 4000)));
        assert_eq!(answer.status, 500);
    }
    let rows = audited.end(6);
    for case in cases {
        assert_charged_its_reservation(&rows, case);
    }
    assert!(
        rows["html"]["prompt_tokens"].is_null(),
        "no model makes a page"
    );
    let error = &rows["error"];
    assert!(error["prompt_tokens"].is_null(), "{error}");
    let billed = &rows["billed"];
    assert_eq!(billed["prompt_source"], "reported", "{billed}");
    assert_eq!(number(billed, "prompt_tokens"), 5, "{billed}");
}

#[test]
fn attempts_that_may_have_run_are_recorded_beside_the_one_that_answered() {
    let slow = Upstream::start(|_, _| vec![Step::Sleep(Duration::from_hours(1))]);
    let good = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let backends = format!(
        "slow: {{ url: http://{}/v1, timeouts: {{ first_byte: 300ms }} }}, good: {{ url: http://{}/v1 }}",
        slow.address, good.address
    );
    let audited = AuditedGate::start(&backends, "[slow, good]", "", "");
    let answer = audited.gate.call(&named("again", &body(false, 90, 4000)));
    assert_eq!(answer.text(), COMPLETION);
    let rows = audited.end(1);
    let row = &rows["again"];
    assert_eq!(number(row, "attempts"), 2, "{row}");
    assert_eq!(number(row, "unconfirmed_attempts"), 1, "{row}");
    let held = number(row, "reserved_tokens");
    assert_eq!(number(row, "unconfirmed_tokens"), held, "{row}");
    assert_eq!(number(row, "completion_tokens"), 90 + 3, "{row}");
    assert_eq!(row["completion_source"], "estimated", "{row}");
    assert_eq!(number(row, "completion_reported"), 3, "{row}");
    assert_eq!(number(row, "prompt_reported"), 7, "{row}");
}

#[test]
fn an_abandoned_answer_that_never_comes_is_charged_its_reservation() {
    let upstream = PartialUpstream::start(Vec::new());
    let backends = format!("up: {{ url: http://{}/v1 }}", upstream.address);
    let drain = ", abandon: { read_to_end: { tokens: 1K, seconds: 1 } }";
    let audited = AuditedGate::start(&backends, "up", drain, "");
    let mut connection = Connection::open(audited.gate.data);
    connection.send(&named("left", &body(false, 300, 4000)));
    upstream.reached();
    drop(connection);
    upstream.closed();
    let rows = audited.end(1);
    let row = &rows["left"];
    assert_eq!(number(row, "completion_tokens"), 300, "{row}");
    assert_eq!(row["estimate_reason"], "left_before_answer", "{row}");
}

#[test]
fn an_abandoned_answer_without_usage_is_charged_by_its_size() {
    let text = "word ".repeat(400);
    let silent = format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#);
    let answer = json(200, &silent);
    let (left, is_left) = mpsc::channel();
    let is_left = Mutex::new(is_left);
    let upstream = Upstream::start(move |_, _| {
        // The answer begins once nobody waits for it.
        let is_left = is_left.lock().expect("one call");
        is_left.recv().expect("the client leaves");
        vec![Step::Send(answer.clone())]
    });
    let backends = format!("up: {{ url: http://{}/v1 }}", upstream.address);
    let drain = ", abandon: { read_to_end: { tokens: 1K, seconds: 60 } }";
    let audited = AuditedGate::start(&backends, "up", drain, "");
    let mut connection = Connection::open(audited.gate.data);
    connection.send(&named("left", &body(false, 900, 4000)));
    testing::eventually("it is sent", || upstream.seen().len() == 1);
    drop(connection);
    testing::eventually("it is read on", || {
        audited.gate.metric("tollgate_open_drains", &[]) > 0.5
    });
    left.send(()).expect("the upstream waits");
    let rows = audited.end(1);
    let row = &rows["left"];
    assert_eq!(row["completion_source"], "estimated", "{row}");
    let tokens = number(row, "completion_tokens");
    assert!((400..600).contains(&tokens), "{row}");
}

#[test]
fn a_client_that_disconnects_during_its_upload_is_not_charged() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let audited = AuditedGate::one(upstream.address, "");
    let mut tcp = std::net::TcpStream::connect(audited.gate.data).expect("the gate listens");
    let call = named("left", &body(false, 300, 4000));
    tcp.write_all(&call[..call.len() - 10])
        .expect("it is taken");
    drop(tcp);
    let lines = audited.gate.records(1);
    assert_eq!(lines[0]["outcome"], "aborted", "{}", lines[0]);
    assert!(lines[0]["prompt_tokens"].is_null(), "{}", lines[0]);
    assert_eq!(audited.spent(), 0);
    assert!(upstream.seen().is_empty());
}

#[test]
fn a_call_cut_at_the_end_of_a_drain_is_charged_over_http1_and_http2() {
    for protocol in ["http1", "http2"] {
        let engine = slow_engine();
        let backends = format!(
            "up: {{ url: http://{}/v1, protocol: {protocol} }}",
            engine.addr()
        );
        let drain = "drain: { grace: 1s }";
        let AuditedGate {
            mut gate,
            ledger,
            _dir,
            ..
        } = AuditedGate::start(&backends, "up", "", drain);
        let mut connection = Connection::open(gate.data);
        connection.send(&named("cut", &body(false, 300, 4000)));
        testing::eventually("it runs", || engine.stats().running == 1);
        gate.signal(libc::SIGTERM);
        gate.wait(testing::PATIENCE);
        let rows = rows(&ledger);
        let row = &rows["cut"];
        assert!(number(row, "prompt_tokens") > 500, "{row}");
        assert_eq!(number(row, "completion_tokens"), 300, "{row}");
        assert_eq!(row["outcome"], "failed", "{row}");
        assert_eq!(row["estimate_reason"], "gate_stopped", "{row}");
        engine.stop();
    }
}

#[test]
fn an_abandoned_call_open_at_shutdown_is_recorded_as_aborted_by_its_client() {
    let upstream = PartialUpstream::start(Vec::new());
    let backends = format!("up: {{ url: http://{}/v1 }}", upstream.address);
    let reads_on = ", abandon: { read_to_end: { tokens: 1K, seconds: 60 } }";
    let AuditedGate {
        mut gate,
        ledger,
        _dir,
        ..
    } = AuditedGate::start(&backends, "up", reads_on, "drain: { grace: 1s }");
    let mut connection = Connection::open(gate.data);
    connection.send(&named("left", &body(true, 300, 4000)));
    upstream.reached();
    drop(connection);
    testing::eventually("it is read on", || {
        gate.metric("tollgate_open_drains", &[]) > 0.5
    });
    gate.signal(libc::SIGTERM);
    gate.wait(testing::PATIENCE);
    let rows = rows(&ledger);
    let row = &rows["left"];
    assert_eq!(row["outcome"], "aborted", "{row}");
    assert_eq!(row["estimate_reason"], "left_before_answer", "{row}");
    assert_eq!(number(row, "completion_tokens"), 0, "{row}");
}

#[test]
fn a_good_status_before_nothing_or_an_error_alone_is_charged_nothing() {
    let upstream = Upstream::start(|_, seen| {
        let body = match seen.header("x-request-id")[0].as_str() {
            "empty" => "",
            "error" => r#"{"error":{"message":"no credits left","code":402}}"#,
            _ => r#"{ "type": "error", "error": { "type": "overloaded_error" } }"#,
        };
        vec![Step::Send(json(200, body))]
    });
    let audited = AuditedGate::one(upstream.address, "");
    let cases = ["empty", "error", "typed"];
    for case in cases {
        let answer = audited.gate.call(&named(case, &body(false, 700, 4000)));
        assert_eq!(answer.status, 200, "it passes as it came");
    }
    let rows = audited.end(cases.len());
    for case in cases {
        let row = &rows[case];
        assert_eq!(
            (&row["outcome"], &row["code"]),
            (&"failed".into(), &"upstream_no_answer".into()),
            "{row}"
        );
        assert!(
            row["prompt_tokens"].is_null() && row["completion_tokens"].is_null(),
            "{row}"
        );
    }
}
