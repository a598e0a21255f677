//! A full disk: simulated by the database's page limit, and real.

use std::process::Command;

use ledger::{Ledger, Options, Period, ReadError, Reader};
use testing::{PATIENCE, eventually};

use crate::rows::{admitted, flushed, id, opened, options, settlement};

#[test]
fn a_full_disk_is_reported_at_once_and_dropped_rows_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        pages_max: Some(40),
        spill: 50,
        ..options(dir.path())
    });
    let intake = ledger.intake();
    let mut sent = 0;
    while intake.is_available() {
        for _ in 0..50 {
            sent += 1;
            intake.settle(settlement(sent));
        }
        drop(flushed(&intake));
        assert!(sent < 10_000, "forty pages never fill");
    }
    let refused = admitted(&intake, 1_000_000).expect_err("there is no room");
    assert!(refused.why.contains("full"), "{refused}");
    let more = 500;
    for n in 1..=more {
        intake.settle(settlement(sent + n));
    }
    eventually("all of it is somewhere", || {
        let stats = intake.stats();
        stats.settled + stats.spilled + stats.lost_settlements == sent + more
    });
    let stats = intake.stats();
    assert!(
        stats.lost_settlements > 0 && stats.failures > 0 && !stats.available,
        "{stats:?}"
    );
    assert!(!ledger.close(PATIENCE), "what is in memory was not written");
}

/// A file system of one megabyte, filled by another file and emptied again. It needs the right to mount;
/// without it the test is counted as skipped, and only the test above covers a full disk.
#[test]
fn after_a_full_disk_recovers_no_row_is_lost_or_duplicated() {
    let dir = tempfile::tempdir().expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(dir.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        testing::skip("no right to mount a file system that can be full");
        return;
    }
    let outcome = std::panic::catch_unwind(|| fill_and_empty(dir.path()));
    let unmounted = Command::new("umount").arg(dir.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()), "unmounts");
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn fill_and_empty(dir: &std::path::Path) {
    let ledger = opened(options(dir));
    let intake = ledger.intake();
    let mut sent = 0;
    let mut settle = |n: u64| {
        for _ in 0..n {
            sent += 1;
            intake.settle(settlement(sent));
        }
        sent
    };
    settle(100);
    flushed(&intake).expect("there is room");
    admitted(&intake, 1_000_000).expect("there is room");
    let filler = dir.join("filler");
    for round in 0..3 {
        // The write fails after it has filled the remaining space.
        assert!(std::fs::write(&filler, vec![1; 2 << 20]).is_err());
        let before = settle(200);
        drop(flushed(&intake));
        eventually("the disk is full", || !intake.is_available());
        admitted(&intake, 2_000_000 + round).expect_err("there is no room");
        std::fs::remove_file(&filler).expect("removes");
        eventually("the disk is back", || intake.is_available());
        assert_eq!(intake.stats().settled, before);
        admitted(&intake, 3_000_000 + round).expect("there is room");
        intake.withdraw(id(3_000_000 + round));
    }
    intake.settle(settlement(1_000_000));
    flushed(&intake).expect("there is room");
    let stats = intake.stats();
    assert_eq!(
        (stats.lost_settlements, stats.spilled, stats.duplicates),
        (0, 0, 0),
        "{stats:?}"
    );
    assert!(ledger.close(PATIENCE));
    let (ledger, recovered) = Ledger::open(options(dir)).expect("opens");
    assert_eq!(recovered.indeterminate, 0, "who was refused is not open");
    drop(ledger);
    let reader = Reader::open(&dir.join("ledger.db")).expect("opens");
    let mut rows = 0;
    let read: Result<(), ReadError> = reader.each(Period::ALL, |_| {
        rows += 1;
        Ok(())
    });
    read.expect("reads");
    assert_eq!(rows, sent + 1);
    assert_eq!(reader.verify(None).expect("reads").findings, []);
}
