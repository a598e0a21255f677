//! What a salvage keeps, and what it records as lost.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use ledger::{
    Expected, Head, Ledger, Lost, OpenError, Options, Reader, SalvageOutcome, Salvaged, Settlement,
    salvage, under_new_name,
};
use testing::{PATIENCE, eventually};

use crate::rows::{at, flushed, in_memory, opened, options, settlement};

const ROWS: u64 = 1000;

/// Salvages a damaged ledger.
pub(crate) fn salvaged(path: &Path) -> Salvaged {
    match salvage(path).expect("salvages") {
        SalvageOutcome::Salvaged(done) => done,
        whole @ SalvageOutcome::Whole { .. } => panic!("{}: {whole:?}", path.display()),
    }
}

/// Writes rows and returns the head.
fn written(dir: &Path, rows: std::ops::RangeInclusive<u64>) -> Head {
    written_as(dir, rows.map(settlement))
}

fn written_as(dir: &Path, rows: impl Iterator<Item = Settlement>) -> Head {
    let ledger = opened(options(dir));
    rows.for_each(|row| ledger.intake().settle(row));
    flushed(&ledger.intake()).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    ledger.head()
}

fn overwrite(path: &Path, at: u64, length: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(path);
    let file = file.expect("opens");
    file.write_all_at(&vec![0xa5; length], at).expect("writes");
}

#[test]
fn salvage_loses_the_rows_of_a_damaged_page_and_continues_after_the_last_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let head = written(dir.path(), 1..=ROWS);
    let bytes = std::fs::metadata(&path).expect("is there").len();
    overwrite(&path, bytes / 8192 * 4096, 3 * 4096);
    let refused = Ledger::open(options(dir.path())).expect_err("is damaged");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let done = salvaged(&path);
    let lost: u64 = done.lost.iter().map(ledger::Lost::rows).sum();
    assert!(lost > 0 && lost < 60, "{done:?}");
    assert_eq!(done.settled + lost, ROWS, "{done:?}");
    assert!(done.kept_aside.iter().all(|kept| kept.exists()));

    // A rename loses nothing more, and is recorded too.
    let again = under_new_name(&path).expect("salvages");
    assert_eq!((again.settled, again.rows_lost), (done.settled, 0));

    let next = written(dir.path(), ROWS + 1..=ROWS + 10);
    assert_eq!(next.seq, head.seq + 10, "no number is used twice");
    let reader = Reader::open(&path).expect("opens");
    for head in [head, next] {
        let expected = Expected::parse(&head.to_string());
        let verified = reader.verify(expected).expect("reads");
        assert_eq!(verified.findings, [], "{head}");
        assert_eq!(verified.rows, done.settled + 10);
        assert_eq!(
            verified.lost.iter().map(ledger::Lost::rows).sum::<u64>(),
            lost
        );
    }
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert_eq!(ledger.stats().salvaged_lost, lost);
    assert!(
        recovered
            .lost
            .iter()
            .any(|lost| lost.to_string().contains("lost"))
    );
}

#[test]
fn rows_lost_by_a_salvage_stay_on_record_when_pruned() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=ROWS);
    let bytes = std::fs::metadata(&path).expect("is there").len();
    // Row 500, where a step of pruning ends, is among those lost.
    overwrite(&path, bytes * 9 / 20 / 4096 * 4096, bytes as usize / 10);
    let done = salvaged(&path);
    assert!(
        done.lost
            .iter()
            .any(|lost| (lost.from..=lost.to).contains(&500)),
        "{done:?}"
    );
    let ledger = opened(Options {
        keep: Some(Duration::from_secs(1)),
        clocks_agree_for: Duration::ZERO,
        ..options(dir.path())
    });
    // Age is reckoned from the newest row.
    ledger.intake().settle(settlement(ROWS + 10_000));
    eventually("all but that is pruned", || {
        let reader = Reader::open(&path).expect("opens");
        reader.after(0, 10).expect("reads").len() == 1
    });
    assert!(ledger.close(PATIENCE));
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (1, vec![]));
    assert!(!verified.lost.is_empty());
}

#[test]
fn an_open_ledger_is_not_salvaged() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let refused = salvage(ledger.path()).expect_err("it is open").to_string();
    assert!(
        refused.contains(&std::process::id().to_string()),
        "{refused}"
    );
}

