//! Files that are removed or replaced while the ledger is open: treated as a full disk.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ledger::{Ledger, OpenError, Reader};
use testing::{PATIENCE, eventually, nothing_happens_for};

use crate::rows::{admitted, flushed, opened, options, settlement};

const FILES: [&str; 5] = [
    "ledger.db",
    "ledger.db-wal",
    "ledger.db-shm",
    "ledger.db.head",
    "ledger.db.lock",
];

fn with_rows(dir: &Path) -> Ledger {
    let ledger = opened(options(dir));
    (1..=100).for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    ledger
}

fn names_in(dir: &Path) -> BTreeSet<OsString> {
    let files = std::fs::read_dir(dir).expect("lists");
    files
        .map(|file| file.expect("a file").file_name())
        .collect()
}

fn noticed(ledger: &Ledger) -> String {
    eventually("it is noticed", || !ledger.intake().is_available());
    ledger.intake().unavailable().expect("is away").why
}

#[test]
fn a_removed_ledger_file_is_detected_without_a_row_saved_and_never_recreated() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let ledger = with_rows(dir.path());
    for name in FILES {
        drop(std::fs::remove_file(dir.path().join(name)));
    }
    let why = noticed(&ledger);
    assert!(why.contains("removed"), "{why}");
    admitted(&ledger.intake(), 500).expect_err("nothing is promised");
    ledger.intake().settle(settlement(101));
    assert!(!ledger.close(PATIENCE), "row 101 is in memory alone");
    assert!(!path.exists(), "no file was begun");

    let refused = Ledger::open(options(dir.path())).expect_err("is gone");
    let OpenError::Gone {
        written, rescued, ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(written.seq, 100);
    let rescued = rescued.expect("what it held was saved");
    std::fs::rename(&rescued, &path).expect("is put back");
    let ledger = opened(options(dir.path()));
    assert_eq!(ledger.head(), written);
    assert!(ledger.close(PATIENCE));
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (100, vec![]));
}

/// As `rm ledger.db*` does it: the head goes after the gate has noticed that the ledger went.
#[test]
fn a_head_that_is_removed_after_its_ledger_is_written_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = with_rows(dir.path());
    let written = ledger.head();
    std::fs::remove_file(dir.path().join("ledger.db")).expect("removes");
    noticed(&ledger);
    for name in &FILES[1..] {
        drop(std::fs::remove_file(dir.path().join(name)));
    }
    ledger.close(PATIENCE);
    let refused = Ledger::open(options(dir.path())).expect_err("is gone");
    assert!(
        matches!(&refused, OpenError::Gone { written: head, rescued: Some(_), .. } if *head == written),
        "{refused}"
    );
}

#[test]
fn a_removed_wal_or_its_index_is_detected() {
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = with_rows(dir.path());
        std::fs::remove_file(dir.path().join(name)).expect("removes");
        let why = noticed(&ledger);
        assert!(why.contains(name), "{why}");
        drop(ledger);
        // No acknowledged row is missing without an error.
        match Ledger::open(options(dir.path())) {
            Ok((ledger, _)) => assert_eq!(ledger.head().seq, 100, "{name}"),
            Err(error) => assert!(
                matches!(error, OpenError::Damaged { .. }),
                "{name}: {error}"
            ),
        }
    }
}

#[test]
fn another_ledger_in_the_place_of_ours_is_not_opened_and_nothing_is_left_beside_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let [home, away, theirs] = ["home", "away", "theirs"].map(|name| dir.path().join(name));
    for dir in [&home, &theirs] {
        std::fs::create_dir(dir).expect("a directory");
    }
    let ledger = with_rows(&home);
    assert!(with_rows(&theirs).close(PATIENCE));
    std::fs::remove_file(theirs.join("ledger.db.head")).expect("removes");
    let before = names_in(&theirs);
    std::fs::rename(&home, &away).expect("moves");
    std::fs::rename(&theirs, &home).expect("moves");
    noticed(&ledger);
    ledger.intake().settle(settlement(101));
    nothing_happens_for(Duration::from_millis(700));
    assert_eq!(names_in(&home), before);
    // Ours is found again where it was.
    std::fs::rename(&home, &theirs).expect("moves");
    std::fs::rename(&away, &home).expect("moves");
    eventually("it is back", || ledger.intake().is_available());
    flushed(&ledger.intake()).expect("is on disk");
    assert_eq!(ledger.head().seq, 101);
}

#[test]
fn nothing_is_made_in_another_directory_in_the_place_of_ours() {
    for names in [&[][..], &["notes.txt"]] {
        let dir = tempfile::tempdir().expect("a directory");
        let [home, away] = ["home", "away"].map(|name| dir.path().join(name));
        std::fs::create_dir(&home).expect("a directory");
        let ledger = with_rows(&home);
        std::fs::rename(&home, &away).expect("moves");
        std::fs::create_dir(&home).expect("a directory");
        for name in names {
            std::fs::write(home.join(name), "").expect("writes");
        }
        noticed(&ledger);
        ledger.intake().settle(settlement(101));
        nothing_happens_for(Duration::from_millis(700));
        assert_eq!(names_in(&home), names.iter().map(OsString::from).collect());
        std::fs::remove_dir_all(&home).expect("removes");
        std::fs::rename(&away, &home).expect("moves");
        eventually("it is back", || ledger.intake().is_available());
        flushed(&ledger.intake()).expect("is on disk");
        assert_eq!(ledger.head().seq, 101);
    }
}

#[test]
fn restored_files_are_written_again_and_replacements_are_not_touched() {
    let dir = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    let ledger = with_rows(dir.path());
    let away = dir.path().join("away");
    std::fs::create_dir(&away).expect("a directory");
    let moved = |from: &Path, to: &Path| {
        for name in FILES {
            drop(std::fs::rename(from.join(name), to.join(name)));
        }
    };
    moved(dir.path(), &away);
    noticed(&ledger);
    ledger.intake().settle(settlement(101));
    // Another ledger in its place is not written to.
    let theirs = opened(options(other.path()));
    theirs.intake().settle(settlement(7));
    flushed(&theirs.intake()).expect("is on disk");
    drop(theirs);
    moved(other.path(), dir.path());
    let before = std::fs::read(dir.path().join("ledger.db")).expect("reads");
    nothing_happens_for(Duration::from_millis(700));
    assert!(!ledger.intake().is_available());
    assert!(before == std::fs::read(dir.path().join("ledger.db")).expect("reads"));
    moved(dir.path(), other.path());

    moved(&away, dir.path());
    eventually("it is back", || ledger.intake().is_available());
    admitted(&ledger.intake(), 500).expect("is on disk");
    ledger.intake().withdraw(crate::rows::id(500));
    flushed(&ledger.intake()).expect("is on disk");
    assert_eq!(ledger.head().seq, 101, "what waited is there, once");
    assert!(ledger.close(PATIENCE));
    let verified = Reader::open(ledger.path())
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (101, vec![]));
}
