//! The files change their names all together, or not at all; a record is kept once.

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::in_place::moved_back;
use super::*;
use crate::chain::link;
use crate::columns::{COLUMNS, values};
use crate::store::tests::settlement;
use crate::{Ledger, Options, Reader};

#[test]
fn files_that_cannot_be_put_in_place_leave_the_old_ones_where_they_were() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    std::fs::write(&path, b"the file").expect("writes");
    std::fs::write(beside(&path, "-wal"), b"its log").expect("writes");
    // There is nothing to put there.
    let made = dir.path().join("made");
    let refused = swap(&path, &made, 7).expect_err("nothing was made");
    assert!(matches!(refused, SalvageError::Write(_)), "{refused}");
    assert_eq!(std::fs::read(&path).expect("reads"), b"the file");
    assert_eq!(
        std::fs::read(beside(&path, "-wal")).expect("reads"),
        b"its log"
    );
    let left = std::fs::read_dir(dir.path()).expect("lists").count();
    assert_eq!(left, 2);
}

#[test]
fn a_file_that_cannot_be_moved_back_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (was, is) = (dir.path().join("ledger.db"), dir.path().join("aside"));
    let failed = std::io::Error::other("no room");
    let says = moved_back(&[(was.clone(), is.clone())], &failed).to_string();
    for word in [
        "no room",
        &was.display().to_string(),
        &is.display().to_string(),
    ] {
        assert!(says.contains(word), "{word}: {says}");
    }
}

/// A damaged index of ids lets a record in twice; the new file has a whole one.
#[test]
fn a_row_whose_id_another_has_is_told_as_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    schema::make(&path, [7; 16]).expect("makes tables");
    let db = connect(&path).expect("opens");
    db.execute_batch("DROP INDEX settled_id; CREATE INDEX settled_id ON settled (id)")
        .expect("is not unique any more");
    let columns: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let sql = format!(
        "INSERT INTO settled (seq,{},hash) VALUES ({})",
        columns.join(","),
        vec!["?"; WIDTH + 2].join(",")
    );
    let mut head = Head::START;
    // Rows 3, 5, 6 and 9 have the id of an earlier one.
    for n in [1, 2, 1, 4, 2, 1, 7, 8, 8] {
        let row = settlement(n);
        let values: Vec<_> = values(&row, "test").collect();
        let seq = head.seq + 1;
        let hash = link(head.hash, seq, values.iter().copied());
        let all = std::iter::once(ValueRef::Integer(seq))
            .chain(values)
            .chain([ValueRef::Blob(&hash.0)]);
        let all = all.map(ToSqlOutput::Borrowed);
        db.execute(&sql, rusqlite::params_from_iter(all))
            .expect("writes");
        head = Head { seq, hash };
    }
    let sql = "UPDATE chain SET head_seq = ?1, head_hash = ?2";
    db.execute(sql, rusqlite::params![head.seq, head.hash.0])
        .expect("writes");
    drop(db);
    let done = under_new_name(&path).expect("salvages");
    assert_eq!((done.settled, done.rows_lost), (5, 4), "{done:?}");
    let lost: Vec<_> = done.lost.iter().map(|lost| (lost.from, lost.to)).collect();
    assert_eq!(lost, [(3, 3), (5, 5), (6, 6), (9, 9), (10, 9)]);
    let again = under_new_name(&path).expect("salvages");
    assert_eq!((again.settled, again.rows_lost), (5, 0), "{again:?}");
    let reader = Reader::open(&path).expect("opens");
    let verified = reader.verify(None).expect("reads");
    assert_eq!((verified.findings, verified.head), (vec![], head));
    let (ledger, _) = Ledger::open(Options::at(&path)).expect("opens");
    assert_eq!(ledger.head(), head);
}