/// The bytes of all files in a directory except the lock and files that any reader leaves behind.
fn all_files(dir: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("lists")
        .flatten()
        .map(|entry| {
            (
                entry.file_name(),
                std::fs::read(entry.path()).expect("reads"),
            )
        })
        .filter(|(name, bytes)| {
            let name = name.to_string_lossy();
            !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn an_intact_ledger_is_not_salvaged() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let head = written(dir.path(), 1..=100);
    let before = all_files(dir.path());
    let outcome = salvage(&path).expect("has nothing to do");
    assert_eq!(outcome, SalvageOutcome::Whole { rows: 100, head });
    assert!(before == all_files(dir.path()), "it was changed");
    // A new name is for a ledger whose old name has another history in Postgres.
    let done = under_new_name(&path).expect("copies");
    assert_eq!((done.settled, done.rows_lost), (100, 0));
    assert!(done.kept_aside[0].exists());
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert_eq!((ledger.head(), recovered.lost.len()), (head, 1));
}

#[test]
fn rows_lost_by_two_salvages_are_counted_once_and_reported_with_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=ROWS);
    let bytes = std::fs::metadata(&path).expect("is there").len();
    overwrite(&path, bytes / 8192 * 4096, 3 * 4096);
    let first = salvaged(&path);
    assert!(first.rows_lost > 0, "{first:?}");
    // The rows on both sides are lost too, so one range includes rows that were lost before.
    let (from, to) = (first.lost[0].from, first.lost.last().expect("one").to);
    let db = rusqlite::Connection::open(&path).expect("opens");
    let around = [from - 10, to + 10];
    let sql = "DELETE FROM settled WHERE seq BETWEEN ?1 AND ?2";
    assert!(db.execute(sql, around).expect("writes") > 0);
    drop(db);
    let second = salvaged(&path);
    assert!(second.rows_lost > 0, "{second:?}");
    let all = first.rows_lost + second.rows_lost;
    assert_eq!(second.settled + all, ROWS, "{first:?}, {second:?}");
    let verified = Reader::open(&path).and_then(|reader| reader.verify(None));
    let verified = verified.expect("reads");
    assert_eq!(verified.findings, []);
    assert_eq!(Lost::sum(&verified.lost), all, "{:?}", verified.lost);
    let (ledger, _) = Ledger::open(options(dir.path())).expect("opens");
    assert_eq!(ledger.stats().salvaged_lost, all);
    drop(ledger);
    let by_salvage = Lost::by_salvage(&verified.lost);
    assert_eq!(by_salvage.len(), 2, "{by_salvage:?}");
    let counts: Vec<u64> = by_salvage.iter().map(|salvaged| salvaged.rows).collect();
    assert_eq!(
        counts,
        [first.rows_lost, second.rows_lost],
        "{by_salvage:?}"
    );
    let says: Vec<String> = by_salvage.iter().map(ToString::to_string).collect();
    for (says, rows) in says.iter().zip(counts) {
        let expected = format!("Z: {rows} rows were lost: ");
        assert!(
            says.starts_with("salvaged 20") && says.contains(&expected),
            "{says}"
        );
    }
}

/// Interior pages of the tree of settled rows, the root first.
fn branches(bytes: &[u8], root: usize) -> Vec<usize> {
    let four = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
    let mut pages = vec![root];
    let mut at = 0;
    while at < pages.len() {
        let page = (pages[at] - 1) * PAGE;
        let cells = usize::from(u16::from_be_bytes([bytes[page + 3], bytes[page + 4]]));
        let pointer = |n: usize| {
            usize::from(u16::from_be_bytes([
                bytes[page + 12 + 2 * n],
                bytes[page + 13 + 2 * n],
            ]))
        };
        let children = (0..cells)
            .map(|n| four(page + pointer(n)))
            .chain([four(page + 8)]);
        let inner = children.filter(|child| bytes[(child - 1) * PAGE] == 0x05);
        pages.extend(inner.collect::<Vec<_>>());
        at += 1;
    }
    pages
}

const PAGE: usize = 4096;

