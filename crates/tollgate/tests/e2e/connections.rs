//! Clients that are slow, idle or too many: C1, C3 and C4.
//!
//! Invariant: every wait for a client is bounded; a client that stalls does not delay others.
//! Not here: floods of HTTP/2 frames (`http2::floods`), limits by workload (`limits`).

mod bounds;
mod resource_holders;
mod tls;
mod unread;

use std::io::Write;
use std::time::{Duration, Instant};

use engine::{EngineConfig, spawn_thread};

use crate::fixture::{Fixture, IDENTITY, answer, call, config, is_closed};
use crate::harness::{Connection, Gate, Step, Upstream, chat, eventually, post};

/// How long a bound of one second may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(6);

#[test]
fn c1_a_slow_head_is_refused() {
    let fixture = Fixture::with("bounds: { head_time: 1s }\n");
    let began = Instant::now();
    let mut silent = Connection::open(fixture.gate.data);
    silent.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n");
    let mut trickling = Connection::open(fixture.gate.data);
    let data = fixture.gate.data;
    // The timeout counts from the first byte; further bytes do not extend it.
    let mut writer = trickling.tcp.try_clone().expect("a second handle");
    std::thread::spawn(move || {
        for byte in b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-a: bbbbbbbbbbbbbbbbbbbbbb"
            .iter()
            .cycle()
        {
            std::thread::sleep(Duration::from_millis(100));
            if writer.write_all(&[*byte]).is_err() {
                return;
            }
        }
    });
    for (what, connection) in [("silent", &mut silent), ("trickling", &mut trickling)] {
        fixture.refused(what, &connection.response(), 408, "request_timeout");
        assert!(is_closed(connection), "{what}");
        assert!(began.elapsed() < DEADLINE, "{what}: {:?}", began.elapsed());
    }
    assert!(began.elapsed() > Duration::from_millis(900));
    fixture.forwards_on("slow heads", &mut Connection::open(data));
    fixture.end();
}

