//! A gate that is killed under load repeatedly on the same ledger.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{answer, call, config, rows, stop, usage};
use crate::harness::answer::{chunk, delta, events_head};
use crate::harness::{Connection, Gate, Seen, Step, Upstream, post};

const KILLS: usize = 4;
const CLIENTS: usize = 4;
/// How the id of a call ends that gets no answer.
const OPEN: &str = "-open";

#[test]
fn a_strict_route_killed_under_load_neither_loses_nor_duplicates_a_row() {
    // A call of this id is open at every kill.
    let upstream = Upstream::start(|_, seen| {
        let is_open = seen.header("x-request-id")[0].ends_with(OPEN);
        let after = if is_open {
            Duration::from_hours(1)
        } else {
            Duration::from_millis(5)
        };
        vec![Step::Sleep(after), Step::Send(answer(5, 4))]
    });
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
            let open = format!("{round}{OPEN}");
            let id = open.clone();
            scope.spawn(move || assert_eq!(status_of(data, &call(&id, "m")), None));
            testing::eventually("there is load", || {
                let runs = |seen: &Seen| seen.header("x-request-id") == [open.as_str()];
                answered.lock().expect("no panic").len() >= before + 50
                    && upstream.seen().iter().any(runs)
            });
            gate.signal(libc::SIGKILL);
            gate.wait(testing::PATIENCE);
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
    for round in 0..KILLS {
        let row = &rows[&format!("{round}{OPEN}")];
        assert_eq!(row["state"], "indeterminate", "{row}");
    }
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
    let noted = testing::found("a checkpoint", || {
        assert!(connection.more());
        Some(progress(&ledger)).filter(|tokens| *tokens > 0)
    });
    let events = |connection: &Connection| {
        let text = String::from_utf8_lossy(connection.unread());
        text.matches("data: ").count() as u64
    };
    while events(&connection) < noted {
        assert!(connection.more());
    }
    gate.signal(libc::SIGKILL);
    gate.wait(testing::PATIENCE);
    while connection.more() {}
    let got = events(&connection);
    stop(Gate::start(&config, &[]));
    let row = &rows(&ledger)["open"];
    assert_eq!(row["state"], "indeterminate", "{row}");
    let least = row["at_least_tokens"].as_u64().expect("a bound");
    assert!((noted..=got).contains(&least), "{got} events came: {row}");
    assert!(row["at_most_tokens"].as_u64() > Some(1000), "{row}");
}

/// The tokens that the ledger has of exchanges that are under way.
fn progress(ledger: &Path) -> u64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let file = rusqlite::Connection::open_with_flags(ledger, flags).expect("a ledger");
    let sql = "SELECT coalesce(sum(progress_tokens), 0) FROM open";
    let sum: i64 = file.query_row(sql, [], |row| row.get(0)).expect("a sum");
    u64::try_from(sum).expect("a count")
}

/// The status of one call on a connection of its own; `None` when its answer is incomplete.
fn status_of(gate: std::net::SocketAddr, request: &[u8]) -> Option<u16> {
    use std::io::Write;
    let mut tcp = std::net::TcpStream::connect(gate).ok()?;
    tcp.set_read_timeout(Some(testing::PATIENCE)).ok()?;
    tcp.write_all(request).ok()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // The answer's last bytes are the end of its usage.
    while !answer.ends_with(b"}}") {
        match testing::read(&mut tcp, &mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1)?.parse().ok()
}
