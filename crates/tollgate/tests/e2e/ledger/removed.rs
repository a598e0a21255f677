//! `rm usage.db*` under a running gate: treated as a full disk, and no new ledger is created.

use std::time::{Duration, Instant};

use super::{call, config, engine, refused, rows, stop};
use crate::harness::{Gate, eventually};

/// How long it takes until the gate says that its ledger is away.
fn noticed(gate: &Gate) -> Duration {
    let removed = Instant::now();
    eventually("it is noticed", Duration::from_secs(10), || {
        gate.metric("tollgate_ledger_available", &[]) == 0.0
    });
    let after = removed.elapsed();
    println!("noticed after {after:?}");
    after
}

/// Removes files of the ledger of a strict route, all or those whose name ends so, and says how long it took.
fn removed(suffix: &str) -> Duration {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(upstream.address, &ledger, "strict"), &[]);
    assert_eq!(gate.call(&call("before", "m")).status, 200);
    for file in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        if file.file_name().to_string_lossy().ends_with(suffix) {
            std::fs::remove_file(file.path()).expect("removes");
        }
    }
    noticed(&gate)
}

/// Asserts that it is noticed within a second, in one of three tries: the machine may stand still in the others, for less
/// than another second.
fn assert_within_a_second(first: Duration, suffix: &str) {
    let mut all = std::iter::once(first).chain((0..2).map(|_| removed(suffix)));
    let is_in_time = |after: Duration| {
        assert!(after < Duration::from_secs(2), "{after:?}");
        after < Duration::from_secs(1)
    };
    assert!(all.any(is_in_time));
}

#[test]
fn removal_of_the_ledger_under_a_strict_route_is_detected_within_a_second() {
    let upstream = engine(3, 2, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(upstream.address, &ledger, "strict");
    let mut gate = Gate::start(&config, &[]);
    for n in 0..10 {
        assert_eq!(gate.call(&call(&format!("c{n}"), "m")).status, 200);
    }
    eventually("all is settled", Duration::from_secs(10), || {
        gate.metric("tollgate_ledger_rows_total", &[]) == 10.0
    });
    for file in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        std::fs::remove_file(file.path()).expect("removes");
    }
    assert_within_a_second(noticed(&gate), "");
    let seen = upstream.seen().len();
    let away = gate.call(&call("away", "m"));
    assert_eq!(away.status, 503, "{away:?}");
    assert_eq!(away.json()["error"]["code"], "ledger_unavailable");
    assert_eq!(upstream.seen().len(), seen, "nothing ran");
    assert_eq!(gate.call(&call("loose", "loose")).status, 200);
    eventually("the log says so", Duration::from_secs(5), || {
        gate.log().contains("was removed while the gate writes it")
    });
    let page = gate.admin("/ledger").json();
    assert_eq!(page["available"], false, "{page}");
    gate.signal(libc::SIGTERM);
    assert!(gate.wait(Duration::from_secs(60)).code().is_some());

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
    assert_within_a_second(noticed(&gate), ".lock");
    let seen = upstream.seen().len();
    assert_eq!(gate.call(&call("after", "m")).status, 503);
    assert_eq!(upstream.seen().len(), seen, "nothing ran");
}
