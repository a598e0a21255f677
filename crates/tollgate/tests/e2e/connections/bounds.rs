//! Bounds on the memory, time and connections that a client can use: C1, C4 and C6.
//!
//! Not here: clients that do not read (`unread`), many clients at once (`resource_holders`).

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use testing::{Began, eventually, found, pace};

use crate::fixture::{Fixture, IDENTITY, answer, call};
use crate::harness::h2::{self, Frames};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

/// The head of a call that declares this content length.
fn head(length: usize, lines: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gate.test\r\n{IDENTITY}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{lines}\r\n"
    )
    .into_bytes()
}

/// A call of this length with one long text.
fn body_of(length: usize) -> Vec<u8> {
    let (before, after) = (r#"{"model":"m","messages":[],"x":""#, "\"}");
    let fill = "y".repeat(length - before.len() - after.len());
    [before, &fill, after].concat().into_bytes()
}

#[test]
fn c1_a_declared_length_costs_no_memory_before_it_arrives() {
    // None of them is silent for too long before all have begun.
    let fixture = Fixture::with("bounds: { body_idle: 10m, body_time: 10m }\n");
    let some: Vec<_> = (0..50)
        .map(|_| Connection::open(fixture.gate.data))
        .collect();
    drop(some);
    let before = fixture.gate.resident_kib();
    let many = 600;
    let clients: Vec<_> = (0..many)
        .map(|_| {
            let mut client = Connection::open(fixture.gate.data);
            client.send(&[&head(30_000_000, "")[..], b"{\"x\":"].concat());
            client
        })
        .collect();
    eventually("all have begun", || {
        fixture.gate.metric("tollgate_open_exchanges", &[]) > 599.5
    });
    let each_kib = (fixture.gate.resident_kib() - before) / many;
    assert!(each_kib < 48, "{each_kib} KiB for each of {many}");
    drop(clients);
}

#[test]
fn c6_bodies_beyond_the_memory_budget_are_refused_until_memory_is_released() {
    let fixture = Fixture::with("bounds: { body: 1MiB, bodies: 2MiB }\n");
    let kept = || fixture.gate.metric("tollgate_body_bytes", &[]);
    let body = body_of(1 << 20);
    let part = 600 << 10;
    let begin = || {
        let mut client = Connection::open(fixture.gate.data);
        client.send(
            format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: gate.test\r\n{IDENTITY}\r\n\
                 content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{part:x}\r\n"
            )
            .as_bytes(),
        );
        client.send(&body[..part]);
        client
    };
    let mut clients: Vec<_> = (0..3).map(|_| begin()).collect();
    let three = f64::from(3 * (600 << 10));
    eventually("three are kept", || kept() > three - 1.0);
    let refused = begin().response();
    fixture.refused("the fourth", &refused, 503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    let most = f64::from(2 << 20);
    assert!(kept() <= most, "{} bytes", kept());
    clients.pop();
    clients.pop();
    eventually("their room is free", || kept() < most / 2.0);
    let mut last = clients.pop().expect("one is left");
    last.send(format!("\r\n{:x}\r\n", body.len() - part).as_bytes());
    last.send(&body[part..]);
    last.send(b"\r\n0\r\n\r\n");
    fixture.forwarded("the first", &last.response());
    eventually("nothing is kept", || kept() < 0.5);
    fixture.forwards_on("refusals", &mut Connection::open(fixture.gate.data));
}

#[test]
fn c6_a_workload_over_its_limit_is_refused_before_it_uploads() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let limited = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up, limits: [ {{ requests: 1, per: 1h }} ] }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&limited, &[]);
    // Within the limit a client gets 100 Continue.
    let mut first = Connection::open(gate.data);
    let body = chat("m", false);
    first.send(&head(body.len(), "expect: 100-continue\r\n"));
    assert!(first.more());
    assert!(
        first.unread().starts_with(b"HTTP/1.1 100 "),
        "{:?}",
        first.unread()
    );
    first.send(body.as_bytes());
    assert_eq!(first.response().status, 200);
    for lines in ["expect: 100-continue\r\n", ""] {
        let mut client = Connection::open(gate.data);
        client.send(&head(20_000_000, lines));
        client.more();
        let said = String::from_utf8_lossy(client.unread()).into_owned();
        assert!(said.starts_with("HTTP/1.1 429 "), "{lines}: {said}");
        let response = client.response();
        assert_eq!(response.code(), "rate_limit_exceeded", "{lines}");
        assert!(response.header("retry-after").is_some(), "{lines}");
        assert!(
            response
                .header("x-ratelimit-remaining-requests")
                .is_some_and(|left| left == "0"),
            "{lines}"
        );
    }
    // Over HTTP/2 too, before any DATA.
    let mut frames = Frames::open(gate.data, &[]);
    let list = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1/chat/completions"),
        (":authority", "gate.test"),
        ("x-workload-app", "w"),
        ("content-type", "application/json"),
        ("content-length", "20000000"),
    ];
    frames.headers(1, &list, false);
    let ended = frames.ended(1);
    assert!(
        matches!(ended, h2::Ended::Whole(429) | h2::Ended::Reset(_)),
        "{ended:?}"
    );
    assert_eq!(upstream.seen().len(), 1);
    let records = gate.records(4);
    let codes: Vec<_> = records.iter().map(|r| r["code"].as_str()).collect();
    assert_eq!(&codes[1..], [Some("rate_limit_exceeded"); 3]);
    let limited = gate.metric("http_local_rate_limit_rate_limited", &[]);
    assert!((limited - 3.0).abs() < 0.1, "{limited}");
}

