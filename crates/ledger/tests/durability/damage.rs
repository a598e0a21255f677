//! A file that the disk has altered is kept, told, and read as far as it goes.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use ledger::{Ledger, Reader};

use crate::rows::{flushed, opened, options, settlement};

const ROWS: u64 = 2000;

fn written(dir: &Path) -> u64 {
    let ledger = opened(options(dir));
    let intake = ledger.intake();
    for n in 1..=ROWS {
        intake.settle(settlement(n));
    }
    flushed(&intake).expect("is on disk");
    assert!(ledger.close(Duration::from_secs(5)));
    std::fs::metadata(dir.join("ledger.db"))
        .expect("is there")
        .len()
}

fn overwrite(path: &Path, at: u64, length: usize) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opens");
    file.write_all_at(&vec![0xa5; length], at).expect("writes");
}

#[test]
fn a_damaged_page_ends_the_salvage_and_the_file_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let bytes = written(dir.path());
    let path = dir.path().join("ledger.db");
    overwrite(&path, bytes / 8192 * 4096, 3 * 4096);
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    let salvaged = recovered.salvaged.expect("was damaged");
    assert!(
        salvaged.stopped.is_some() && salvaged.settled < ROWS,
        "{salvaged:?}"
    );
    assert!(recovered.kept_aside.iter().all(|kept| kept.exists()));
    assert!(!recovered.kept_aside.is_empty());
    let intake = ledger.intake();
    intake.settle(settlement(ROWS + 1));
    flushed(&intake).expect("serves on");
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!(
        (verified.rows, verified.findings),
        (salvaged.settled + 1, vec![])
    );
}

#[test]
fn a_file_of_garbage_is_kept_and_a_new_ledger_begins() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    std::fs::write(
        &path,
        b"this is no database, and never was one; ".repeat(500),
    )
    .expect("writes");
    let (_ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    let kept = recovered.kept_aside.first().expect("was kept");
    assert!(
        std::fs::read(kept)
            .expect("reads")
            .starts_with(b"this is no database")
    );
    assert!(
        recovered
            .salvaged
            .is_some_and(|s| s.settled == 0 && s.stopped.is_some())
    );
}

/// The log of a writer that did not end in order, and one bit of it turned.
#[test]
fn a_log_altered_behind_its_commits_is_told_and_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    for n in 1..=50 {
        intake.settle(settlement(n));
        flushed(&intake).expect("is on disk");
    }
    let crashed = tempfile::tempdir().expect("a directory");
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(dir.path().join(name), crashed.path().join(name)).expect("copies");
    }
    let log = crashed.path().join("ledger.db-wal");
    let length = std::fs::metadata(&log).expect("is there").len();
    overwrite(&log, length / 2, 1);
    let (ledger, recovered) = Ledger::open(options(crashed.path())).expect("opens");
    assert!(
        recovered.log.is_damaged && recovered.log.loose_frames > 1,
        "{recovered:?}"
    );
    assert_eq!(
        std::fs::metadata(&recovered.kept_aside[0])
            .expect("is kept")
            .len(),
        length
    );
    drop(ledger);
    let verified = Reader::open(&crashed.path().join("ledger.db"))
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert!(
        verified.rows > 0 && verified.rows < 50 && verified.findings.is_empty(),
        "{verified:?}"
    );
}

#[test]
fn a_log_cut_anywhere_opens_to_whole_commits() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    for n in 1..=20 {
        intake.settle(settlement(n));
        flushed(&intake).expect("is on disk");
    }
    let (db, log) = (
        dir.path().join("ledger.db"),
        dir.path().join("ledger.db-wal"),
    );
    let bytes = std::fs::read(&log).expect("reads");
    let mut last = 0;
    for step in 0..=40 {
        let crashed = tempfile::tempdir().expect("a directory");
        std::fs::copy(&db, crashed.path().join("ledger.db")).expect("copies");
        let cut = bytes.len() * step / 40;
        std::fs::write(crashed.path().join("ledger.db-wal"), &bytes[..cut]).expect("writes");
        let (ledger, recovered) = Ledger::open(options(crashed.path())).expect("opens");
        assert!(!recovered.log.is_damaged, "cut at {cut}: {recovered:?}");
        let rows = ledger.stats().head;
        assert!(
            rows >= last && recovered.findings.is_empty(),
            "cut at {cut}: {rows} after {last}"
        );
        last = rows;
    }
    assert_eq!(last, 20);
}
