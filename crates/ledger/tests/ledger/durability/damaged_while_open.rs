//! A ledger that is found damaged while it is open: nothing more is written to it.

use std::path::Path;
use std::time::Duration;

use ledger::{Ledger, OpenError, Options, Reader};
use rusqlite::Connection;
use testing::{PATIENCE, eventually, nothing_happens_for};

use crate::rows::{admitted, flushed, now_ms, opened, options, settlement};

/// A ledger with durable rows, possibly only in the WAL.
fn with_rows(dir: &Path, rows: u64) -> Ledger {
    let ledger = opened(Options {
        checkpoint_every: Duration::from_millis(50),
        ..options(dir)
    });
    (1..=rows).for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    ledger
}

fn length(ledger: &Path) -> u64 {
    std::fs::metadata(ledger).expect("is there").len()
}

fn files(dir: &Path) -> [Option<Vec<u8>>; 3] {
    ["ledger.db", "ledger.db-wal", "ledger.db.head"].map(|name| std::fs::read(dir.join(name)).ok())
}

#[test]
fn rows_written_by_another_process_stop_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = with_rows(dir.path(), 10);
    let other = Connection::open(ledger.path()).expect("opens");
    let columns = ledger::COLUMNS.map(|(name, _)| name).join(",");
    let columns = columns.strip_prefix("id,").expect("the id is first");
    let copied = other.execute(
        &format!(
            "INSERT INTO settled (seq, id, {columns}, hash) \
             SELECT 11, randomblob(16), {columns}, hash FROM settled WHERE seq = 10"
        ),
        [],
    );
    assert_eq!(copied.expect("writes"), 1);
    drop(other);
    ledger.intake().settle(settlement(11));
    drop(flushed(&ledger.intake()));
    eventually("it is noticed", || !ledger.intake().is_available());
    let why = ledger.intake().unavailable().expect("takes no rows").why;
    assert!(why.contains("another process has written rows"), "{why}");
    let stats = ledger.stats();
    assert_eq!((stats.refused, stats.spilled), (0, 1), "{stats:?}");
    assert!(!ledger.close(PATIENCE), "row 11 is in memory alone");
    let refused = Ledger::open(options(dir.path())).expect_err("is not as it was written");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
}

/// As when the background check of a running gate finds damage.
#[test]
fn an_open_ledger_found_damaged_is_not_modified() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        checkpoint_every: Duration::from_millis(300),
        keep: Some(Duration::from_secs(365 * 86_400)),
        clocks_agree_for: Duration::ZERO,
        ..options(dir.path())
    });
    let now = now_ms();
    for n in 1..=100 {
        let mut young = settlement(n);
        // After two seconds it is old enough to be pruned; from the last one age is reckoned.
        young.ended_unix_ms = if n < 100 {
            now - 365 * 86_400_000 + 2000
        } else {
            now + 60_000
        };
        ledger.intake().settle(young);
    }
    flushed(&ledger.intake()).expect("is on disk");
    ledger.condemn("for a test");
    // Until then a commit may be in progress.
    eventually("it takes no rows", || flushed(&ledger.intake()).is_err());
    let before = files(dir.path());
    assert!(before[1].as_ref().is_some_and(|log| !log.is_empty()));
    (101..=200).for_each(|n| ledger.intake().settle(settlement(n)));
    nothing_happens_for(Duration::from_millis(2500));
    assert!(before == files(dir.path()), "it was written to");
    assert_eq!(ledger.stats().spilled, 100, "{:?}", ledger.stats());
    assert!(!ledger.close(PATIENCE), "rows are in memory");
    drop(ledger);
    assert!(before == files(dir.path()), "closing wrote to it");
}

#[test]
fn a_truncated_file_is_detected_and_not_overwritten() {
    const MOST: u64 = 20 * 4096;
    for keeps in [0, 4096, MOST] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = with_rows(dir.path(), 1000);
        eventually("a checkpoint copies the log into the file", || {
            length(ledger.path()) > MOST
        });
        // The writer answers after it has finished that.
        flushed(&ledger.intake()).expect("is on disk");
        assert!(length(ledger.path()) > keeps, "{keeps}");
        let file = std::fs::OpenOptions::new().write(true).open(ledger.path());
        file.and_then(|file| file.set_len(keeps)).expect("cuts");
        eventually("it is noticed", || !ledger.intake().is_available());
        let why = ledger.intake().unavailable().expect("takes no rows").why;
        assert!(
            why.contains("ledger.db") && why.contains("cut short"),
            "{why}"
        );
        admitted(&ledger.intake(), 5000).expect_err("nothing is promised");
        let before = files(dir.path());
        ledger.intake().settle(settlement(2000));
        assert!(!ledger.close(PATIENCE), "a row is in memory");
        assert!(before == files(dir.path()), "it was written to");
        // The WAL may have every page that the file lacks.
        match Ledger::open(options(dir.path())) {
            Ok((ledger, _)) => assert_eq!(ledger.head().seq, 1000, "kept {keeps}"),
            Err(error) => assert!(
                matches!(error, OpenError::Damaged { .. } | OpenError::Gone { .. }),
                "kept {keeps}: {error}"
            ),
        }
    }
}

