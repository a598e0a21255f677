//! The load client against small servers that answer correctly, wrongly, late or not at all.

mod connections;
mod http2;
mod server;
mod sessions;
mod streams;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use load::client::{Failure, Request, fetch};
use load::observer::{Observations, Record};
use load::run::{Plan, Shape, start};
use load::source::{Fixed, Head, IdHeader};
use server::{Gate, Server};
use testing::{Began, eventually, nothing_happens_for};

fn head() -> Head {
    Head::post("/v1/chat/completions").expect("a path")
}

/// More than so few requests take, however busy the machine is: a run of a number of requests ends with the last of them.
const ENOUGH: Duration = testing::PATIENCE;

fn to(address: SocketAddr, shape: Shape) -> Plan {
    let source = Fixed::one(head(), Bytes::from_static(b"{}"));
    let measure = Duration::from_millis(300);
    let what = (head(), Arc::new(source) as _);
    Plan {
        warm_up: Duration::from_millis(50),
        ..Plan::plain(address, what, shape, Duration::ZERO, measure, ENOUGH)
    }
}

fn plan(server: &Server, shape: Shape) -> Plan {
    to(server.address, shape)
}

fn closed(users: usize) -> Shape {
    Shape::Closed {
        users,
        think: Duration::ZERO,
    }
}

/// Has every request carry its id, and its row come here.
fn with_ids(plan: &mut Plan) -> std::sync::mpsc::Receiver<Vec<Record>> {
    let (to, rows) = std::sync::mpsc::sync_channel(64);
    plan.records = Some(to);
    plan.traffic[0].request_id = Some(IdHeader::new("X-Request-Id").expect("a name"));
    rows
}

fn seen(plan: Plan) -> Observations {
    let outcome = start(plan).expect("threads").finish().expect("a run");
    outcome.total()
}

#[test]
fn users_reuse_their_connection_and_every_answer_is_counted() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let plan = Plan {
        most: Some(500),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(4))
    };
    let run = start(plan).expect("threads");
    let outcome = run.finish().expect("a run");
    assert!(outcome.client_cpu > Duration::ZERO && outcome.client_cpu < outcome.measured);
    let seen = outcome.total();
    assert_eq!((seen.answered, seen.failed()), (500, 0));
    assert_eq!((server.requests(), server.connections()), (500, 4));
    let latency = seen.latency().expect("answers");
    assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max);
}

#[test]
fn a_request_count_ends_the_run() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let plan = Plan {
        most: Some(7),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(3))
    };
    let seen = seen(plan);
    assert_eq!((seen.answered, server.requests()), (7, 7));
}

#[test]
fn a_run_of_a_number_of_requests_is_as_long_as_they_take() {
    let server = Server::new(|_| vec![server::wait(30), server::whole(b"hello")]);
    let plan = Plan {
        most: Some(8),
        warm_up: Duration::ZERO,
        measure: Duration::from_secs(3600),
        ..plan(&server, closed(4))
    };
    let outcome = start(plan).expect("threads").finish().expect("a run");
    assert_eq!(outcome.total().answered, 8);
    let (shortest, longest) = (Duration::from_millis(60), Duration::from_secs(3600));
    assert!(
        outcome.measured >= shortest && outcome.measured < longest,
        "two turns of 30 ms: {:?}",
        outcome.measured
    );
}

#[test]
fn an_answer_with_another_body_than_expected_is_a_failure() {
    let server = Server::new(|index| match index {
        0 | 2 => vec![server::whole(b"hello")],
        _ => vec![server::whole(b"hellO")],
    });
    let plan = Plan {
        most: Some(4),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(1))
    };
    let mut plan = plan;
    plan.traffic[0].expects = Some(Bytes::from_static(b"hello"));
    let seen = seen(plan);
    assert_eq!(seen.answered, 2);
    assert_eq!(seen.failures.get(&Failure::Body), Some(&2));
}