#[test]
fn c1_a_body_that_stops_is_refused() {
    let fixture = Fixture::with("bounds: { body_idle: 1s }\n");
    let began = Instant::now();
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
        assert!(began.elapsed() < DEADLINE, "{what}: {:?}", began.elapsed());
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
    let began = Instant::now();
    connection.send(&request[..head]);
    let mut writer = connection.tcp.try_clone().expect("a second handle");
    let body = request[head..].to_vec();
    std::thread::spawn(move || {
        for byte in body {
            std::thread::sleep(Duration::from_millis(100));
            if writer.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    fixture.refused("trickling", &connection.response(), 408, "request_timeout");
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    fixture.end();
}

#[test]
fn c1_an_idle_connection_is_closed_without_a_response() {
    let fixture = Fixture::with("bounds: { keep_alive: 1s }\n");
    let mut fresh = Connection::open(fixture.gate.data);
    let mut used = Connection::open(fixture.gate.data);
    fixture.forwards_on("nothing", &mut used);
    let began = Instant::now();
    assert!(is_closed(&mut fresh));
    assert!(is_closed(&mut used));
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    fixture.end();
}

#[test]
fn c1_a_client_that_reads_nothing_is_disconnected_and_its_upstream_call_cancelled() {
    let (count, counted) = std::sync::mpsc::channel();
    let upstream = Upstream::start(move |_, _| {
        count.send(()).expect("the test listens");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let event = format!("data: {{\"x\":\"{}\"}}\n\n", "y".repeat(60_000));
        let chunk = format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
        let mut steps = vec![Step::Send(head.into())];
        steps.extend(std::iter::repeat_n(Step::Send(chunk), 1000));
        steps
    });
    let gate = Gate::start(
        &config(upstream.address, "bounds: { write_stall: 1s }\n"),
        &[],
    );
    let before = crate::http2::resident_mib(&gate);
    let mut clients: Vec<_> = (0..40).map(|_| Connection::open(gate.data)).collect();
    for client in &mut clients {
        client.send(&call(
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        ));
    }
    let began = Instant::now();
    for _ in 0..40 {
        counted
            .recv_timeout(Duration::from_secs(20))
            .expect("each reaches the upstream");
    }
    let during = crate::http2::resident_mib(&gate);
    // The upstream has 60 MB for each of them; the gate buffers at most one read of each.
    assert!(
        during - before < 32,
        "{before} MiB, then {during} MiB for 40 stuck streams"
    );
    let records = gate.records(40);
    assert!(
        records.iter().all(|r| r["outcome"] == "aborted"),
        "{:?}",
        records[0]
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    for client in &mut clients {
        assert!(!client.response().whole, "a cut stream looked whole");
    }
}

#[test]
fn c3_without_descriptors_accepting_pauses_and_streams_continue() {
    let engine = spawn_thread(EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(20),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let gate = Gate::start_with_descriptors(128, &config(engine.addr(), ""));
    let log = gate.log();
    let said = "128 files may be open, so clients may have 32 connections: raise the hard limit";
    assert!(log.contains(said), "{log}");
    let mut streaming = Connection::open(gate.data);
    let body = r#"{"model":"gpt-oss-120b","stream":true,"max_tokens":150,"messages":[{"role":"user","content":"Hi"}]}"#;
    streaming.send(&call(body));
    assert!(streaming.more());
    // More connections than descriptors; the kernel queues those that the gate does not accept.
    let idle: Vec<_> = (0..300).map(|_| Connection::open(gate.data)).collect();
    let mut queued = Connection::open(gate.data);
    queued.send(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(
        gate.admin("/readyz").status,
        200,
        "the admin endpoint keeps its descriptors"
    );
    let response = streaming.response();
    assert!(
        response.whole && response.text().ends_with("data: [DONE]\n\n"),
        "the stream was cut"
    );
    // A connection that was accepted still reaches the upstream.
    let again = streaming.call(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(again.status, 200, "{}", again.text());
    assert!(queued.unread().is_empty());
    let open = std::fs::read_dir(format!("/proc/{}/fd", gate.id()))
        .expect("it runs")
        .count();
    assert!(open < 128, "{open} descriptors");
    drop(idle);
    assert_eq!(queued.response().status, 200, "it recovers");
    let log = gate.log();
    let ran_out = "connections cannot be accepted";
    assert!(!log.contains(ran_out), "it ran out of descriptors");
    let lines = log
        .lines()
        .filter(|line| line.contains("no client is let in"));
    assert_eq!(lines.count(), 1, "one line, however long it lasts");
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
    let fixture = Fixture::new();
    let before = crate::http2::resident_mib(&fixture.gate);
    let idle: Vec<_> = (0..many)
        .map(|_| Connection::open(fixture.gate.data))
        .collect();
    eventually("all are accepted", Duration::from_secs(20), || {
        std::fs::read_dir(format!("/proc/{}/fd", fixture.gate.id()))
            .expect("it runs")
            .count()
            > many
    });
    let after = crate::http2::resident_mib(&fixture.gate);
    let each_kib = (after - before) * 1024 / i64::try_from(many).expect("few");
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
    eventually("there is room again", Duration::from_secs(5), || {
        Connection::open(fixture.gate.data)
            .call(&call(&chat("m", false)))
            .status
            == 200
    });
}

#[test]
fn c4_ten_times_the_limit_is_refused_with_429_without_reaching_the_upstream() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let limited = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up, limits: [ {{ requests: 50, per: 1h }} ] }} ]\n",
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
    // One request is refilled every 72 s.
    assert!((50..=51).contains(&admitted), "{admitted}");
    assert_eq!(upstream.seen().len(), admitted);
    for shed in responses.iter().filter(|r| r.status != 200) {
        assert_eq!(
            (shed.status, shed.code().as_str()),
            (429, "rate_limit_exceeded")
        );
        assert!(shed.header("retry-after").is_some());
    }
    let records = gate.records(500);
    assert_eq!(records.len(), 500);
    let mut took: Vec<u64> = records
        .iter()
        .filter(|r| r["outcome"] == "refused")
        .filter_map(|r| r["duration_us"].as_u64())
        .collect();
    took.sort_unstable();
    // The median, because the machine may be busy with other tests.
    assert!(
        took[took.len() / 2] < 1000,
        "{} us at the median",
        took[took.len() / 2]
    );
}
