//! Rows reach a real Postgres, each once, also when it goes away in between.
//!
//! The server is Debian's, started by the test in a folder of its own. Where it is not installed
//! the test fails and says what to do; `TOLLGATE_NO_POSTGRES=1` says that it is not wanted.

mod server;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;

use std::time::{Duration, Instant};

use ledger::{Ledger, Options, Progress, RecordId, Settlement, Shipper, State};
use policy::record::Outcome;
use postgres::{Client, NoTls};

use server::Server;

fn settlement(n: u64) -> Settlement {
    let id = RecordId(u128::from(n).to_be_bytes());
    let open = ledger::Admission {
        id,
        started_unix_ms: n,
        request_id: format!("request-{n}").into(),
        trace_id: None,
        workload: Some("ide\0".into()),
        budget_group: None,
        route: None,
        backend: None,
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
    (row.state, row.outcome) = (State::Settled, Outcome::Completed);
    row
}

fn settle(ledger: &Ledger, ids: std::ops::RangeInclusive<u64>) {
    let intake = ledger.intake();
    ids.for_each(|n| intake.settle(settlement(n)));
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("not within thirty seconds: {what}");
}

/// Rows, and the sum of what they held.
fn there(address: &str) -> (i64, i64) {
    let mut client = Client::connect(address, NoTls).expect("connects");
    let sql = "SELECT count(*), sum(reserved_tokens)::BIGINT FROM tollgate_usage";
    let row = client.query_one(sql, &[]).expect("answers");
    (row.get(0), row.get::<_, Option<i64>>(1).unwrap_or(0))
}

fn opened(dir: &std::path::Path, name: &str) -> Ledger {
    Ledger::open(Options::at(dir.join(name))).expect("opens").0
}

#[test]
fn each_row_arrives_once_through_a_server_that_goes_and_comes_back() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(dir.path(), "one.db");
    let shipper = Shipper::start(&ledger, &server.address()).expect("starts");
    settle(&ledger, 1..=2500);
    eventually("2500 rows", || shipper.shipping().up_to == 2500);
    assert_eq!(there(&server.address()), (2500, 2500 * 2501 / 2));

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

    // A new process begins where the server is, and the same id from another ledger is one row.
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
    assert_eq!(there(&server.address()), (4010, 4010 * 4011 / 2));
}