/// Pruning frees pages, so the file shrinks without damage.
#[test]
fn a_file_that_shrinks_by_pruning_is_not_reported_as_truncated() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = 150_000;
    let with = |bytes_max| Options {
        checkpoint_every: Duration::from_millis(50),
        bytes_max,
        ..options(dir.path())
    };
    let (grown, mut n) = (2 * most, 0);
    for _ in 0..3 {
        // It grows where nothing is pruned, and what was written last is long when the first rows go.
        let ledger = opened(with(None));
        while length(ledger.path()) < grown {
            for _ in 0..500 {
                n += 1;
                ledger.intake().settle(settlement(n));
            }
            flushed(&ledger.intake()).expect("is on disk");
            copied(ledger.path());
        }
        assert!(ledger.close(PATIENCE));
        drop(ledger);
        let ledger = opened(with(Some(most)));
        for _ in 0..500 {
            n += 1;
            ledger.intake().settle(settlement(n));
        }
        eventually("the file shrank", || {
            // Other processes may checkpoint the WAL, too.
            copied(ledger.path());
            length(ledger.path()) < most + 100_000
        });
        assert!(
            ledger.intake().is_available(),
            "{:?}",
            ledger.intake().unavailable()
        );
        assert!(ledger.close(PATIENCE));
    }
    let verified =
        Reader::open(&dir.path().join("ledger.db")).and_then(|reader| reader.verify(None));
    assert_eq!(verified.expect("reads").findings, []);
}

/// Copies what is in the log into the file, where nobody is in the way.
fn copied(ledger: &Path) {
    if let Ok(db) = Connection::open(ledger) {
        drop(db.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())));
    }
}

#[test]
fn a_head_that_cannot_be_written_is_reported_and_so_is_its_recovery() {
    let dir = tempfile::tempdir().expect("a directory");
    let beside = dir.path().join("ledger.db.head");
    std::fs::create_dir(&beside).expect("a directory in its place");
    let ledger = opened(Options {
        checkpoint_every: Duration::from_millis(50),
        ..options(dir.path())
    });
    ledger.intake().settle(settlement(1));
    flushed(&ledger.intake()).expect("is on disk");
    eventually("it is told", || ledger.head_fault().is_some());
    let says = ledger.head_fault().expect("is told");
    assert!(says.contains("ledger.db.head"), "{says}");
    assert!(ledger.stats().head_failures > 0, "{:?}", ledger.stats());
    assert!(
        ledger.intake().is_available(),
        "rows are written all the same"
    );
    std::fs::remove_dir(&beside).expect("removes");
    eventually("it is there again", || ledger.head_fault().is_none());
    let failures = ledger.stats().head_failures;
    ledger.intake().settle(settlement(2));
    assert!(ledger.close(PATIENCE));
    assert_eq!(ledger.stats().head_failures, failures);
    let (_, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert!(!recovered.without_head, "{recovered:?}");
}

#[test]
fn a_truncated_wal_is_detected_and_the_file_not_modified() {
    for keeps in [0, 32] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = opened(options(dir.path()));
        (1..=200).for_each(|n| ledger.intake().settle(settlement(n)));
        flushed(&ledger.intake()).expect("is on disk");
        let log = dir.path().join("ledger.db-wal");
        assert!(length(&log) > keeps, "all rows are in it");
        let before = std::fs::read(ledger.path()).expect("reads");
        let file = std::fs::OpenOptions::new().write(true).open(&log);
        file.and_then(|file| file.set_len(keeps)).expect("cuts");
        eventually("it is noticed", || !ledger.intake().is_available());
        let why = ledger.intake().unavailable().expect("takes no rows").why;
        assert!(why.contains("log was cut short"), "{why}");
        admitted(&ledger.intake(), 5000).expect_err("nothing is promised");
        ledger.close(PATIENCE);
        assert!(before == std::fs::read(ledger.path()).expect("reads"));
        assert_eq!(length(&log), keeps, "nothing is written to it");
    }
}

/// As another program that opens the ledger may do.
#[test]
fn a_wal_checkpointed_by_another_process_is_not_reported_as_truncated() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    for round in 0..3 {
        let rows = round * 100 + 1..=(round + 1) * 100;
        rows.for_each(|n| ledger.intake().settle(settlement(n)));
        flushed(&ledger.intake()).expect("is on disk");
        let other = Connection::open(ledger.path()).expect("opens");
        other.busy_timeout(PATIENCE).expect("is set");
        let copied = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(copied.expect("copies"), 0);
        drop(other);
        nothing_happens_for(Duration::from_millis(500));
        assert!(
            ledger.intake().is_available(),
            "{:?}",
            ledger.intake().unavailable()
        );
    }
    assert!(ledger.close(PATIENCE));
    assert_eq!(ledger.head().seq, 300);
}
