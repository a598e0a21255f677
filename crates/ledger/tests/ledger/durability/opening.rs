//! Opening a ledger: one writer, migration, and open exchanges that become indeterminate.

use std::path::Path;

use ledger::{Finding, Ledger, OpenError, Period, Progress, ReadError, Reader, salvage};
use testing::PATIENCE;

use crate::rows::{admitted, flushed, id, opened, options, settlement};

/// Exchanges that are open on disk.
pub(crate) fn open_count(path: &Path) -> i64 {
    let db = rusqlite::Connection::open(path).expect("opens");
    let sql = "SELECT count(*) FROM open";
    db.query_row(sql, [], |row| row.get(0)).expect("reads")
}

#[test]
fn a_second_writer_is_refused_and_the_writing_process_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = opened(options(dir.path()));
    let refused = Ledger::open(options(dir.path())).expect_err("is locked");
    let OpenError::Locked { pid, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(
        refused
            .to_string()
            .contains(&std::process::id().to_string()),
        "{refused}"
    );
    assert!(first.close(PATIENCE));
    drop(opened(options(dir.path())));
}

#[test]
fn open_exchanges_become_indeterminate_with_bounds_and_only_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    for n in 1..=3 {
        admitted(&intake, n).expect("is on disk");
    }
    intake.progress(Progress {
        id: id(2),
        tokens: 70,
        bytes_out: 900,
    });
    intake.settle(settlement(3));
    flushed(&intake).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    for expected in [2, 0] {
        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
        assert_eq!(recovered.indeterminate, expected);
        assert!(!recovered.is_new && !recovered.without_head && !recovered.unchecked);
        drop(ledger);
    }
    let reader = Reader::open(&dir.path().join("ledger.db")).expect("opens");
    let mut rows = Vec::new();
    let read: Result<(), ReadError> = reader.each(Period::ALL, |row| {
        let bounds = (row.number("at_least_tokens"), row.number("at_most_tokens"));
        rows.push((row.text("state").map(str::to_owned), row.id(), bounds));
        Ok(())
    });
    read.expect("reads");
    rows.sort_by(|a, b| a.1.cmp(&b.1));
    let indeterminate = Some("indeterminate".to_owned());
    assert_eq!(rows[0].0, indeterminate);
    assert_eq!(rows[0].2, (Some(0), Some(1000)));
    assert_eq!(rows[1].0, indeterminate);
    assert_eq!(rows[1].2, (Some(70), Some(1000)));
    assert_eq!(rows[2].0.as_deref(), Some("settled"));
    assert_eq!(rows.len(), 3);
    assert_eq!(reader.verify(None).expect("reads").findings, []);
}

#[test]
fn a_withdrawn_admission_leaves_no_row() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    admitted(&intake, 1).expect("is on disk");
    intake.withdraw(id(1));
    flushed(&intake).expect("is on disk");
    let reader = Reader::open(ledger.path()).expect("opens");
    assert_eq!(open_count(ledger.path()), 0);
    assert_eq!(reader.head().expect("reads").seq, 0);
}

/// Removes from a new file what this build adds to an older one.
#[test]
fn a_ledger_of_an_earlier_build_is_migrated_when_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let ledger = opened(options(dir.path()));
    ledger.intake().settle(settlement(1));
    admitted(&ledger.intake(), 2).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    std::fs::remove_file(dir.path().join("ledger.db.head")).expect("removes");
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(
        "DROP TABLE lost; ALTER TABLE open DROP COLUMN sum; ALTER TABLE open DROP COLUMN mark_sum; \
         PRAGMA application_id = 0;",
    )
    .expect("writes");
    drop(db);
    let reader = Reader::open(&path).expect("opens");
    assert_eq!(reader.verify(None).expect("reads").findings, []);
    drop(reader);
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert!(recovered.without_head && !recovered.is_new, "{recovered:?}");
    assert_eq!((recovered.indeterminate, ledger.head().seq), (1, 2));
    admitted(&ledger.intake(), 3).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert!(!recovered.without_head, "{recovered:?}");
    assert_eq!((recovered.indeterminate, ledger.head().seq), (1, 3));
}

#[test]
fn the_head_file_detects_missing_commits() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    // Nothing is settled, so the hash chain alone would not show that admissions are missing.
    admitted(&ledger.intake(), 1).expect("is on disk");
    let early = std::fs::read(dir.path().join("ledger.db-wal")).expect("reads");
    admitted(&ledger.intake(), 2).expect("is on disk");
    let crashed = tempfile::tempdir().expect("a directory");
    for name in ["ledger.db", "ledger.db.head"] {
        std::fs::copy(dir.path().join(name), crashed.path().join(name)).expect("copies");
    }
    std::fs::write(crashed.path().join("ledger.db-wal"), early).expect("writes");
    let refused = Ledger::open(options(crashed.path())).expect_err("a commit is missing");
    let OpenError::Damaged { findings, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(findings, &[Finding::Commits { missing: 1 }]);
}

/// SQLite's WAL belongs to one name: a process that opens the other name does not see it.
#[test]
fn a_ledger_with_two_hard_links_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    ledger.intake().settle(settlement(1));
    assert!(ledger.close(PATIENCE));
    let other = dir.path().join("other.db");
    std::fs::hard_link(ledger.path(), &other).expect("links");
    let before = std::fs::read(&other).expect("reads");
    let refused = Ledger::open(options(dir.path())).expect_err("has two names");
    assert!(
        matches!(refused, OpenError::Linked { links: 2, .. }),
        "{refused}"
    );
    let says = refused.to_string();
    assert!(
        says.contains("ledger.db") && says.contains("(find / -samefile '/"),
        "{says}"
    );
    let refused = salvage(ledger.path()).expect_err("nor is it salvaged");
    assert!(refused.to_string().contains("2 names"), "{refused}");
    assert!(
        before == std::fs::read(&other).expect("reads"),
        "it was changed"
    );
    std::fs::remove_file(&other).expect("removes");
    assert_eq!(opened(options(dir.path())).head().seq, 1);

    // An empty file is not a ledger yet, and none is created in a file with two links.
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("ledger.db"), b"").expect("writes");
    std::fs::hard_link(dir.path().join("ledger.db"), dir.path().join("other.db")).expect("links");
    let refused = Ledger::open(options(dir.path())).expect_err("has two names");
    assert!(matches!(refused, OpenError::Linked { .. }), "{refused}");
    let length = std::fs::metadata(dir.path().join("other.db"))
        .expect("is there")
        .len();
    assert_eq!(length, 0);
}
