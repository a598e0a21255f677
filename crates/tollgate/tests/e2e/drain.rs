//! Shutdown: one signal drains, further signals cut the drain short, and so does the grace period.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::streams::{self, Streams};
use crate::harness::{Connection, Gate, Step, Upstream, chat, eventually, post};

fn config(upstream: std::net::SocketAddr, grace: &str) -> String {
    format!(
        "drain: {{ grace: {grace} }}\nbackends: {{ up: {{ url: http://{upstream}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    )
}

fn open_streams(gate: &Gate, n: u64) -> streams::Clients {
    let clients = streams::open(gate.data, None, 0..n);
    eventually("all streams have begun", Duration::from_secs(20), || {
        clients.begun() == n && gate.metric("tollgate_open_streams", &[]) as u64 == n
    });
    clients
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
    let mut gate = Gate::start(&config(upstream.address, "1m"), &[]);
    let mut idle = Connection::open(gate.data);
    assert_eq!(idle.call(&call()).status, 200);
    let mut unused = TcpStream::connect(gate.data).expect("the gate listens");
    unused
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a socket option");
    let clients = open_streams(&gate, 40);

    gate.signal(libc::SIGTERM);
    let signalled = Instant::now();
    eventually("/readyz is 503", Duration::from_secs(5), || {
        gate.admin("/readyz").status == 503
    });
    let unready_after = signalled.elapsed();
    assert_eq!(gate.admin("/livez").status, 200);
    assert_eq!(gate.admin("/health").status, 503);
    assert_eq!(gate.admin("/readyz").json()["status"], "draining");
    while idle.more() {}
    assert_eq!(idle.unread(), b"");
    assert_eq!(unused.read(&mut [0]).expect("it is closed, not reset"), 0);
    let closed_after = signalled.elapsed();
    eventually(
        "new connections are refused",
        Duration::from_secs(5),
        || TcpStream::connect(gate.data).is_err(),
    );
    assert_eq!(
        gate.metric("tollgate_open_streams", &[]),
        40.0,
        "metrics tell of the drain"
    );

    upstream.finish();
    for stream in clients.join().expect("the clients run to their end") {
        stream.assert_identical(&upstream.sent(stream.n));
    }
    assert_eq!(gate.wait(Duration::from_secs(10)).code(), Some(0));
    let records = records(&gate);
    assert_eq!(records.len(), 41, "one record for each exchange");
    assert!(
        records.iter().all(|r| r["outcome"] == "completed"),
        "{records:?}"
    );
    println!("unready after {unready_after:?}, idle connections closed after {closed_after:?}");
    assert!(
        closed_after < Duration::from_secs(5),
        "idle connections: {closed_after:?}"
    );
}

#[test]
fn a_response_that_starts_during_a_drain_says_connection_close() {
    let upstream = Upstream::start(|_, _| {
        let body =
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![
            Step::Sleep(Duration::from_millis(1500)),
            Step::Send((head + body).into_bytes()),
        ]
    });
    let mut gate = Gate::start(&config(upstream.address, "1m"), &[]);
    let mut waiting = Connection::open(gate.data);
    waiting.send(&call());
    // Its head is sent after the drain began.
    let mut half = Connection::open(gate.data);
    let (one, two) = (call(), call());
    half.send(&one[..40]);
    eventually("the call is under way", Duration::from_secs(10), || {
        upstream.seen().len() == 1
    });
    gate.signal(libc::SIGTERM);
    eventually("/readyz is 503", Duration::from_secs(5), || {
        gate.admin("/readyz").status == 503
    });
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
    assert_eq!(gate.wait(Duration::from_secs(10)).code(), Some(0));
    assert_eq!(records(&gate).len(), 2);
}

#[test]
fn streams_open_after_the_grace_period_are_cut_visibly_and_recorded() {
    let upstream = Streams::start(Duration::from_millis(30));
    let mut gate = Gate::start(&config(upstream.address, "1s"), &[]);
    let clients = open_streams(&gate, 100);
    let signalled = Instant::now();
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(Duration::from_secs(15)).code(), Some(0));
    assert!(
        signalled.elapsed() >= Duration::from_millis(950),
        "{:?}",
        signalled.elapsed()
    );
    cut(clients, &upstream, &gate, 100);
    assert!(gate.log().contains("grace is over"), "{}", gate.log());
}

