//! Spending survives restarts, kills and reloads.

use std::time::Duration;

use super::{call, config, engine, left, status, stop};
use crate::harness::{Connection, Gate};

const DAY: &str = "company: { tokens: 1000, per: month }";

#[test]
fn budget_spending_survives_a_restart() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&upstream, &ledger, DAY);
    let gate = Gate::start(&config, &[]);
    assert_eq!(status(&gate, "a", 10, "300,40"), 200);
    assert_eq!(status(&gate, "b", 10, "200,60"), 200);
    stop(gate);
    let gate = Gate::start(&config, &[]);
    assert_eq!(left(&gate, "company"), 400.0);
    assert_eq!(status(&gate, "a", 450, "1,1"), 402);
    assert_eq!(status(&gate, "a", 10, "1,1"), 200);
    stop(gate);
}

#[test]
fn a_call_open_at_a_kill_is_charged_its_reservation() {
    let upstream = engine(Duration::from_hours(1));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&upstream, &ledger, DAY);
    let mut gate = Gate::start(&config, &[]);
    let mut client = Connection::open(gate.data);
    client.send(&call("a", 100, "1,1"));
    testing::eventually("it is on disk", || {
        gate.metric("tollgate_ledger_admissions_total", &[]) == 1.0
    });
    let before = left(&gate, "company");
    assert!(before < 900.0, "{before}");
    gate.signal(libc::SIGKILL);
    gate.wait(testing::PATIENCE);
    let gate = Gate::start(&config, &[]);
    assert_eq!(left(&gate, "company"), before);
    assert!(
        gate.log().contains("whose end or cost is not on record"),
        "{}",
        gate.log()
    );
    stop(gate);
}

#[test]
fn a_reload_keeps_spending_and_a_new_budget_starts_from_the_ledger() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&upstream, &ledger, DAY), &[]);
    assert_eq!(status(&gate, "a", 10, "300,40"), 200);
    testing::eventually("it is settled", || left(&gate, "company") == 660.0);
    let next = "company: { tokens: 2000, per: month }, a: { workload: a, tokens: 400, per: day }, \
                b: { workload: b, tokens: 400, per: day }";
    gate.reconfigure(&config(&upstream, &ledger, next));
    testing::eventually("it is taken", || left(&gate, "company") == 1660.0);
    assert_eq!((left(&gate, "a"), left(&gate, "b")), (60.0, 400.0));
    assert_eq!(status(&gate, "a", 100, "1,1"), 402);
    assert_eq!(status(&gate, "b", 100, "1,1"), 200);
    stop(gate);
}
