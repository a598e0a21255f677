//! A file of an older build: readable without a change, and migrated by the next writer.

use ledger::{Ledger, OpenError, Period, ReadError, Reader, under_new_name};
use policy::attribution::Attribution;
use rusqlite::Connection;
use testing::PATIENCE;

use crate::rows::{admission, admitted, flushed, id, opened, options, settlement};

/// Older layouts, each with the first column that it does not have.
const OLDER: [(i64, usize); 6] = [(1, 44), (2, 53), (3, 56), (4, 58), (5, 59), (6, 61)];

/// Turns the file into one of an older layout.
fn set_back(path: &std::path::Path, layout: i64, first_added: usize) {
    let db = Connection::open(path).expect("opens");
    for (name, _) in &ledger::COLUMNS[first_added..] {
        let sql = format!("ALTER TABLE settled DROP COLUMN {name}");
        db.execute_batch(&sql).expect("a column less");
    }
    let mut of_open = vec!["mcp_method", "mcp_name", "user_issuer"];
    if layout < 3 {
        of_open.extend(["key_id", "user_id", "tags"]);
    }
    for name in of_open {
        let sql = format!("ALTER TABLE open DROP COLUMN {name}");
        db.execute_batch(&sql).expect("a column less");
    }
    db.pragma_update(None, "user_version", layout)
        .expect("an older layout");
}

/// Three rows and an exchange that stayed open, in a file of an older layout.
fn older(layout: i64, first_added: usize) -> tempfile::TempDir {
    let (running, dir) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let ledger = opened(options(running.path()));
    for n in 1..=3 {
        ledger.intake().settle(settlement(n));
    }
    admitted(&ledger.intake(), 9).expect("on disk");
    flushed(&ledger.intake()).expect("on disk");
    // As a gate that is killed leaves it.
    for entry in std::fs::read_dir(running.path()).expect("lists").flatten() {
        let to = dir.path().join(entry.file_name());
        std::fs::copy(entry.path(), to).expect("copies");
    }
    set_back(&dir.path().join("ledger.db"), layout, first_added);
    dir
}

