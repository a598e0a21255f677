//! A gate that is killed under load repeatedly on the same ledger.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{call, config, engine, rows, stop, usage};
use crate::harness::answer::{chunk, delta, events_head};
use crate::harness::{Connection, Gate, Step, Upstream, eventually, post};

const KILLS: usize = 4;
const CLIENTS: usize = 4;

#[test]
fn a_strict_route_killed_under_load_neither_loses_nor_duplicates_a_row() {
    let upstream = engine(5, 4, Duration::from_millis(5));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(upstream.address, &ledger, "strict");
    let answered = Mutex::new(Vec::new());
    for round in 0..KILLS {
        let mut gate = Gate::start(&config, &[]);
        let data = gate.data;
        let ended = AtomicBool::new(false);
        let before = answered.lock().expect("no panic").len();
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (answered, ended) = (&answered, &ended);
                scope.spawn(move || {
                    for n in 0.. {
                        let id = format!("{round}-{client}-{n}");
                        let status = status_of(data, &call(&id, "m"));
                        if status == Some(200) {
                            answered.lock().expect("no panic").push(id);
                        } else if ended.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                });
            }
            eventually("there is load", Duration::from_secs(20), || {
                answered.lock().expect("no panic").len() >= before + 50
            });
            gate.signal(libc::SIGKILL);
            gate.wait(Duration::from_secs(10));
            ended.store(true, Ordering::SeqCst);
        });
    }
    stop(Gate::start(&config, &[]));

    let rows = rows(&ledger);
    let answered = answered.into_inner().expect("no panic");
    let mut states: HashMap<&str, usize> = HashMap::new();
    for row in rows.values() {
        let state = row["state"].as_str().expect("a state");
        *states.entry(state).or_default() += 1;
        if state == "settled" && row["outcome"] == "completed" {
            assert_eq!(
                (&row["prompt_tokens"], &row["completion_tokens"]),
                (&5.into(), &4.into())
            );
        }
    }
    let lost: Vec<&String> = answered
        .iter()
        .filter(|id| !rows.contains_key(*id))
        .collect();
    assert!(lost.is_empty(), "answered and no row: {lost:?}");
    for seen in upstream.seen() {
        let id = seen.header("x-request-id").remove(0);
        assert!(
            rows.contains_key(&id),
            "{id} reached the engine and has no row"
        );
    }
    println!(
        "{} answered, {} rows: {states:?}",
        answered.len(),
        rows.len()
    );
    assert!(
        states.contains_key("indeterminate"),
        "no kill met an open exchange: {states:?}"
    );
    usage(&ledger, &["verify"]);
}

#[test]
fn a_stream_open_at_a_kill_keeps_its_last_checkpoint() {
    let pause = Duration::from_millis(100);
    let upstream = Upstream::start(move |_, _| {
        let event = || [Step::Send(chunk(delta("a").as_bytes())), Step::Sleep(pause)];
        let head = vec![Step::Send(events_head())];
        head.into_iter()
            .chain((0..300).flat_map(|_| event()))
            .collect()
    });
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(upstream.address, &ledger, "strict");
    let mut gate = Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    let headers = ["x-workload-app: w", "x-request-id: open"];
    let body = r#"{"model":"m","stream":true,"max_tokens":1000,"messages":[]}"#;
    connection.send(&post("/v1/chat/completions", &headers, body));
    // A checkpoint is written every five seconds.
    let until = std::time::Instant::now() + Duration::from_millis(7500);
    while std::time::Instant::now() < until {
        assert!(connection.more());
    }
    let got = String::from_utf8_lossy(connection.unread())
        .matches("data: ")
        .count() as u64;
    gate.signal(libc::SIGKILL);
    gate.wait(Duration::from_secs(10));
    stop(Gate::start(&config, &[]));
    let row = &rows(&ledger)["open"];
    assert_eq!(row["state"], "indeterminate", "{row}");
    let least = row["at_least_tokens"].as_u64().expect("a bound");
    assert!((10..=got).contains(&least), "{got} events came: {row}");
    assert!(row["at_most_tokens"].as_u64() > Some(1000), "{row}");
}

/// The status of one call on a connection of its own; `None` when its answer is incomplete.
fn status_of(gate: std::net::SocketAddr, request: &[u8]) -> Option<u16> {
    use std::io::{Read, Write};
    let mut tcp = std::net::TcpStream::connect(gate).ok()?;
    tcp.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    tcp.write_all(request).ok()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // The answer's last bytes are the end of its usage.
    while !answer.ends_with(b"}}") {
        match tcp.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1)?.parse().ok()
}