#[test]
fn c1_a_steady_but_slow_body_is_refused_after_body_time() {
    let fixture = Fixture::with("bounds: { body_time: 2s }\n");
    let mut client = Connection::open(fixture.gate.data);
    let mut writer = client.tcp.try_clone().expect("a second handle");
    let began = Began::now();
    client.send(&head(200_000, ""));
    std::thread::spawn(move || {
        for piece in body_of(200_000).chunks(2000) {
            pace(Duration::from_millis(80));
            if writer.write_all(piece).is_err() {
                return;
            }
        }
    });
    fixture.refused("steadily", &client.response(), 408, "request_timeout");
    began.took_at_least(Duration::from_millis(1800));
    fixture.end();
}

/// Connects from this source address of the loopback network.
fn open_from(source: [u8; 4], to: SocketAddr) -> Connection {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(source)), 0);
    socket.bind(&from.into()).expect("loopback has it");
    socket.connect(&to.into()).expect("something listens");
    Connection::of(TcpStream::from(socket))
}

#[test]
fn c4_connections_of_one_address_are_bounded_and_other_addresses_served() {
    let fixture = Fixture::with("bounds: { source_connections: 3 }\n");
    let data = fixture.gate.data;
    let mut kept: Vec<_> = (0..3).map(|_| open_from([127, 0, 0, 2], data)).collect();
    for connection in &mut kept {
        fixture.forwards_on("the first three", connection);
    }
    for _ in 0..2 {
        let mut beyond = open_from([127, 0, 0, 2], data);
        let response = beyond.call(&call(&chat("m", false)));
        fixture.refused("the fourth", &response, 503, "overloaded");
        assert!(response.header("retry-after").is_some());
    }
    fixture.forwards_on("another address", &mut open_from([127, 0, 0, 3], data));
    let bound = ["bound=\"source_connections\""];
    let closed = fixture
        .gate
        .metric("tollgate_connections_closed_total", &bound);
    assert!((closed - 2.0).abs() < 0.1, "{closed}");
    let warned = |log: &str| log.matches("bounds.source_connections").count();
    assert_eq!(warned(&fixture.gate.log()), 1, "one line for both");
    drop(kept);
    eventually("there is room again", || {
        let mut again = open_from([127, 0, 0, 2], data);
        again
            .call(&post("/v1/chat/completions", &[IDENTITY], "{}"))
            .status
            == 200
    });
    let log = fixture.gate.log();
    assert!(log.contains("connections from this source are taken again"));
}

#[test]
fn c9_a_body_that_is_costly_to_scan_does_not_block_other_calls() {
    // Others are served between steps of 64 KiB of the scan. 16 MB have 240 of them, and come in some ten pieces.
    const SERVED: usize = 20;
    let fixture = Fixture::new();
    // Escaped names are decoded byte by byte, which is slow.
    let names = r#","\u0061\u0062\u0063\u0064":1"#;
    let names = names.repeat(16_000_000 / names.len());
    let request = call(&[r#"{"model":"m","messages":[]"#, &names, "}"].concat());
    let data = fixture.gate.data;
    // Where this process stands still while the body is read, it is read again.
    found("others are served while a body is read", || {
        let body = request.clone();
        let uploading = std::thread::spawn(move || Connection::open(data).call(&body).status);
        let mut bystander = Connection::open(data);
        let mut served = 0;
        while !uploading.is_finished() {
            let response = bystander.call(&post("/v1/models", &["x-workload-app: nobody"], ""));
            assert_eq!(response.status, 404, "{}", response.text());
            served += 1;
        }
        assert_eq!(uploading.join().expect("no panic"), 200);
        println!("{served} calls while a body was read");
        (served >= SERVED).then_some(())
    });
}

#[test]
fn c2_streams_of_a_connection_are_bounded_by_configuration() {
    for (lines, streams) in [("", 100), ("bounds: { streams: 7 }\n", 7)] {
        let fixture = Fixture::with(lines);
        let mut frames = Frames::open(fixture.gate.data, &[]);
        let settings = frames.settings();
        let setting = settings.iter().find(|(id, _)| *id == 3);
        assert_eq!(setting, Some(&(3, streams)), "{settings:?}");
    }
}
