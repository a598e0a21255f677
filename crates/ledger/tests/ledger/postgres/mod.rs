//! Rows reach a real Postgres exactly once, despite outages.
//!
//! The server is Debian's, started by the test in a directory of its own. Where it is not installed
//! the test fails and says what to do; `TOLLGATE_NO_POSTGRES=1` skips the test.

mod server;

use std::time::Duration;

use ledger::{
    Ledger, Options, Progress, Reader, RecordId, Settlement, Shipper, State, under_new_name,
};
use policy::record::Outcome;
use postgres::{Client, NoTls};
use testing::{PATIENCE, eventually, nothing_happens_for};

use self::server::Server;
use crate::rows::at;

fn settlement(n: u64) -> Settlement {
    let id = RecordId(u128::from(n).to_be_bytes());
    let open = ledger::Admission {
        id,
        started_unix_ms: n,
        request_id: format!("request-{n}").into(),
        named: ledger::Named {
            tool: None,
            workload: Some("ide\0".into()),
            ..ledger::Named::default()
        },
        model_asked: Some("gpt-oss-120b".into()),
        model_sent: None,
        reserved: n,
        at_most: None,
    };
    let progress = Progress {
        id,
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(open, progress, n);
    (row.state, row.record.outcome) = (State::Settled, Outcome::Completed);
    row
}

fn settle(ledger: &Ledger, ids: std::ops::RangeInclusive<u64>) {
    let intake = ledger.intake();
    ids.for_each(|n| intake.settle(settlement(n)));
}

/// The number of rows and the sum of their tokens.
fn rows_and_tokens(address: &str) -> (i64, i64) {
    let mut client = Client::connect(address, NoTls).expect("connects");
    let sql = "SELECT count(*), sum(reserved_tokens)::BIGINT FROM tollgate_usage";
    let row = client.query_one(sql, &[]).expect("answers");
    (row.get(0), row.get::<_, Option<i64>>(1).unwrap_or(0))
}

fn opened(dir: &std::path::Path, name: &str) -> Ledger {
    Ledger::open(at(dir.join(name))).expect("opens").0
}

#[test]
fn each_row_is_shipped_once_despite_a_server_restart() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(dir.path(), "one.db");
    let shipper = Shipper::start(&ledger, &server.address()).expect("starts");
    settle(&ledger, 1..=2500);
    eventually("2500 rows", || shipper.shipping().up_to == 2500);
    assert_eq!(rows_and_tokens(&server.address()), (2500, 2500 * 2501 / 2));

    server.stop();
    settle(&ledger, 2501..=4000);
    eventually("the server is missed", || shipper.shipping().failures > 0);
    assert!(!shipper.shipping().last_fault.is_empty());
    assert!(
        ledger.intake().is_available(),
        "a server that is away costs nothing"
    );
    server.start_again();
    eventually("4000 rows", || shipper.shipping().up_to == 4000);
    assert_eq!(shipper.shipping().last_fault, "");
    shipper.stop();

    // A new process continues after the last row that the server has, and the same id from another ledger is one row.
    let shipper = Shipper::start(&ledger, &server.address()).expect("starts");
    let other = opened(dir.path(), "two.db");
    let second = Shipper::start(&other, &server.address()).expect("starts");
    settle(&other, 3990..=4010);
    eventually("the other's rows", || second.shipping().up_to == 21);
    eventually("all rows again", || shipper.shipping().up_to == 4000);
    assert_eq!(
        (shipper.shipping().shipped, second.shipping().shipped),
        (0, 10)
    );
    assert_eq!(rows_and_tokens(&server.address()), (4010, 4010 * 4011 / 2));
}

