//! A full disk: strict calls are refused, others continue, and all recover once there is space.

use std::time::Duration;

use super::{call, config, engine, rows, stop};
use crate::harness::{Gate, free_address, tollgate};

#[test]
fn a_strict_route_refuses_calls_that_it_cannot_record_and_other_routes_continue() {
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
    testing::eventually("strict calls run again", || {
        gate.call(&call("after", "m")).status == 200
    });
    stop(gate);
    let rows = rows(&ledger);
    let mut ids: Vec<&str> = rows.keys().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["after", "before", "loose"]);
}

#[test]
fn a_gate_with_only_strict_routes_is_not_ready_while_the_disk_is_full() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up, billing: strict }} ]\nledger: {{ path: {} }}\n",
        upstream.address,
        ledger.display()
    );
    let gate = Gate::start_to_be_limited(&config);
    assert_eq!(gate.admin("/readyz").status, 200);
    gate.limit_files("4096");
    assert_eq!(gate.call(&call("refused", "m")).status, 503);
    let ready = gate.admin("/readyz");
    assert_eq!(ready.status, 503, "{ready:?}");
    gate.limit_files("unlimited");
    testing::eventually("it is ready again", || {
        gate.call(&call("after", "m"));
        gate.admin("/readyz").status == 200
    });
    stop(gate);
}

#[test]
fn a_second_gate_on_the_same_ledger_does_not_start_and_names_the_owner() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(upstream.address, &ledger, "grouped");
    let gate = Gate::start(&config, &[]);
    let head = format!(
        "listen: {{ data: \"{}\", admin: \"{}\" }}\n",
        free_address(),
        free_address()
    );
    std::fs::write(dir.path().join("second.yaml"), head + &config).expect("a file");
    let ended = tollgate(dir.path(), &["run", "-c", "second.yaml"], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let who = gate.id().to_string();
    assert!(ended.err.contains(&who), "{who}: {ended:?}");
    assert_eq!(gate.call(&call("first", "m")).status, 200);
    stop(gate);
}
