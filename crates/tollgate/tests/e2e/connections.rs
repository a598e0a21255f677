//! Clients that are slow, idle or too many: C1, C3 and C4.
//!
//! Invariant: every wait for a client is bounded; a client that stalls does not delay others.
//! Not here: floods of HTTP/2 frames (`http2::floods`), limits by workload (`limits`).

mod bounds;
mod resource_holders;
mod tls;
mod unread;

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use testing::{Began, eventually, found, pace};

use crate::fixture::{Fixture, IDENTITY, answer, call, config, is_closed};
use crate::harness::answer::{LAST_CHUNK, chunk, delta, events_head};
use crate::harness::{Connection, Gate, Signal, Step, Upstream, chat, post};

/// Sends these bytes one by one, and is slow about it, until the gate takes no more.
fn trickle(mut to: TcpStream, bytes: impl Iterator<Item = u8> + Send + 'static) {
    std::thread::spawn(move || {
        for byte in bytes {
            pace(Duration::from_millis(100));
            if to.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
}

#[test]
fn c1_a_slow_head_is_refused() {
    let fixture = Fixture::with("bounds: { head_time: 1s }\n");
    let began = Began::now();
    let mut silent = Connection::open(fixture.gate.data);
    silent.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n");
    let mut trickling = Connection::open(fixture.gate.data);
    let data = fixture.gate.data;
    // The timeout counts from the first byte; further bytes, which never end, do not extend it.
    let head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-a: b";
    let writer = trickling.tcp.try_clone().expect("a second handle");
    trickle(writer, head.iter().copied().chain(std::iter::repeat(b'b')));
    for (what, connection) in [("silent", &mut silent), ("trickling", &mut trickling)] {
        fixture.refused(what, &connection.response(), 408, "request_timeout");
        assert!(is_closed(connection), "{what}");
    }
    began.took_at_least(Duration::from_millis(900));
    fixture.forwards_on("slow heads", &mut Connection::open(data));
    fixture.end();
}

#[test]
fn c1_a_body_that_stops_is_refused() {
    let fixture = Fixture::with("bounds: { body_idle: 1s }\n");
    let request = call(&chat("m", false));
    let mut with_length = Connection::open(fixture.gate.data);
    with_length.send(&request[..request.len() - 5]);
    let mut chunked = Connection::open(fixture.gate.data);
    chunked.send(
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{{\"model\"")
            .as_bytes(),
    );
    for (what, connection) in [("a length", &mut with_length), ("chunks", &mut chunked)] {
        fixture.refused(what, &connection.response(), 408, "request_timeout");
        assert!(is_closed(connection), "{what}");
    }
    fixture.end();
}

#[test]
fn c1_a_body_that_trickles_is_refused_at_its_rate() {
    // Never silent for a second, but far below 256 bytes a second.
    let fixture = Fixture::with("bounds: { body_idle: 1s }\n");
    let mut connection = Connection::open(fixture.gate.data);
    let request = call(&chat(&"m".repeat(200), false));
    let head = request
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a head")
        + 4;
    connection.send(&request[..head]);
    let writer = connection.tcp.try_clone().expect("a second handle");
    let body = request[head..].to_vec();
    trickle(writer, body.into_iter());
    // Whole it would be answered.
    fixture.refused("trickling", &connection.response(), 408, "request_timeout");
    fixture.end();
}

#[test]
fn c1_an_idle_connection_is_closed_without_a_response() {
    let fixture = Fixture::with("bounds: { keep_alive: 1s }\n");
    let mut fresh = Connection::open(fixture.gate.data);
    // A machine that stands still may let a connection's second pass before its call comes.
    let (mut used, response) = found("a call on a connection in time", || {
        let mut used = Connection::open(fixture.gate.data);
        let response = used.call(&call(&chat("m", false)));
        (response.status != 0).then_some((used, response))
    });
    fixture.forwarded("a call", &response);
    assert!(is_closed(&mut fresh));
    assert!(is_closed(&mut used));
    fixture.end();
}

#[test]
fn c1_a_client_that_reads_nothing_is_disconnected_and_its_upstream_call_cancelled() {
    let upstream = Upstream::start(|_, _| {
        let event = chunk(delta(&"y".repeat(60_000)).as_bytes());
        vec![Step::Send(events_head()), Step::Repeat(event, 1000)]
    });
    let gate = Gate::start(
        &config(upstream.address, "bounds: { write_stall: 1s }\n"),
        &[],
    );
    let before = gate.resident_kib();
    let mut clients: Vec<_> = (0..40).map(|_| Connection::open(gate.data)).collect();
    for client in &mut clients {
        client.send(&call(
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        ));
    }
    let records = gate.records(40);
    assert_eq!(upstream.count(), 40, "each reaches the upstream");
    assert!(
        records.iter().all(|r| r["outcome"] == "aborted"),
        "{:?}",
        records[0]
    );
    // The upstream has 60 MB for each of them; the gate buffers at most one read of each.
    let peak = gate.peak_kib();
    assert!(
        peak - before < 32 << 10,
        "{before} KiB, then {peak} KiB for 40 stuck streams"
    );
    for client in &mut clients {
        assert!(!client.response().whole, "a cut stream looked whole");
    }
}

#[test]
fn c3_without_descriptors_accepting_pauses_and_streams_continue() {
    let finish = Signal::default();
    let until = finish.clone();
    let upstream = Upstream::start(move |n, _| {
        if n > 0 {
            return vec![Step::Send(answer())];
        }
        let (begins, ends) = (chunk(delta("one").as_bytes()), chunk(b"data: [DONE]\n\n"));
        vec![
            Step::Send([events_head(), begins].concat()),
            Step::Until(until.clone()),
            Step::Send([&ends[..], LAST_CHUNK].concat()),
        ]
    });
    let gate = Gate::start_with_descriptors(128, &config(upstream.address, ""));
    let log = gate.log();
    let said = "128 files may be open, so clients may have 32 connections: raise the hard limit";
    assert!(log.contains(said), "{log}");
    let mut streaming = Connection::open(gate.data);
    streaming.send(&call(&chat("m", true)));
    assert!(streaming.more());
    // More connections than descriptors; the kernel queues those that the gate does not accept.
    let idle: Vec<_> = (0..300).map(|_| Connection::open(gate.data)).collect();
    let mut queued = Connection::open(gate.data);
    queued.send(&call(&chat("m", false)));
    assert_eq!(
        gate.admin("/readyz").status,
        200,
        "the admin endpoint keeps its descriptors"
    );
    eventually("the log says that nobody is accepted", || {
        gate.log().contains("no client connection is accepted")
    });
    finish.give();
    let response = streaming.response();
    assert!(
        response.whole && response.text().ends_with("data: [DONE]\n\n"),
        "the stream was cut"
    );
    // A connection that was accepted still reaches the upstream.
    let again = streaming.call(&call(&chat("m", false)));
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(upstream.count(), 2, "the queued call waits");
    assert!(queued.unread().is_empty());
    let open = gate.descriptors();
    assert!(open < 128, "{open} descriptors");
    drop(idle);
    assert_eq!(queued.response().status, 200, "it recovers");
    let log = gate.log();
    let ran_out = "connections cannot be accepted";
    assert!(!log.contains(ran_out), "it ran out of descriptors");
    let lines = log
        .lines()
        .filter(|line| line.contains("no client connection is accepted: "));
    assert_eq!(lines.count(), 1, "one line says that it begins");
}

#[test]
fn c3_thousands_of_idle_connections_cost_little() {
    // As many as the limit of open files allows for both sides, beside other tests.
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux says so");
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))
        .expect("a limit");
    let soft: usize = line
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1024);
    let many = (soft / 4).min(4000);
    // None of them is idle for too long before all are there.
    let fixture = Fixture::with("bounds: { keep_alive: 1h }\n");
    let before = fixture.gate.resident_kib();
    let idle: Vec<_> = (0..many)
        .map(|_| Connection::open(fixture.gate.data))
        .collect();
    eventually("all are accepted", || fixture.gate.descriptors() > many);
    let after = fixture.gate.resident_kib();
    let each_kib = (after - before) / i64::try_from(many).expect("few");
    assert!(
        each_kib <= 16,
        "{each_kib} KiB for each of {many} idle connections"
    );
    fixture.forwards_on("idle connections", &mut Connection::open(fixture.gate.data));
    drop(idle);
    fixture.end();
}

#[test]
fn c4_connections_beyond_the_bound_are_refused_and_the_others_served() {
    let fixture = Fixture::with("bounds: { connections: 4 }\n");
    let mut kept: Vec<_> = (0..4)
        .map(|_| Connection::open(fixture.gate.data))
        .collect();
    for connection in &mut kept {
        fixture.forwards_on("the first four", connection);
    }
    let mut turned_away = Connection::open(fixture.gate.data);
    let response = turned_away.call(&call(&chat("m", false)));
    assert_eq!(
        (response.status, response.code().as_str()),
        (503, "overloaded"),
        "{}",
        response.text()
    );
    assert!(response.header("retry-after").is_some());
    for connection in &mut kept {
        fixture.forwards_on("the first four", connection);
    }
    kept.pop();
    eventually("there is room again", || {
        Connection::open(fixture.gate.data)
            .call(&call(&chat("m", false)))
            .status
            == 200
    });
}

/// Asks ten times as much as the limit allows. Gives what the gate says it took to refuse each, in microseconds.
fn ten_times_the_limit() -> Vec<u64> {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let limited = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up, limits: [ {{ requests: 50, per: 366d }} ] }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&limited, &[]);
    let data = gate.data;
    let clients: Vec<_> = (0..10)
        .map(|_| {
            std::thread::spawn(move || {
                let mut connection = Connection::open(data);
                (0..50)
                    .map(|_| {
                        connection.call(&post(
                            "/v1/chat/completions",
                            &[IDENTITY],
                            &chat("m", false),
                        ))
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let responses: Vec<_> = clients
        .into_iter()
        .flat_map(|c| c.join().expect("no panic"))
        .collect();
    let admitted = responses.iter().filter(|r| r.status == 200).count();
    // One request is refilled every week.
    assert_eq!((admitted, upstream.count()), (50, 50));
    for shed in responses.iter().filter(|r| r.status != 200) {
        assert_eq!(
            (shed.status, shed.code().as_str()),
            (429, "rate_limit_exceeded")
        );
        assert!(shed.header("retry-after").is_some());
    }
    let records = gate.records(500);
    assert_eq!(records.len(), 500);
    let mut refused: Vec<_> = records.iter().collect();
    refused.retain(|r| r["outcome"] == "refused");
    assert!(refused.iter().all(|r| r["attempts"] == 0));
    let took = refused.iter().filter_map(|r| r["duration_us"].as_u64());
    took.collect()
}

#[test]
fn c4_ten_times_the_limit_is_refused_with_429_without_reaching_the_upstream() {
    assert_eq!(ten_times_the_limit().len(), 450);
}

#[test]
#[ignore = "timing"]
fn timing_a_call_over_the_limit_is_refused_within_a_millisecond() {
    let mut took = ten_times_the_limit();
    took.sort_unstable();
    let median = took[took.len() / 2];
    println!("refused in {median} us at the median");
    assert!(median < 1000, "{median} us at the median");
}
