//! Shutdown: one signal drains, further signals cut the drain short, and so does the grace period.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use testing::{Began, PATIENCE, eventually};

use crate::harness::streams::{self, Streams};
use crate::harness::{Connection, Gate, Signal, Step, Upstream, chat, post};

/// Longer than any test waits.
const FOREVER: &str = "1h";

fn config(upstream: std::net::SocketAddr, grace: &str) -> String {
    format!(
        "drain: {{ grace: {grace} }}\nbounds: {{ keep_alive: {FOREVER}, head_time: 10m }}\n\
         backends: {{ up: {{ url: http://{upstream}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    )
}

fn open_streams(gate: &Gate, n: u64) -> streams::Clients {
    let clients = streams::open(gate.data, None, 0..n);
    eventually("all streams have begun", || {
        clients.begun() == n && gate.metric("tollgate_open_streams", &[]) as u64 == n
    });
    clients
}

fn is_draining(gate: &Gate) {
    eventually("/readyz is 503", || gate.admin("/readyz").status == 503);
}

fn refuses_connections(gate: &Gate) {
    eventually("new connections are refused", || {
        TcpStream::connect(gate.data).is_err()
    });
}

/// The access log of a gate that has ended, which is complete.
fn records(gate: &Gate) -> Vec<Value> {
    let text = std::fs::read_to_string(gate.path("access.jsonl")).expect("a log");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("a line is JSON"))
        .collect()
}

fn call() -> Vec<u8> {
    post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    )
}

#[test]
fn a_drain_completes_open_streams_and_refuses_new_connections() {
    let upstream = Streams::start(Duration::from_millis(30));
    let mut gate = Gate::start(&config(upstream.address, FOREVER), &[]);
    let mut idle = Connection::open(gate.data);
    assert_eq!(idle.call(&call()).status, 200);
    let mut unused = TcpStream::connect(gate.data).expect("the gate listens");
    unused
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket option");
    let clients = open_streams(&gate, 40);

    gate.signal(libc::SIGTERM);
    is_draining(&gate);
    assert_eq!(gate.admin("/livez").status, 200);
    assert_eq!(gate.admin("/health").status, 503);
    assert_eq!(gate.admin("/readyz").json()["status"], "draining");
    // Neither waits for the streams.
    while idle.more() {}
    assert_eq!(idle.unread(), b"");
    assert_eq!(
        testing::read(&mut unused, &mut [0]).expect("it is closed, not reset"),
        0
    );
    refuses_connections(&gate);
    assert_eq!(
        gate.metric("tollgate_open_streams", &[]),
        40.0,
        "metrics tell of the drain"
    );

    upstream.finish();
    for stream in clients.join().expect("the clients run to their end") {
        stream.assert_identical(&upstream.sent(stream.n));
    }
    assert_eq!(gate.ended().code(), Some(0));
    let records = records(&gate);
    assert_eq!(records.len(), 41, "one record for each exchange");
    assert!(
        records.iter().all(|r| r["outcome"] == "completed"),
        "{records:?}"
    );
}

#[test]
fn a_response_that_starts_during_a_drain_says_connection_close() {
    let answers = Signal::default();
    let until = answers.clone();
    let upstream = Upstream::start(move |_, _| {
        let body =
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![
            Step::Until(until.clone()),
            Step::Send((head + body).into_bytes()),
        ]
    });
    let mut gate = Gate::start(&config(upstream.address, FOREVER), &[]);
    let mut waiting = Connection::open(gate.data);
    waiting.send(&call());
    // Its head is sent after the drain began.
    let mut half = Connection::open(gate.data);
    let (one, two) = (call(), call());
    half.send(&one[..40]);
    eventually("the call is under way", || upstream.count() == 1);
    gate.signal(libc::SIGTERM);
    // Each worker hears of it by itself, and closes its listener with that.
    refuses_connections(&gate);
    answers.give();
    half.send(&two[40..]);
    for mut connection in [waiting, half] {
        let response = connection.response();
        assert_eq!(
            (response.status, response.header("connection")),
            (200, Some("close"))
        );
        assert!(response.whole);
        assert!(!connection.more(), "and it closes");
    }
    assert_eq!(gate.ended().code(), Some(0));
    assert_eq!(records(&gate).len(), 2);
}

