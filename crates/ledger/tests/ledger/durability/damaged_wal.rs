//! A WAL that a crash has truncated is valid, one that the disk has altered is not.

use std::os::unix::fs::FileExt;
use std::path::Path;

use ledger::{Finding, Ledger, OpenError, Reader};

use super::salvage::salvaged;
use crate::rows::{flushed, opened, options, settlement};

fn overwrite(path: &Path, at: u64, length: usize) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opens");
    file.write_all_at(&vec![0xa5; length], at).expect("writes");
}

/// The WAL of a writer that was killed, with one bit flipped.
#[test]
fn a_wal_altered_before_its_last_commits_is_refused_also_without_a_head() {
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
    let before = std::fs::read(&log).expect("reads");
    let refused = Ledger::open(options(crashed.path())).expect_err("is damaged");
    let OpenError::Damaged { findings, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(findings, &[Finding::Log]);
    assert!(refused.to_string().contains("salvage"), "{refused}");
    assert!(
        before == std::fs::read(&log).expect("reads"),
        "it was changed"
    );
    let done = salvaged(&crashed.path().join("ledger.db"));
    assert!(done.settled > 0 && done.settled < 50, "{done:?}");
    assert_eq!(done.kept_aside.len(), 2);
    let verified = Reader::open(&crashed.path().join("ledger.db"))
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (done.settled, vec![]));
}

#[test]
fn a_wal_truncated_anywhere_opens_to_whole_commits() {
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
            rows >= last && recovered.lost.is_empty(),
            "cut at {cut}: {rows} after {last}"
        );
        last = rows;
    }
    assert_eq!(last, 20);
}
