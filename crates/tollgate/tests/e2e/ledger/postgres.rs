//! The copy in Postgres, through outages and kills of the gate and the server.
//!
//! Not here: batches, and two ledgers of one server (tests of `ledger`).

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use ::postgres::{Client, NoTls};

use self::server::Server;
use super::{call, config, engine, rows, stop};
use crate::harness::{Connection, Gate, Upstream};

#[path = "../../../../ledger/tests/ledger/postgres/server.rs"]
mod server;

/// A row as both have it: request id, state, outcome, tokens in and out, cost.
type Row = (
    String,
    String,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

struct Fixture {
    upstream: Upstream,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            upstream: engine(5, 4, Duration::ZERO),
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    fn ledger(&self) -> std::path::PathBuf {
        self.dir.path().join("usage.db")
    }

    fn gate(&self, server: &str) -> Gate {
        let ledger = self.ledger();
        let path = format!("path: {}", ledger.display());
        let config = config(self.upstream.address, &ledger, "strict")
            .replace(&path, &format!("{path}, postgres: {{ env: PG }}"))
            + "prices: { m: { input: 0.5, output: 2 } }\n";
        Gate::start_env(&config, &[], &[("PG", server)])
    }
}

/// Strict calls, each of which has to succeed.
fn calls(gate: &Gate, ids: Range<usize>) {
    let mut connection = Connection::open(gate.data);
    for n in ids {
        let answer = connection.call(&call(&format!("c{n}"), "m"));
        assert_eq!(answer.status, 200, "{n}: {}", answer.text());
    }
}

fn metric(gate: &Gate, name: &str) -> f64 {
    gate.metric(&format!("tollgate_ledger_{name}"), &[])
}

fn in_postgres(server: &str) -> Vec<Row> {
    let mut client = Client::connect(server, NoTls).expect("connects");
    let sql = "SELECT request_id, state, outcome, prompt_tokens, completion_tokens, cost_pico FROM tollgate_usage";
    let rows = client.query(sql, &[]).expect("answers");
    let row = |row: ::postgres::Row| {
        (
            row.get(0),
            row.get(1),
            row.get(2),
            row.get(3),
            row.get(4),
            row.get(5),
        )
    };
    rows.into_iter().map(row).collect()
}

fn in_ledger(ledger: &Path) -> BTreeSet<Row> {
    let row = |(id, row): (String, serde_json::Value)| {
        let text = |column: &str| row[column].as_str().map(str::to_owned);
        (
            id,
            text("state").expect("a state"),
            text("outcome"),
            row["prompt_tokens"].as_i64(),
            row["completion_tokens"].as_i64(),
            row["cost_pico"].as_i64(),
        )
    };
    rows(ledger).into_iter().map(row).collect()
}

/// Asserts that both have the same rows, without duplicates.
fn assert_same(server: &str, ledger: &Path, least: usize) {
    let (theirs, ours) = (in_postgres(server), in_ledger(ledger));
    assert!(ours.len() >= least, "{} rows", ours.len());
    assert_eq!(theirs.len(), ours.len());
    assert_eq!(theirs.into_iter().collect::<BTreeSet<_>>(), ours);
}

#[test]
fn every_row_reaches_postgres_once_despite_server_outages_and_kills() {
    let Some(mut postgres) = Server::start() else {
        return;
    };
    let (fixture, server) = (Fixture::new(), postgres.address());
    // The gate connects over TLS and verifies the server; the test itself need not.
    let secure = postgres.secure_address();
    let gate = fixture.gate(&secure);
    calls(&gate, 0..30);
    testing::eventually("thirty rows", || {
        metric(&gate, "shipped_total") == 30.0 && metric(&gate, "unshipped") == 0.0
    });
    assert!(in_postgres(&server).iter().all(|row| {
        (&*row.1, row.3, row.4, row.5) == ("settled", Some(5), Some(4), Some(10_500_000))
    }));

    postgres.stop();
    calls(&gate, 30..70);
    testing::eventually("the server is missed", || {
        metric(&gate, "ship_failures_total") > 0.0 && metric(&gate, "unshipped") == 40.0
    });
    // An outage has no effect on calls: strict calls succeed, and the gate is ready.
    calls(&gate, 70..80);
    assert_eq!(gate.admin("/readyz").status, 200);
    assert_eq!(metric(&gate, "available"), 1.0);
    assert_eq!(metric(&gate, "lost_total"), 0.0);
    postgres.start_again();
    testing::eventually("eighty rows", || {
        metric(&gate, "shipped_total") == 80.0 && metric(&gate, "unshipped") == 0.0
    });

    // A gate that is stopped ships its remaining rows.
    calls(&gate, 80..100);
    stop(gate);
    assert_same(&server, &fixture.ledger(), 100);

    // A gate that is killed ships its rows after its next start, open exchanges included.
    let mut gate = fixture.gate(&secure);
    let data = gate.data;
    std::thread::scope(|scope| {
        let load = scope.spawn(move || load(data));
        testing::eventually("there is load", || metric(&gate, "rows_total") >= 50.0);
        gate.signal(libc::SIGKILL);
        gate.wait(testing::PATIENCE);
        load.join().expect("the load ends with the gate");
    });
    stop(fixture.gate(&secure));
    assert_same(&server, &fixture.ledger(), 150);
}

/// Calls one after the other until the gate is gone.
fn load(gate: SocketAddr) {
    use std::io::{Read, Write};
    let Ok(mut tcp) = std::net::TcpStream::connect(gate) else {
        return;
    };
    let mut answer = [0; 4096];
    for n in 0.. {
        let request = call(&format!("load{n}"), "m");
        if tcp.write_all(&request).is_err() || !matches!(tcp.read(&mut answer), Ok(1..)) {
            return;
        }
    }
}

#[test]
fn an_unresponsive_postgres_delays_neither_calls_nor_shutdown() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let fixture = Fixture::new();
    let gate = fixture.gate(&format!("postgres://gate@127.0.0.1:{port}/usage"));
    calls(&gate, 0..10);
    let (held, _) = silent.accept().expect("the shipper comes");
    testing::eventually("all wait", || metric(&gate, "unshipped") == 10.0);
    stop(gate);
    drop(held);
    assert_eq!(rows(&fixture.ledger()).len(), 10);
}
