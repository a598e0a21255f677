//! A file of an older build: readable without a change, and migrated by the next writer.

use std::time::Duration;

use ledger::{Ledger, Period, ReadError, Reader};
use rusqlite::Connection;

use crate::rows::{flushed, id, opened, options, settlement};

/// The first column that layout 1 does not have.
const FIRST_ADDED: usize = 44;

/// Turns the file into one of layout 1.
fn set_back_to_layout_1(path: &std::path::Path) {
    let db = Connection::open(path).expect("opens");
    for (name, _) in &ledger::COLUMNS[FIRST_ADDED..] {
        let sql = format!("ALTER TABLE settled DROP COLUMN {name}");
        db.execute_batch(&sql).expect("a column less");
    }
    db.pragma_update(None, "user_version", 1).expect("layout 1");
}

#[test]
fn a_file_of_the_previous_layout_is_readable_and_migrated_by_a_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let ledger = opened(options(dir.path()));
    for n in 1..=3 {
        ledger.intake().settle(settlement(n));
    }
    flushed(&ledger.intake()).expect("on disk");
    assert!(ledger.close(Duration::from_secs(5)));
    set_back_to_layout_1(&path);

    let reader = Reader::open(&path).expect("an older file is readable");
    let verified = reader.verify(None).expect("a walk");
    assert_eq!((verified.rows, verified.findings.len()), (3, 0));
    drop(reader);

    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert!(
        !recovered.is_new && recovered.lost.is_empty(),
        "{recovered:?}"
    );
    let mut row = settlement(4);
    row.record.tokens.cache_write_1h = Some(1200);
    row.record.unconfirmed.add(70, 7);
    row.record.estimate_reason = "timed_out";
    ledger.intake().settle(row);
    flushed(&ledger.intake()).expect("on disk");
    assert!(ledger.close(Duration::from_secs(5)));

    let reader = Reader::open(&path).expect("opens");
    let verified = reader.verify(None).expect("a walk");
    assert_eq!((verified.rows, verified.findings.len()), (4, 0));
    let mut said = Vec::new();
    let all: Result<(), ReadError> = reader.each(Period::ALL, |row| {
        said.push((
            row.id(),
            row.number("cache_write_1h_tokens"),
            row.number("unconfirmed_tokens"),
            row.text("estimate_reason").map(str::to_owned),
        ));
        Ok(())
    });
    all.expect("rows");
    let last = said.pop().expect("a row");
    assert_eq!(
        last,
        (
            id(4).to_string(),
            Some(1200),
            Some(77),
            Some("timed_out".to_owned())
        )
    );
    assert!(said.iter().all(|row| row.1.is_none() && row.3.is_none()));
}

#[test]
fn a_changed_or_removed_value_of_an_added_column_is_detected() {
    for damage in [
        "UPDATE settled SET cache_write_1h_tokens = 12 WHERE seq = 2",
        "UPDATE settled SET cache_write_1h_tokens = NULL WHERE seq = 2",
        "UPDATE settled SET upstream_request_id = 'x' WHERE seq = 1",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = opened(options(dir.path()));
        ledger.intake().settle(settlement(1));
        let mut row = settlement(2);
        row.record.tokens.cache_write_1h = Some(1200);
        ledger.intake().settle(row);
        flushed(&ledger.intake()).expect("on disk");
        assert!(ledger.close(Duration::from_secs(5)));
        let path = dir.path().join("ledger.db");
        let db = Connection::open(&path).expect("opens");
        db.execute_batch(damage).expect("done");
        drop(db);
        let reader = Reader::open(&path).expect("opens");
        let verified = reader.verify(None).expect("a walk");
        assert_eq!(verified.findings.len(), 1, "{damage}: {verified:?}");
    }
}
