//! Backups during writes, WAL checkpoints, and restored backups.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use ledger::{BackupError, Expected, Finding, Ledger, OpenError, Options, Reader};
use testing::{PATIENCE, eventually};

use super::salvage::salvaged;
use crate::rows::{admitted, flushed, opened, options, settlement};

#[test]
fn a_backup_made_during_writes_is_complete_and_opens() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    (1..=500).for_each(|n| ledger.intake().settle(settlement(n)));
    admitted(&ledger.intake(), 90_000).expect("is on disk");
    flushed(&ledger.intake()).expect("is on disk");
    let target = dir.path().join("copy.db");
    let is_copied = std::sync::atomic::AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        let (intake, is_copied) = (ledger.intake(), &is_copied);
        scope.spawn(move || {
            for n in 501.. {
                if is_copied.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                intake.settle(settlement(n));
                flushed(&intake).expect("no writer waits for a copy");
            }
        });
        let reader = Reader::open(ledger.path()).expect("opens");
        let copied = reader.backup(&target);
        is_copied.store(true, std::sync::atomic::Ordering::Relaxed);
        copied.expect("copies")
    });
    assert!(
        copied.rows >= 500 && copied.findings.is_empty(),
        "{copied:?}"
    );
    let mode = std::fs::metadata(&target)
        .expect("is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    let again = Reader::open(ledger.path()).expect("opens").backup(&target);
    assert!(matches!(again, Err(BackupError::Exists(_))), "{again:?}");

    // In another directory, without a head file.
    let elsewhere = tempfile::tempdir().expect("a directory");
    std::fs::copy(&target, elsewhere.path().join("ledger.db")).expect("copies");
    let (restored, recovered) = Ledger::open(options(elsewhere.path())).expect("starts");
    assert_eq!(recovered.indeterminate, 1, "what was open then");
    assert!(recovered.without_head, "{recovered:?}");
    assert_eq!(restored.head().seq.unsigned_abs(), copied.rows + 1);
}

#[test]
fn a_backup_of_a_damaged_ledger_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    (1..=500).for_each(|n| ledger.intake().settle(settlement(n)));
    assert!(ledger.close(PATIENCE));
    let db = rusqlite::Connection::open(ledger.path()).expect("opens");
    db.execute("UPDATE settled SET workload = 'other' WHERE seq = 40", [])
        .expect("writes");
    let target = dir.path().join("copy.db");
    let refused = Reader::open(ledger.path()).expect("opens").backup(&target);
    assert!(
        matches!(&refused, Err(BackupError::Damaged { finding, .. }) if finding.contains("row 40")),
        "{refused:?}"
    );
    blames_the_ledger(&refused.expect_err("is damaged"), ledger.path());
    let left = std::fs::read_dir(dir.path()).expect("lists").flatten();
    let left: Vec<_> = left
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("copy"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Asserts that the error names the ledger and a remedy, and not the copy.
fn blames_the_ledger(refused: &BackupError, ledger: &Path) {
    let says = refused.to_string();
    let ledger = ledger.display().to_string();
    for what in ["verify", "salvage"] {
        let command = format!("tollgate usage --ledger {ledger} {what}");
        assert!(says.contains(&command), "{command}: {says}");
    }
    assert!(!says.contains("copy.db"), "{says}");
}

/// Here the copying itself fails.
#[test]
fn a_backup_of_a_ledger_with_a_damaged_page_blames_the_ledger() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    (1..=500).for_each(|n| ledger.intake().settle(settlement(n)));
    assert!(ledger.close(PATIENCE));
    let mut bytes = std::fs::read(ledger.path()).expect("reads");
    let middle = bytes.len() / 8192 * 4096;
    bytes[middle..middle + 4 * 4096].fill(0xa5);
    std::fs::write(ledger.path(), bytes).expect("writes");
    let target = dir.path().join("copy.db");
    let refused = Reader::open(ledger.path()).expect("opens").backup(&target);
    blames_the_ledger(&refused.expect_err("is damaged"), ledger.path());
    assert!(!target.exists());
}

#[test]
fn a_restored_backup_is_refused_until_its_loss_is_accepted() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let ledger = opened(options(dir.path()));
    (1..=100).for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    let copy = dir.path().join("copy.db");
    Reader::open(&path)
        .expect("opens")
        .backup(&copy)
        .expect("copies");
    (101..=150).for_each(|n| ledger.intake().settle(settlement(n)));
    assert!(ledger.close(PATIENCE));
    let head = ledger.head();
    drop(ledger);
    std::fs::rename(&copy, &path).expect("puts back");
    let before = std::fs::read(&path).expect("reads");
    let refused = Ledger::open(options(dir.path())).expect_err("is set back");
    assert!(before == std::fs::read(&path).expect("reads"), "changed");
    let OpenError::Damaged { findings, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(
        findings,
        &[Finding::SetBack {
            written: head,
            ends: 100
        }]
    );
    let expected = Expected::parse(&head.to_string());
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(expected)
        .expect("reads");
    assert!(!verified.findings.is_empty());

    let done = salvaged(&path);
    assert_eq!(
        (done.settled, done.lost[0].from, done.lost[0].to),
        (100, 101, 150)
    );
    let ledger = opened(options(dir.path()));
    ledger.intake().settle(settlement(151));
    assert!(ledger.close(PATIENCE));
    assert_eq!(ledger.head().seq, 151);
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(expected)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (101, vec![]));
}

/// How often a log was begun anew, as its header says (<https://sqlite.org/fileformat2.html#walformat>).
fn beginnings(ledger: &Path) -> u32 {
    let log = std::fs::read(ledger.with_extension("db-wal")).expect("is there");
    let number = log[12..].first_chunk().expect("a header");
    u32::from_be_bytes(*number)
}

#[test]
fn the_wal_is_checkpointed_on_a_schedule_and_begun_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        checkpoint_every: Duration::from_millis(100),
        ..options(dir.path())
    });
    let alone = tempfile::tempdir().expect("a directory");
    let mut before = None;
    for round in 1..=4 {
        (1..=200).for_each(|n| ledger.intake().settle(settlement(round * 1000 + n)));
        flushed(&ledger.intake()).expect("is on disk");
        // All of the one before is in the file, so it goes on from the log's beginning.
        let now = beginnings(ledger.path());
        assert!(before < Some(now), "{before:?} to {now}");
        before = Some(now);
        eventually("the file alone has all rows", || {
            let copy = alone.path().join("ledger.db");
            std::fs::copy(ledger.path(), &copy).expect("copies");
            let head = Reader::open(&copy).and_then(|reader| reader.head());
            head.is_ok_and(|head| head.seq.unsigned_abs() == round * 200)
        });
    }
    let copy = Reader::open(&alone.path().join("ledger.db")).expect("opens");
    let verified = copy.verify(None).expect("reads");
    assert_eq!((verified.rows, verified.findings), (800, vec![]));
    eventually("its length is told", || ledger.stats().log_bytes > 0);
}