#[test]
fn streams_open_after_the_grace_period_are_cut_visibly_and_recorded() {
    let upstream = Streams::start(Duration::from_millis(30));
    let mut gate = Gate::start(&config(upstream.address, "1s"), &[]);
    let clients = open_streams(&gate, 40);
    let signalled = Began::now();
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.ended().code(), Some(0));
    signalled.took_at_least(Duration::from_millis(950));
    cut(clients, &upstream, &gate, 40);
    assert!(
        gate.log().contains("the grace period is over"),
        "{}",
        gate.log()
    );
}

#[test]
fn a_second_signal_ends_the_gate_at_once() {
    let upstream = Streams::start(Duration::from_millis(30));
    let mut gate = Gate::start(&config(upstream.address, FOREVER), &[]);
    let clients = open_streams(&gate, 40);
    gate.signal(libc::SIGTERM);
    is_draining(&gate);
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.ended().code(), Some(0));
    cut(clients, &upstream, &gate, 40);
}

#[test]
fn a_second_signal_ends_the_delay_and_a_third_the_drain() {
    let upstream = Streams::start(Duration::from_millis(30));
    let config = config(upstream.address, FOREVER).replace("grace:", "delay: 1h, grace:");
    let mut gate = Gate::start(&config, &[]);
    let clients = open_streams(&gate, 20);
    gate.signal(libc::SIGTERM);
    is_draining(&gate);
    drop(TcpStream::connect(gate.data).expect("the door stays open for the delay"));

    gate.signal(libc::SIGTERM);
    refuses_connections(&gate);
    assert_eq!(gate.metric("tollgate_open_streams", &[]), 20.0);

    gate.signal(libc::SIGTERM);
    assert_eq!(gate.ended().code(), Some(0));
    cut(clients, &upstream, &gate, 20);
}

/// Asserts that every stream is an incomplete prefix of what was sent, and has a record.
fn cut(clients: streams::Clients, upstream: &Streams, gate: &Gate, n: usize) {
    for stream in clients.join().expect("the clients run to their end") {
        assert!(!stream.whole, "stream {} seems whole", stream.n);
        assert!(!stream.body.is_empty());
        let sent = upstream.sent(stream.n).bytes;
        assert!(
            sent.starts_with(&stream.body),
            "stream {} has bytes nobody sent",
            stream.n
        );
        assert!(!stream.body.windows(6).any(|w| w == b"[DONE]"));
    }
    let records = records(gate);
    assert_eq!(records.len(), n, "one record for each exchange");
    for record in records {
        assert_eq!(record["outcome"], "failed", "{record}");
        assert_eq!(record["code"], "gate_stopped", "{record}");
        assert_eq!(record["streamed"], true);
    }
}

#[test]
fn without_traffic_shutdown_is_prompt() {
    let nowhere = "127.0.0.1:9".parse().expect("an address");
    let mut gate = Gate::start(&config(nowhere, FOREVER), &[]);
    gate.signal(libc::SIGINT);
    assert_eq!(gate.ended().code(), Some(0));
}

#[test]
fn after_sigterm_connections_are_accepted_during_the_delay_while_readiness_is_false() {
    let upstream = Upstream::start(|_, _| {
        vec![Step::Send(crate::harness::answer::json(
            200,
            crate::harness::answer::COMPLETION,
        ))]
    });
    let config = config(upstream.address, FOREVER);
    let delayed = |delay: &str| config.replace("grace:", &format!("delay: {delay}, grace:"));
    let gate = Gate::start(&delayed("1h"), &[]);
    let mut kept = Connection::open(gate.data);
    assert_eq!(kept.call(&call()).status, 200);
    gate.signal(libc::SIGTERM);
    is_draining(&gate);
    for _ in 0..4 {
        let response = gate.call(&call());
        assert_eq!(response.status, 200, "a new connection");
        assert_eq!(kept.call(&call()).status, 200, "and an old one");
        assert_eq!(gate.admin("/readyz").status, 503);
    }

    let mut gate = Gate::start(&delayed("2s"), &[]);
    let signalled = Began::now();
    gate.signal(libc::SIGTERM);
    refuses_connections(&gate);
    signalled.took_at_least(Duration::from_secs(2));
    assert!(gate.ended().success());

    // A person at the keyboard does not wait.
    let mut gate = Gate::start(&delayed("1h"), &[]);
    gate.signal(libc::SIGINT);
    assert!(gate.ended().success());
}