#[test]
fn a_rolled_back_ledger_ships_nothing_until_it_is_renamed() {
    let Some(server) = Server::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("one.db");
    let copy = dir.path().join("copy.db");
    let ledger = opened(dir.path(), "one.db");
    let shipper = Shipper::start(&ledger, &server.secure_address()).expect("starts");
    settle(&ledger, 1..=60);
    eventually("60 rows", || shipper.shipping().up_to == 60);
    Reader::open(&path)
        .expect("opens")
        .backup(&copy)
        .expect("copies");
    settle(&ledger, 61..=100);
    eventually("100 rows", || shipper.shipping().up_to == 100);
    shipper.stop();
    assert!(ledger.close(PATIENCE));
    drop(ledger);

    // Restored on a machine without its head file; new rows reuse sequence numbers.
    std::fs::rename(&copy, &path).expect("puts it back");
    std::fs::remove_file(dir.path().join("one.db.head")).expect("removes");
    let keep = Options {
        keep: Some(Duration::from_secs(1)),
        clocks_agree_for: Duration::ZERO,
        ..at(path.clone())
    };
    let (ledger, _) = Ledger::open(keep).expect("opens");
    let shipper = Shipper::start(&ledger, &server.secure_address()).expect("starts");
    settle(&ledger, 1001..=1060);
    eventually("it is told", || shipper.shipping().forked);
    let fault = shipper.shipping().last_fault;
    assert!(
        fault.contains("another history") && fault.contains("100:"),
        "{fault}"
    );
    // They are expired but not pruned, because they are not shipped.
    nothing_happens_for(Duration::from_secs(1));
    let stats = ledger.stats();
    assert_eq!(
        (stats.head, stats.pruned, shipper.shipping().shipped),
        (120, 0, 0)
    );
    assert_eq!(rows_and_tokens(&server.address()).0, 100);
    shipper.stop();
    assert!(ledger.close(PATIENCE));
    drop(ledger);

    let renamed = under_new_name(&path).expect("is whole");
    assert_eq!((renamed.settled, renamed.rows_lost), (120, 0));
    let ledger = opened(dir.path(), "one.db");
    let shipper = Shipper::start(&ledger, &server.secure_address()).expect("starts");
    eventually("every row is there", || shipper.shipping().up_to == 120);
    assert!(!shipper.shipping().forked);
    assert_eq!(shipper.shipping().shipped, 60, "the others were there");
    let sum = 100 * 101 / 2 + (1001..=1060).sum::<i64>();
    assert_eq!(rows_and_tokens(&server.address()), (160, sum));
}

#[test]
fn sslmode_is_enforced_or_the_connection_fails() {
    let Some(server) = Server::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(dir.path(), "one.db");
    settle(&ledger, 1..=1);
    let other =
        rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let untrusted = dir.path().join("other.pem");
    std::fs::write(&untrusted, other.cert.pem()).expect("writes");
    let (plain, secure) = (server.address(), server.secure_address());
    let ca = secure
        .split_once("sslrootcert=")
        .expect("names it")
        .1
        .to_owned();
    let by_name = plain.replace("127.0.0.1", "localhost");
    let with =
        |address: &str, mode: &str, ca: &str| format!("{address}?sslmode={mode}&sslrootcert={ca}");
    let untrusted = untrusted.display().to_string();
    let cases = [
        (format!("{plain}?sslmode=disable"), Ok(false)),
        (plain.clone(), Ok(true)),
        (format!("{plain}?sslmode=prefer"), Ok(true)),
        (format!("{plain}?sslmode=require"), Ok(true)),
        (with(&plain, "require", &untrusted), Err("certificate")),
        (with(&plain, "verify-ca", &ca), Ok(true)),
        (with(&by_name, "verify-ca", &ca), Ok(true)),
        (with(&plain, "verify-ca", &untrusted), Err("certificate")),
        (secure.clone(), Ok(true)),
        (with(&by_name, "verify-full", &ca), Err("certificate")),
        (with(&plain, "verify-full", &untrusted), Err("certificate")),
        (format!("{plain}?sslmode=verify-full"), Err("certificate")),
    ];
    for (address, expected) in cases {
        let shipper = Shipper::start(&ledger, &address).expect("starts");
        eventually("it connects or does not", || {
            let shipping = shipper.shipping();
            // Where it has to connect, it tries until it does.
            shipping.up_to == 1 || expected.is_err() && shipping.failures > 0
        });
        let shipping = shipper.shipping();
        match expected {
            Ok(encrypted) => {
                let now = (shipping.up_to, shipping.encrypted);
                assert_eq!(now, (1, Some(encrypted)), "{address}: {shipping:?}");
            }
            Err(word) => {
                assert_eq!((shipping.up_to, shipping.encrypted), (0, None), "{address}");
                let fault = &shipping.last_fault;
                assert!(fault.contains(word), "{address}: {fault}");
            }
        }
        shipper.stop();
    }
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let said = std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("it comes");
        let mut asked = [0; 8];
        tcp.read_exact(&mut asked).expect("asks for TLS");
        tcp.write_all(b"N").expect("says no");
        // Everything that it sent now would be in clear text.
        let mut rest = Vec::new();
        drop(tcp.set_read_timeout(Some(PATIENCE)));
        drop(tcp.read_to_end(&mut rest));
        (asked, rest)
    });
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(dir.path(), "one.db");
    let address = format!("postgres://gate:secret@127.0.0.1:{port}/usage?sslmode=require");
    let shipper = Shipper::start(&ledger, &address).expect("starts");
    eventually("it is refused", || shipper.shipping().failures > 0);
    let fault = shipper.shipping().last_fault;
    assert!(fault.contains("does not support TLS"), "{fault}");
    let (asked, rest) = said.join().expect("ends");
    assert_eq!((&asked[4..], &rest[..]), (&[4, 210, 22, 47][..], &[][..]));
}