#[test]
fn a_second_signal_ends_the_gate_at_once() {
    let upstream = Streams::start(Duration::from_millis(30));
    let mut gate = Gate::start(&config(upstream.address, "10m"), &[]);
    let clients = open_streams(&gate, 100);
    gate.signal(libc::SIGTERM);
    eventually("/readyz is 503", Duration::from_secs(5), || {
        gate.admin("/readyz").status == 503
    });
    gate.signal(libc::SIGTERM);
    let signalled = Instant::now();
    assert_eq!(gate.wait(Duration::from_secs(10)).code(), Some(0));
    println!("ended {:?} after the second word", signalled.elapsed());
    cut(clients, &upstream, &gate, 100);
}

#[test]
fn a_second_signal_ends_the_delay_and_a_third_the_drain() {
    let upstream = Streams::start(Duration::from_millis(30));
    let config = config(upstream.address, "10m").replace("grace:", "delay: 10m, grace:");
    let mut gate = Gate::start(&config, &[]);
    let clients = open_streams(&gate, 20);
    gate.signal(libc::SIGTERM);
    eventually("/readyz is 503", Duration::from_secs(5), || {
        gate.admin("/readyz").status == 503
    });
    drop(TcpStream::connect(gate.data).expect("the door stays open for the delay"));

    gate.signal(libc::SIGTERM);
    eventually(
        "new connections are refused",
        Duration::from_secs(5),
        || TcpStream::connect(gate.data).is_err(),
    );
    assert_eq!(gate.metric("tollgate_open_streams", &[]), 20.0);

    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(Duration::from_secs(10)).code(), Some(0));
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
    let mut gate = Gate::start(
        &config("127.0.0.1:9".parse().expect("an address"), "10m"),
        &[],
    );
    gate.signal(libc::SIGINT);
    let signalled = Instant::now();
    assert_eq!(gate.wait(Duration::from_secs(10)).code(), Some(0));
    assert!(
        signalled.elapsed() < Duration::from_secs(5),
        "{:?}",
        signalled.elapsed()
    );
}

#[test]
fn after_sigterm_connections_are_accepted_during_the_delay_while_readiness_is_false() {
    let upstream = Upstream::start(|_, _| {
        vec![Step::Send(crate::harness::answer::json(
            200,
            crate::harness::answer::COMPLETION,
        ))]
    });
    let config = config(upstream.address, "1m").replace("grace:", "delay: 5s, grace:");
    let mut gate = Gate::start(&config, &[]);
    let mut kept = Connection::open(gate.data);
    assert_eq!(kept.call(&call()).status, 200);
    let signalled = Instant::now();
    gate.signal(libc::SIGTERM);
    eventually("/readyz is 503", Duration::from_secs(2), || {
        gate.admin("/readyz").status == 503
    });
    let mut calls = 0;
    while signalled.elapsed() < Duration::from_secs(2) {
        let response = gate.call(&call());
        assert_eq!(response.status, 200, "a new connection");
        assert_eq!(kept.call(&call()).status, 200, "and an old one");
        assert_eq!(gate.admin("/readyz").status, 503);
        calls += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(calls > 3, "{calls} calls");
    eventually(
        "new connections are refused",
        Duration::from_secs(5),
        || TcpStream::connect(gate.data).is_err(),
    );
    assert!(signalled.elapsed() >= Duration::from_secs(5));
    assert!(gate.wait(Duration::from_secs(10)).success());

    let mut gate = Gate::start(&config, &[]);
    gate.signal(libc::SIGINT);
    let signalled = Instant::now();
    assert!(gate.wait(Duration::from_secs(10)).success());
    assert!(
        signalled.elapsed() < Duration::from_secs(5),
        "a person at the keyboard does not wait"
    );
}