/// The database reads some of these without an error and returns fewer rows.
#[test]
fn rows_lost_with_an_interior_page_are_reported_as_lost() {
    const MANY: u64 = 1000;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    // One to a page, so that few rows make a tree with interior pages.
    let long = |n| {
        let mut row = settlement(n);
        let text: Box<str> = format!("{n}{}", "é".repeat(500)).into();
        row.endpoint = Some(text.clone());
        row.named.backend = Some(text.clone());
        row.record.id = text;
        row
    };
    written_as(dir.path(), (1..=MANY).map(long));
    let bytes = std::fs::read(&path).expect("reads");
    let head = std::fs::read(dir.path().join("ledger.db.head")).expect("reads");
    let db = rusqlite::Connection::open(&path).expect("opens");
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'settled'";
    let root = db
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .expect("is there");
    drop(db);
    let branches = branches(&bytes, usize::try_from(root).expect("fits"));
    assert!(branches.len() > 2, "{branches:?}");
    let (mut losses, mut silent) = (BTreeSet::new(), 0);
    for branch in [branches[0], branches[1], branches[branches.len() - 1]] {
        let at = (branch - 1) * PAGE;
        let cells = u16::from_be_bytes([bytes[at + 3], bytes[at + 4]]);
        let other = branches
            .iter()
            .find(|page| **page != branch)
            .expect("another");
        let leaf = (0..bytes.len() / PAGE)
            .rev()
            .find(|page| bytes[page * PAGE] == 0x0d);
        let leaf = leaf.expect("a leaf") * PAGE;
        let half = (cells / 2).to_be_bytes();
        let cases: [(&str, usize, &[u8]); 7] = [
            ("garbage", 0, &[0xa5; 200]),
            ("zeros", 0, &[0; PAGE]),
            ("an empty leaf", 0, &[0x0d, 0, 0, 0, 0, 0x10, 0, 0]),
            ("only its last child", 3, &[0, 0]),
            ("half of its children", 3, &half),
            (
                "another branch",
                0,
                &bytes[(other - 1) * PAGE..other * PAGE],
            ),
            ("a leaf", 0, &bytes[leaf..leaf + PAGE]),
        ];
        for (what, within, with) in cases {
            for has_head in [true, false] {
                let what = format!("page {branch} is {what}, with a head: {has_head}");
                let dir = in_memory();
                let path = dir.path().join("ledger.db");
                let mut damaged = bytes.clone();
                damaged[at + within..at + within + with.len()].copy_from_slice(with);
                std::fs::write(&path, damaged).expect("writes");
                if has_head {
                    std::fs::write(dir.path().join("ledger.db.head"), &head).expect("writes");
                }
                Ledger::open(options(dir.path())).expect_err(&what);
                let done = salvaged(&path);
                assert_eq!(done.settled + done.rows_lost, MANY, "{what}: {done:?}");
                assert!(done.rows_lost > 0, "{what}: {done:?}");
                losses.insert(done.rows_lost);
                silent += u64::from(done.faults.is_empty());
                let verified = Reader::open(&path).and_then(|reader| reader.verify(None));
                let verified = verified.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(
                    (verified.rows, verified.findings),
                    (done.settled, vec![]),
                    "{what}"
                );
            }
        }
    }
    assert!(losses.len() > 2, "{losses:?}");
    assert!(silent > 0, "the database told of each");
}

/// Such a row looks like one that was never admitted, also in the new file.
#[test]
fn an_open_exchange_without_a_required_value_is_reported_as_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=10);
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
        .expect("is set");
    db.pragma_update(None, "writable_schema", true)
        .expect("is set");
    let renamed = |from: &str, to: &str| {
        let sql = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = 'open'";
        assert_eq!(db.execute(sql, [from, to]).expect("writes"), 1);
        let version: i64 = db
            .query_row("PRAGMA schema_version", [], |row| row.get(0))
            .expect("a number");
        db.pragma_update(None, "schema_version", version + 1)
            .expect("writes");
    };
    let (strict, loose) = (
        "reserved_tokens INTEGER NOT NULL",
        "reserved_tokens INTEGER",
    );
    renamed(strict, loose);
    let sql = "INSERT INTO open (id, started_unix_ms, request_id) VALUES (x'01', 1, 'r')";
    db.execute(sql, []).expect("writes");
    renamed(loose, strict);
    drop(db);
    let refused = Ledger::open(options(dir.path())).expect_err("is damaged");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let done = salvaged(&path);
    assert_eq!((done.settled, done.open, done.open_altered), (10, 0, 1));
    Ledger::open(options(dir.path())).expect("opens");
}

/// Without a head file, like a backup, and with its tables on other pages than in a new ledger.
#[test]
fn salvage_of_a_truncated_backup_keeps_its_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=ROWS);
    let copy = dir.path().join("copy.db");
    let reader = Reader::open(&path).expect("opens");
    reader.backup(&copy).expect("copies");
    for pages in [1, 20] {
        let cut = dir.path().join(format!("cut-{pages}.db"));
        std::fs::copy(&copy, &cut).expect("copies");
        let file = std::fs::OpenOptions::new().write(true).open(&cut);
        let file = file.expect("opens");
        let length = file.metadata().expect("is there").len();
        file.set_len(length - pages * 4096).expect("cuts");
        let done = salvaged(&cut);
        assert!(done.settled > ROWS / 2, "{pages}: {done:?}");
        assert_eq!(done.settled + done.rows_lost, ROWS, "{pages}: {done:?}");
        let (ledger, _) = Ledger::open(at(cut.clone())).expect("opens");
        assert_eq!(ledger.head().seq, ROWS.cast_signed());
    }
}

#[test]
fn a_ledger_that_cannot_be_salvaged_is_not_modified() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=100);
    std::fs::remove_file(dir.path().join("ledger.db.head")).expect("is there");
    let length = std::fs::metadata(&path).expect("is there").len();
    let length = usize::try_from(length).expect("is short");
    overwrite(&path, 4096, length - 4096);
    let before = std::fs::read(&path).expect("reads");
    let refused = salvage(&path).expect_err("there is nothing to salvage");
    assert!(
        matches!(refused, ledger::SalvageError::Unreadable { .. }),
        "{refused}"
    );
    assert!(before == std::fs::read(&path).expect("reads"));
    let files = std::fs::read_dir(dir.path()).expect("lists");
    let names: Vec<_> = files.flatten().map(|file| file.file_name()).collect();
    let is_left = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.contains("salvaged") || name.contains("damaged")
    };
    assert!(!names.iter().any(is_left), "{names:?}");
}