#[test]
fn streamed_events_are_counted_and_the_first_byte_comes_before_the_last() {
    let read = Gate::default();
    let until = server::until(&read);
    let server = Server::new(move |_| {
        let event = server::chunk(b"data: x\n\n");
        let mut steps = vec![server::chunked_head(), event.clone(), until.clone()];
        steps.extend([event.clone(), event.clone(), event]);
        steps.push(server::last_chunk());
        steps
    });
    let plan = Plan {
        most: Some(2),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(2))
    };
    let running = start(plan).expect("threads");
    eventually("two first bytes", || running.open() == 2);
    nothing_happens_for(Duration::from_millis(70));
    read.open();
    let seen = running.finish().expect("a run").total();
    assert_eq!((seen.answered, seen.events), (2, 8));
    let (first, last) = (
        seen.first_byte().expect("answers"),
        seen.latency().expect("answers"),
    );
    // Both were due at once.
    assert!(first.max + 60_000 < last.p50, "{first:?} {last:?}");
}

#[test]
fn an_open_loop_counts_the_wait_of_requests_that_could_not_be_sent_in_time() {
    let server = Server::new(|index| {
        let pause = if index == 0 { 310 } else { 0 };
        vec![server::wait(pause), server::whole(b"late")]
    });
    let shape = Shape::Open {
        per_second: 20.0,
        connections: 1,
    };
    let plan = Plan {
        most: Some(9),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, shape)
    };
    let seen = seen(plan);
    let latency = seen.latency().expect("answers");
    assert_eq!(seen.answered, 9);
    assert!(latency.max >= 310_000, "{latency:?}");
    assert!(
        latency.p50 >= 100_000,
        "two thirds of the requests were due during the stall: {latency:?}"
    );
    assert_eq!(seen.unsent, 0);
}

#[test]
fn failures_are_classified_by_kind() {
    let cases: [(Failure, server::Script); 5] = [
        (Failure::Status(503), |_| {
            vec![server::bytes(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            )]
        }),
        (Failure::Truncated, |_| {
            vec![
                server::bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"),
                server::close(),
            ]
        }),
        (Failure::Closed, |_| vec![server::close()]),
        (Failure::Malformed, |_| {
            vec![server::bytes(b"SSH-2.0-no\r\n\r\n"), server::close()]
        }),
        (Failure::Timeout, |_| vec![server::never()]),
    ];
    for (expected, script) in cases {
        let server = Server::new(script);
        let mut plan = Plan {
            most: Some(1),
            warm_up: Duration::ZERO,
            measure: ENOUGH,
            ..plan(&server, closed(1))
        };
        if expected == Failure::Timeout {
            plan.reach.timeout = Duration::from_millis(500);
        }
        let seen = seen(plan);
        assert_eq!(
            seen.failures.into_iter().collect::<Vec<_>>(),
            [(expected, 1)]
        );
        assert_eq!(seen.answered, 0);
    }
}

#[test]
fn an_unreachable_address_is_a_connect_failure_and_ends_in_time() {
    let closed_port = server::ClosedPort::new();
    let run = |most, measure| {
        seen(Plan {
            most,
            warm_up: Duration::ZERO,
            measure,
            ..to(closed_port.address, closed(2))
        })
    };
    let some = run(Some(6), ENOUGH);
    assert_eq!(
        some.failures.into_iter().collect::<Vec<_>>(),
        [(Failure::Connect, 6)]
    );
    assert_eq!(some.answered, 0);
    // Without a number of requests it ends by its time, and how many there were by then is the machine's affair.
    assert_eq!(run(None, Duration::from_millis(100)).answered, 0);
}

#[test]
fn held_streams_are_open_concurrently_and_complete() {
    let all_are_open = Gate::default();
    let until = server::until(&all_are_open);
    let server = Server::new(move |_| {
        let event = server::chunk(b"data: x\n\n");
        vec![
            server::chunked_head(),
            event.clone(),
            until.clone(),
            event,
            server::last_chunk(),
        ]
    });
    let mut plan = Plan {
        warm_up: Duration::ZERO,
        drain: ENOUGH,
        ..plan(&server, Shape::Hold { streams: 20 })
    };
    plan.workload.ramp = Duration::from_millis(100);
    let running = start(plan).expect("threads");
    eventually("twenty streams at once", || running.open() == 20);
    all_are_open.open();
    let seen = running.finish().expect("a run").total();
    assert_eq!(
        (seen.answered, seen.failed(), server.connections()),
        (20, 0, 20)
    );
}