fn who() -> Attribution {
    Attribution {
        key: Some("k1".into()),
        user: Some("ada".into()),
        tags: Some(r#"{"team":"search"}"#.into()),
    }
}

#[test]
fn a_file_of_an_older_layout_is_readable_and_migrated_by_a_writer() {
    for (layout, first_added) in OLDER {
        let dir = older(layout, first_added);
        let path = dir.path().join("ledger.db");
        let reader = Reader::open(&path).expect("an older file is readable");
        let verified = reader.verify(None).expect("a walk");
        assert_eq!((verified.rows, verified.findings.len()), (3, 0));
        let copy = dir.path().join("copy.db");
        reader.backup(&copy).expect("an older file can be copied");
        drop(reader);

        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
        assert_eq!(
            (recovered.indeterminate, recovered.lost.len()),
            (1, 0),
            "{recovered:?}"
        );
        let mut row = settlement(4);
        row.record.tokens.cache_write_1h = Some(1200);
        row.record.unconfirmed.add(70, 7);
        row.record.estimate_reason = "timed_out";
        // No answer came that could be counted.
        row.uncounted(Some("busy"), Some("late"));
        ledger.intake().settle(row);
        let mut row = settlement(5);
        row.named.who = who();
        row.uncounted(Some("busy"), Some("late"));
        row.prompt.counted = Some(40);
        row.doubt(Some("not_compared"));
        ledger.intake().settle(row);
        let mut open = admission(6);
        open.named.who = who();
        let (done, is_done) = std::sync::mpsc::channel();
        let intake = ledger.intake();
        intake.admit_durable(open, move |result| drop(done.send(result)));
        is_done.recv().expect("an answer").expect("on disk");
        // What is open has the sums that it was written with.
        let reader = Reader::open(&path).expect("opens");
        let verified = reader.verify(None).expect("a walk");
        assert_eq!((verified.rows, verified.findings.len()), (6, 0), "{layout}");
        drop(reader);
        assert!(ledger.close(PATIENCE));
        drop(opened(options(dir.path())));

        let reader = Reader::open(&path).expect("opens");
        let verified = reader.verify(None).expect("a walk");
        assert_eq!((verified.rows, verified.findings.len()), (7, 0), "{layout}");
        let mut said = Vec::new();
        let all: Result<(), ReadError> = reader.each(Period::ALL, |row| {
            said.push((
                row.id(),
                row.number("unconfirmed_tokens"),
                row.text("estimate_reason").map(str::to_owned),
                row.text("user_id").map(str::to_owned),
                row.text("tags").map(str::to_owned),
            ));
            let is = |n: u64| row.id() == id(n).to_string();
            let prompt = (is(4) || is(5)).then_some("busy");
            assert_eq!(row.text("prompt_uncounted"), prompt);
            assert_eq!(row.text("completion_uncounted"), is(5).then_some("late"));
            assert_eq!(row.text("prompt_doubt"), is(5).then_some("not_compared"));
            Ok(())
        });
        all.expect("rows");
        let of = |n: u64, unconfirmed, reason: Option<&str>, is_known: bool| {
            let known = |text: &str| is_known.then(|| text.to_owned());
            (
                id(n).to_string(),
                unconfirmed,
                reason.map(str::to_owned),
                known("ada"),
                known(r#"{"team":"search"}"#),
            )
        };
        let expected = [
            of(1, None, None, false),
            of(2, None, None, false),
            of(3, None, None, false),
            of(9, None, None, false),
            of(4, Some(77), Some("timed_out"), false),
            of(5, None, None, true),
            // Nobody saw its end, and whose it was is known.
            of(6, None, None, true),
        ];
        assert_eq!(said, expected, "layout {layout}");
    }
}

/// The users of all rows, in their order.
fn users(path: &std::path::Path) -> Vec<Option<String>> {
    let reader = Reader::open(path).expect("opens");
    let mut users = Vec::new();
    let all: Result<(), ReadError> = reader.each(Period::ALL, |row| {
        users.push(row.text("user_id").map(str::to_owned));
        Ok(())
    });
    all.expect("rows");
    users
}

#[test]
fn a_salvage_keeps_who_it_was_of_rows_and_of_what_is_open() {
    for (layout, first_added) in OLDER {
        let dir = older(layout, first_added);
        let path = dir.path().join("ledger.db");
        let salvaged = under_new_name(&path).expect("an older file is read");
        assert_eq!(
            (salvaged.settled, salvaged.open, salvaged.open_altered),
            (3, 1, 0)
        );
        drop(opened(options(dir.path())));
        assert_eq!(users(&path), [None, None, None, None]);
    }
    let (running, dir) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let ledger = opened(options(running.path()));
    let (mut row, mut open) = (settlement(1), admission(2));
    (row.named.who, open.named.who) = (who(), who());
    ledger.intake().settle(row);
    ledger.intake().admit(open);
    flushed(&ledger.intake()).expect("on disk");
    for entry in std::fs::read_dir(running.path()).expect("lists").flatten() {
        let to = dir.path().join(entry.file_name());
        std::fs::copy(entry.path(), to).expect("copies");
    }
    let path = dir.path().join("ledger.db");
    let salvaged = under_new_name(&path).expect("is read");
    assert_eq!(
        (salvaged.settled, salvaged.open, salvaged.open_altered),
        (1, 1, 0)
    );
    drop(opened(options(dir.path())));
    let ada = Some("ada".to_owned());
    assert_eq!(users(&path), [ada.clone(), ada]);
}

#[test]
fn a_layout_that_is_not_that_of_the_tables_is_damage() {
    for layout in [1, 2, 3] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = opened(options(dir.path()));
        ledger.intake().settle(settlement(1));
        assert!(ledger.close(PATIENCE));
        let db = Connection::open(dir.path().join("ledger.db")).expect("opens");
        db.pragma_update(None, "user_version", layout)
            .expect("another layout");
        drop(db);
        let refused = Ledger::open(options(dir.path())).expect_err("is refused");
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    }
    for (layout, first_added) in OLDER {
        for other in (1..=4).filter(|other| *other != layout) {
            let dir = older(layout, first_added);
            let db = Connection::open(dir.path().join("ledger.db")).expect("opens");
            db.pragma_update(None, "user_version", other)
                .expect("another layout");
            drop(db);
            let refused = Ledger::open(options(dir.path())).expect_err("is refused");
            let is_damage = matches!(refused, OpenError::Damaged { .. });
            assert!(is_damage, "{layout} said to be {other}: {refused}");
        }
    }
}

#[test]
fn a_changed_or_removed_value_of_an_added_column_is_detected() {
    for damage in [
        "UPDATE settled SET cache_write_1h_tokens = 12 WHERE seq = 2",
        "UPDATE settled SET cache_write_1h_tokens = NULL WHERE seq = 2",
        "UPDATE settled SET upstream_request_id = 'x' WHERE seq = 1",
        "UPDATE settled SET user_id = 'bob' WHERE seq = 2",
        "UPDATE settled SET user_id = 'bob' WHERE seq = 3",
        "UPDATE settled SET key_id = NULL, user_id = NULL, tags = NULL WHERE seq = 3",
        "UPDATE settled SET tags = '{}' WHERE seq = 3",
        "UPDATE settled SET prompt_uncounted = 'busy' WHERE seq = 1",
        "UPDATE open SET user_id = NULL",
        "UPDATE open SET key_id = NULL, user_id = NULL, tags = NULL",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = opened(options(dir.path()));
        ledger.intake().settle(settlement(1));
        let mut row = settlement(2);
        row.record.tokens.cache_write_1h = Some(1200);
        ledger.intake().settle(row);
        let mut row = settlement(3);
        row.named.who = who();
        ledger.intake().settle(row);
        let mut open = admission(4);
        open.named.who = who();
        ledger.intake().admit(open);
        flushed(&ledger.intake()).expect("on disk");
        assert!(ledger.close(PATIENCE));
        let path = dir.path().join("ledger.db");
        let db = Connection::open(&path).expect("opens");
        db.execute_batch(damage).expect("done");
        drop(db);
        let reader = Reader::open(&path).expect("opens");
        let verified = reader.verify(None).expect("a walk");
        assert_eq!(verified.findings.len(), 1, "{damage}: {verified:?}");
    }
}