/// A fleet's table that an older build made, and a row of it.
const OLDER: &str = "CREATE TABLE tollgate_usage (ledger TEXT NOT NULL, seq BIGINT NOT NULL, id BYTEA, hash BYTEA NOT NULL, \
     PRIMARY KEY (id), UNIQUE (ledger, seq)); \
     INSERT INTO tollgate_usage VALUES ('another', 1, '\\x01', '\\x02')";

#[test]
fn who_spent_it_reaches_a_table_that_an_older_build_made() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut client = Client::connect(&server.address(), NoTls).expect("connects");
    let version_1: Vec<String> = ledger::COLUMNS[1..44]
        .iter()
        .map(|(name, kind)| {
            let kind = match kind {
                ledger::Kind::Number => "BIGINT",
                ledger::Kind::Text => "TEXT",
                ledger::Kind::Bytes => "BYTEA",
            };
            format!("ADD COLUMN {name} {kind}")
        })
        .collect();
    client.batch_execute(OLDER).expect("a table");
    let sql = format!("ALTER TABLE tollgate_usage {}", version_1.join(", "));
    client.batch_execute(&sql).expect("its columns");

    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(dir.path(), "ledger.db");
    let mut row = settlement(1);
    row.named.who = policy::attribution::Attribution {
        key: Some("k1".into()),
        user: Some("ada\0".into()),
        tags: Some(r#"{"team":"search"}"#.into()),
    };
    ledger.intake().settle(row);
    ledger.intake().settle(settlement(2));
    let shipper = Shipper::start(&ledger, &server.address()).expect("starts");
    eventually("two rows", || shipper.shipping().up_to == 2);
    let sql = "SELECT key_id, user_id, tags::jsonb ->> 'team' FROM tollgate_usage ORDER BY ledger = 'another' DESC, seq";
    let rows = client.query(sql, &[]).expect("reads");
    let text = |row: &postgres::Row, at: usize| row.get::<_, Option<String>>(at);
    let said: Vec<_> = rows
        .iter()
        .map(|row| [0, 1, 2].map(|at| text(row, at)))
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(said.len(), 3);
    assert_eq!(said[0], [None, None, None]);
    assert_eq!(said[1][0], some("k1"));
    assert!(
        said[1][1]
            .as_deref()
            .is_some_and(|user| user.starts_with("ada"))
    );
    assert_eq!(said[1][2], some("search"));
    assert_eq!(said[2], [None, None, None]);
}
