//! `rm usage.db*` under a running gate: treated as a full disk, and no new ledger is created.

use std::time::Duration;

use super::{call, config, engine, refused, rows, stop};
use crate::harness::Gate;

/// Waits until the gate says that its ledger is away. No call is made meanwhile.
fn noticed(gate: &Gate) {
    testing::eventually("it is noticed", || {
        gate.metric("tollgate_ledger_available", &[]) == 0.0
    });
}

#[test]
#[ignore = "timing"]
fn timing_removal_of_the_ledger_is_detected_within_a_second() {
    for suffix in ["", ".lock"] {
        let upstream = engine(3, 2, Duration::ZERO);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let gate = Gate::start(&config(upstream.address, &ledger, "strict"), &[]);
        assert_eq!(gate.call(&call("before", "m")).status, 200);
        let removed = testing::Began::now();
        for file in std::fs::read_dir(dir.path()).expect("lists").flatten() {
            if file.file_name().to_string_lossy().ends_with(suffix) {
                std::fs::remove_file(file.path()).expect("removes");
            }
        }
        noticed(&gate);
        println!("noticed after {}", removed.shown());
        assert!(!removed.is_over(Duration::from_secs(1)));
    }
}

#[test]
fn removal_of_the_ledger_under_a_strict_route_is_detected_before_the_next_call() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(upstream.address, &ledger, "strict");
    let mut gate = Gate::start(&config, &[]);
    for n in 0..10 {
        assert_eq!(gate.call(&call(&format!("c{n}"), "m")).status, 200);
    }
    testing::eventually("all is settled", || {
        gate.metric("tollgate_ledger_rows_total", &[]) == 10.0
    });
    for file in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        std::fs::remove_file(file.path()).expect("removes");
    }
    noticed(&gate);
    let seen = upstream.seen().len();
    let away = gate.call(&call("away", "m"));
    assert_eq!(away.status, 503, "{away:?}");
    assert_eq!(away.json()["error"]["code"], "ledger_unavailable");
    assert_eq!(upstream.seen().len(), seen, "nothing ran");
    assert_eq!(gate.call(&call("loose", "loose")).status, 200);
    testing::eventually("the log says so", || {
        gate.log().contains("was removed while the gate writes it")
    });
    let page = gate.admin("/ledger").json();
    assert_eq!(page["available"], false, "{page}");
    gate.signal(libc::SIGTERM);
    assert!(gate.wait(testing::PATIENCE).code().is_some());

    // The durable rows of strict calls are not lost, and no new ledger is created.
    let says = refused(&config);
    assert!(says.contains("is gone: it held rows up to 10"), "{says}");
    let saved = std::fs::read_dir(dir.path()).expect("lists").flatten();
    let mut saved = saved
        .map(|file| file.path())
        .filter(|path| path.display().to_string().contains(".rescued-"));
    let saved = saved.next().expect("what it held is saved");
    assert!(says.contains(&saved.display().to_string()), "{says}");
    std::fs::rename(saved, &ledger).expect("is put back");
    stop(Gate::start(&config, &[]));
    assert_eq!(rows(&ledger).len(), 10);
}

#[test]
fn a_removed_lock_file_stops_strict_calls_before_another_gate_can_write() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(upstream.address, &ledger, "strict"), &[]);
    assert_eq!(gate.call(&call("before", "m")).status, 200);
    std::fs::remove_file(dir.path().join("usage.db.lock")).expect("removes");
    noticed(&gate);
    let seen = upstream.seen().len();
    assert_eq!(gate.call(&call("after", "m")).status, 503);
    assert_eq!(upstream.seen().len(), seen, "nothing ran");
}