#[test]
fn fetch_returns_one_whole_response_with_its_chunks() {
    // More than is read at once.
    let first = [b"data: ".as_slice(), &[b'a'; 200 << 10], b"\n\n"].concat();
    let chunk = server::chunk(&first);
    let server = Server::new(move |_| {
        vec![
            server::chunked_head(),
            chunk.clone(),
            server::wait(20),
            server::chunk(b"data: b\n\n"),
            server::last_chunk(),
        ]
    });
    let request = Request {
        head: head(),
        body: Bytes::from_static(b"{}"),
    };
    let began = Began::now();
    let fetched = fetch(server.address, &request, ENOUGH).expect("a response");
    began.took_at_least(Duration::from_millis(20));
    assert_eq!(fetched.status, 200);
    assert!(fetched.body == [first.as_slice(), b"data: b\n\n"].concat());
    let pieces: Vec<usize> = fetched.pieces.iter().map(|piece| piece.bytes).collect();
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!(pieces.iter().sum::<usize>(), fetched.body.len());
    assert!(fetched.pieces.is_sorted_by_key(|piece| piece.after));
}

#[test]
fn a_peer_that_never_stops_talking_is_no_longer_heard_than_the_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let mut ended = std::io::Write::write_all(&mut socket, head);
        while ended.is_ok() {
            ended = std::io::Write::write_all(&mut socket, &[b':'; 16 << 10]);
        }
    });
    let mut plan = Plan {
        warm_up: Duration::ZERO,
        most: Some(1),
        ..to(address, closed(1))
    };
    plan.reach.timeout = Duration::from_millis(300);
    // Hours: that it ends shows that it was no longer heard.
    (plan.measure, plan.drain) = (Duration::from_secs(3600), Duration::from_secs(3600));
    let seen = seen(plan);
    assert_eq!(
        seen.failures.get(&Failure::Timeout),
        Some(&1),
        "{:?}",
        seen.failures
    );
}

#[test]
fn who_gets_no_good_answer_waits_longer_each_time_where_the_plan_says_so() {
    let refuse = |_| {
        let head = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno";
        vec![server::bytes(head)]
    };
    let asked = |backs_off, most| {
        let server = Server::new(refuse);
        let plan = Plan {
            backs_off,
            most: Some(most),
            warm_up: Duration::ZERO,
            measure: ENOUGH,
            ..plan(&server, closed(1))
        };
        let seen = seen(plan);
        assert_eq!(seen.said[&Failure::Status(401)], "no");
        server.requests()
    };
    let began = Began::now();
    assert_eq!(asked(true, 4), 4);
    began.took_at_least(Duration::from_millis(100 + 200 + 400));
    // With such pauses these would take four minutes, which is more than is measured.
    assert_eq!(asked(false, 40), 40);
}

#[test]
fn a_target_that_is_not_there_is_named_with_the_reason() {
    let closed_port = server::ClosedPort::new();
    let address = closed_port.address;
    let plan = Plan {
        warm_up: Duration::ZERO,
        most: Some(1),
        measure: ENOUGH,
        ..to(address, closed(1))
    };
    let said = &seen(plan).said[&Failure::Connect];
    assert!(
        said.contains(&address.to_string()) && said.contains("refused"),
        "{said}"
    );
}

#[test]
fn each_request_over_http1_carries_the_id_that_its_row_has() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (to, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let to = to.clone();
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let head = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    to.send(head).expect("the test hears");
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).expect("a client");
                }
            });
        }
    });
    let mut plan = few(address);
    let rows = with_ids(&mut plan);
    assert_eq!(seen(plan).failed(), 0);
    let heads: Vec<String> = heads.try_iter().collect();
    let ids: Vec<String> = rows
        .iter()
        .flatten()
        .map(|row| row.request_id().to_string())
        .collect();
    assert_eq!((ids.len(), heads.len()), (20, 20));
    for id in ids {
        let line = format!("\r\nx-request-id: {id}\r\n\r\n{{}}");
        let times = heads.iter().filter(|head| head.ends_with(&line)).count();
        assert_eq!(times, 1, "{line} {heads:?}");
    }
}

fn few(address: SocketAddr) -> Plan {
    Plan {
        most: Some(20),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..to(address, closed(3))
    }
}

#[test]
fn a_head_with_an_id_of_its_own_takes_no_other() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let mut plan = plan(&server, closed(1));
    plan.traffic[0].head = head().with("x-request-id", "mine").expect("a header");
    drop(with_ids(&mut plan));
    let refused = start(plan).err().expect("two ids").to_string();
    assert!(refused.contains("carry ids"), "{refused}");
}
