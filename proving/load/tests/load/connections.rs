//! Connections that close, targets in turn, bodies in parts, and threads.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use experiment::arrivals::{Process, Scope};
use experiment::workload::{Enter, Load, Profile, Stay};
use load::client::{Failure, Target};
use load::run::{Plan, start};
use load::source::{Fixed, Payload};
use testing::{eventually, pace};

use super::server::{self, Gate, Server};
use super::{ENOUGH, closed, head, plan, seen};

/// As many users who come in one by one and only think: that one has come shows that a wish has been carried out.
fn witnesses(plan: &mut Plan, users: u32) {
    plan.workload.profiles.push(Profile {
        name: "witnesses".into(),
        load: Load::Closed {
            users,
            think: Process::Constant { mean_s: 1_800.0 },
            enter: Enter::Thinking,
            stay: Stay::Always,
        },
        scope: Scope::User,
    });
    let mut traffic = plan.traffic[0].clone();
    traffic.users_at_first = Some(0);
    plan.traffic.push(traffic);
}

#[test]
fn a_kept_connection_that_closed_in_the_pause_is_opened_anew_and_counted() {
    const ROUNDS: u32 = 4;
    let gates: Vec<Gate> = (0..ROUNDS).map(|_| Gate::default()).collect();
    let theirs = gates.clone();
    // It says that it keeps the connection, and does not.
    let server = Server::new(move |index| {
        let until = server::until(&theirs[usize::try_from(index).expect("few")]);
        vec![until, server::whole(b"hello"), server::close()]
    });
    let mut plan = Plan {
        warm_up: Duration::ZERO,
        measure: Duration::from_secs(3600),
        ..plan(&server, closed(1))
    };
    witnesses(&mut plan, ROUNDS);
    let running = start(plan).expect("threads");
    let control = running.control();
    for (round, gate) in (1..=ROUNDS).zip(&gates) {
        let users = |profile: usize| running.counters()[profile].users;
        eventually("a request", || server.requests() == u64::from(round));
        // The user goes with this answer.
        control.set_users(0, 0);
        control.set_users(1, round);
        eventually("a wish", || users(1) == u64::from(round));
        gate.open();
        eventually("a pause", || {
            users(0) == 0 && server.closed() == u64::from(round)
        });
        if round < ROUNDS {
            control.set_users(0, 1);
        }
    }
    control.stop();
    let seen = running.finish().expect("a run").total();
    assert_eq!((seen.answered, seen.failed(), seen.reopened), (4, 0, 3));
    assert_eq!((server.requests(), server.connections()), (4, 4));
}

#[test]
fn a_request_that_may_have_been_read_is_never_sent_again() {
    // The second request of a connection is read, and the connection closed.
    let server = Server::new(|index| match index {
        0 => vec![server::whole(b"hello")],
        _ => vec![server::close()],
    });
    let plan = Plan {
        most: Some(2),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(1))
    };
    let seen = seen(plan);
    assert_eq!((seen.answered, seen.reopened), (1, 0));
    assert_eq!(seen.failures.get(&Failure::Closed), Some(&1));
    assert_eq!(server.requests(), 2, "each was sent once");
}

#[test]
fn an_answer_that_asks_to_close_is_the_last_of_its_connection() {
    let server = Server::new(|_| {
        vec![server::bytes(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        )]
    });
    let plan = Plan {
        most: Some(3),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&server, closed(1))
    };
    let seen = seen(plan);
    assert_eq!((seen.answered, seen.failed(), seen.reopened), (3, 0, 0));
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_refusal_before_the_body_was_taken_is_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut some = [0; 1024];
        let _read = stream.read(&mut some).expect("a head");
        let refusal =
            b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(refusal).expect("a client");
        // Closed with bytes unread, the connection is reset, and a client that is late never reads the answer.
        std::mem::forget(stream);
    });
    let body = Bytes::from(vec![b'x'; 64 << 20]);
    let mut plan = super::to(address, closed(1));
    (plan.most, plan.warm_up, plan.measure) = (Some(1), Duration::ZERO, ENOUGH);
    plan.source = Arc::new(Fixed::one(head(), body));
    let seen = seen(plan);
    assert_eq!(
        seen.failures.into_iter().collect::<Vec<_>>(),
        [(Failure::Status(413), 1)]
    );
}

