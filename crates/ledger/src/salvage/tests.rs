//! The files change their names all together, or not at all; a record is kept once.

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::in_place::moved_back;
use super::*;
use crate::chain::link;
use crate::columns::{COLUMNS, WIDTH, values};
use crate::store::tests::settlement;
use crate::verify::select;
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

/// A ledger with rows of these ids, in this order, whose index of ids is none that refuses; and its head.
fn of_ids(path: &Path, ids: impl IntoIterator<Item = u64>) -> Head {
    schema::make(path, [7; 16]).expect("makes tables");
    let mut db = connect(path).expect("opens");
    db.execute_batch("DROP INDEX settled_id; CREATE INDEX settled_id ON settled (id)")
        .expect("is not unique any more");
    let columns: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let sql = format!(
        "INSERT INTO settled (seq,{},hash) VALUES ({})",
        columns.join(","),
        vec!["?"; WIDTH + 2].join(",")
    );
    let mut head = Head::START;
    let tx = db.transaction().expect("begins");
    for n in ids {
        let row = settlement(n);
        let values: Vec<_> = values(&row, "test").collect();
        let seq = head.seq + 1;
        let hash = link(head.hash, seq, values.iter().copied());
        let all = std::iter::once(ValueRef::Integer(seq))
            .chain(values)
            .chain([ValueRef::Blob(&hash.0)]);
        let all = all.map(ToSqlOutput::Borrowed);
        tx.execute(&sql, rusqlite::params_from_iter(all))
            .expect("writes");
        head = Head { seq, hash };
    }
    let sql = "UPDATE chain SET head_seq = ?1, head_hash = ?2";
    tx.execute(sql, rusqlite::params![head.seq, head.hash.0])
        .expect("writes");
    tx.commit().expect("writes");
    head
}

/// A damaged index of ids lets a record in twice; the new file has a whole one.
#[test]
fn a_row_whose_id_another_has_is_told_as_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    // Rows 3, 5, 6 and 9 have the id of an earlier one.
    let head = of_ids(&path, [1, 2, 1, 4, 2, 1, 7, 8, 8]);
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

/// Whichever pages of its rows are bad: each row that can be read, with the one before it, is kept.
#[test]
fn every_row_that_is_proved_by_a_row_that_can_be_read_is_kept() {
    const ROWS: i64 = 1000;
    let mut random = testing::seed("salvage of bad pages") | 1;
    let mut below = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    of_ids(&path, 1..=ROWS.unsigned_abs());
    let db = connect(&path).expect("opens");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("is one file");
    let mut roots = db
        .prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
        .expect("reads");
    let roots = roots.query_map([], |row| row.get(0)).expect("reads");
    let roots: Vec<i64> = roots.map(|root| root.expect("reads")).collect();
    let whole = std::fs::read(&path).expect("reads");
    let pages = (whole.len() / PAGE) as u64;
    for round in 0..12 {
        // A few of them, a run at the beginning, or most of the file.
        let first = 2 + below(pages / 2);
        let bad: Vec<u64> = match round % 3 {
            0 => (0..=below(8)).map(|_| 2 + below(pages - 1)).collect(),
            1 => (first..=first + below(pages / 2)).collect(),
            _ => (2..=pages).filter(|_| below(5) > 0).collect(),
        };
        let mut damaged = whole.clone();
        for page in bad
            .iter()
            .filter(|page| !roots.contains(&page.cast_signed()))
        {
            let at = (*page - 1) as usize * PAGE;
            damaged[at..at + PAGE].fill(0xff);
        }
        let path = dir.path().join(format!("damaged-{round}.db"));
        std::fs::write(&path, damaged).expect("writes");
        let db = connect_to_read(&path).expect("opens");
        let mut statement = db.prepare(&select("seq = ?1")).expect("reads");
        let mut can_be_read = |seq: i64| seq == 0 || statement.query_row([seq], |_| Ok(())).is_ok();
        let proved = |seq: &i64| can_be_read(*seq - 1) && can_be_read(*seq);
        let proved: Vec<i64> = (1..=ROWS).filter(proved).collect();
        drop(statement);
        drop(db);
        let done = under_new_name(&path).expect("salvages");
        let db = connect_to_read(&path).expect("opens");
        let mut kept = db
            .prepare("SELECT seq FROM settled ORDER BY seq")
            .expect("reads");
        let kept = kept.query_map([], |row| row.get(0)).expect("reads");
        let kept: Vec<i64> = kept.map(|seq| seq.expect("reads")).collect();
        assert_eq!(
            kept, proved,
            "round {round}: pages {bad:?}, {:?}",
            done.lost
        );
    }
}
