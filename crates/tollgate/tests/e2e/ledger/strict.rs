//! A disk that takes nothing: strict calls are refused, others run, and all is well when it is back.

use std::time::Duration;

use super::{call, config, engine, rows, stop};
use crate::harness::{Gate, eventually};

#[test]
fn a_strict_route_runs_nothing_without_a_row_and_the_others_run_on() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start_to_be_limited(&config(upstream.address, &ledger, "strict"));
    assert_eq!(gate.call(&call("before", "m")).status, 200);
    gate.limit_files("16384");
    let refused = gate.call(&call("refused", "m"));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "ledger_unavailable");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(gate.call(&call("loose", "loose")).status, 200);
    assert_eq!(gate.metric("tollgate_ledger_available", &[]), 0.0);
    let ready = gate.admin("/readyz");
    assert_eq!(
        (ready.status, &ready.json()["ledger"]),
        (200, &"unavailable".into())
    );
    let seen = upstream.seen();
    let ran = |id: &str| seen.iter().any(|s| s.header("x-request-id") == [id]);
    assert!(!ran("refused") && ran("loose"), "{seen:?}");

    gate.limit_files("unlimited");
    eventually("strict calls run again", Duration::from_secs(10), || {
        gate.call(&call("after", "m")).status == 200
    });
    stop(gate);
    let rows = rows(&ledger);
    let mut ids: Vec<&str> = rows.keys().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["after", "before", "loose"]);
}