#[test]
fn exchanges_go_to_targets_in_turn_and_each_keeps_its_connection() {
    let servers = [(); 2].map(|()| Server::new(|_| vec![server::whole(b"hello")]));
    let mut plan = Plan {
        most: Some(6),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        ..plan(&servers[0], closed(1))
    };
    plan.reach.targets = servers
        .iter()
        .map(|server| Target::from(server.address))
        .collect();
    assert_eq!(seen(plan).answered, 6);
    for server in &servers {
        assert_eq!((server.requests(), server.connections()), (3, 1));
    }
}

/// Takes one request of so many bytes of body, slowly and in small pieces, and answers a hundred bytes at a time.
fn slow(body: usize) -> (std::net::SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let taken = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&taken);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
        let whole = |all: &[u8]| {
            let end = all.windows(4).position(|four| four == b"\r\n\r\n");
            end.is_some_and(|end| all.len() == end + 4 + body)
        };
        while !whole(&all) {
            let read = stream.read(&mut piece).expect("bytes");
            assert!(read > 0, "closed in the middle");
            all.extend_from_slice(&piece[..read]);
            pace(Duration::from_millis(1));
        }
        *theirs.lock().expect("no panic") = all;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}",
            "y".repeat(1000)
        );
        for piece in answer.as_bytes().chunks(100) {
            stream.write_all(piece).expect("a client");
            pace(Duration::from_millis(2));
        }
    });
    (address, taken)
}

#[test]
fn a_body_in_parts_that_is_no_json_reaches_a_slow_reader_byte_for_byte() {
    // Broken UTF-8, broken JSON, line ends: nothing here is looked into.
    let parts = [
        Bytes::from(vec![0xff; 3_000_001]),
        Bytes::from_static(b"{\"no\r\n\r\n"),
        Bytes::new(),
        Bytes::from(vec![0; 2_000_003]),
    ];
    let whole: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
    let (address, taken) = slow(whole.len());
    let mut plan = super::to(address, closed(1));
    (plan.most, plan.warm_up) = (Some(1), Duration::ZERO);
    (plan.measure, plan.drain) = (ENOUGH, ENOUGH);
    let payload = Payload::new(&parts).expect("four parts");
    let source = Fixed::in_turn(vec![head()], payload, Arc::default());
    plan.source = Arc::new(source.expect("a head"));
    plan.traffic[0].expects = Some(Bytes::from("y".repeat(1000)));
    let seen = seen(plan);
    assert_eq!(
        (seen.answered, seen.failed(), seen.body_bytes),
        (1, 0, 1000)
    );
    let taken = taken.lock().expect("no panic");
    let (head, body) = taken.split_at(taken.len() - whole.len());
    assert!(body == whole, "the body differs");
    let length = format!("content-length: {}\r\n\r\n", whole.len());
    assert!(head.ends_with(length.as_bytes()));
}

#[test]
fn threads_share_users_and_a_number_of_requests_out() {
    let server = Server::new(|_| vec![server::whole(b"hello")]);
    let plan = Plan {
        most: Some(101),
        warm_up: Duration::ZERO,
        measure: ENOUGH,
        threads: 3,
        ..plan(&server, closed(4))
    };
    let running = start(plan).expect("threads");
    let outcome = running.finish().expect("a run");
    assert_eq!((outcome.total().answered, server.requests()), (101, 101));
    assert_eq!(server.connections(), 4);
}

#[test]
fn only_the_reading_of_usage_knows_json() {
    fn files(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut all = Vec::new();
    files(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut all,
    );
    all.retain(|path| {
        let text = std::fs::read_to_string(path).expect("a file");
        // What tests of a file read is nothing that a run does.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        text.contains("serde_json") || text.contains("simd_json")
    });
    let names: Vec<_> = all.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["usage.rs"]);
}
