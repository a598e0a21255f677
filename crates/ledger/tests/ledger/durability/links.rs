//! No link beside the ledger is followed: who owns its directory would lead an operator who is root to any file.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ledger::{Ledger, OpenError, SalvageError, SalvageOutcome, salvage, under_new_name};
use testing::PATIENCE;

use crate::rows::{flushed, opened, options, settlement};

/// A ledger that is closed, and a file elsewhere that is not its own.
fn written() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    (1..=100).for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    let other = dir.path().join("other");
    std::fs::write(&other, "canary").expect("writes");
    let path = dir.path().join("ledger.db");
    (dir, path, other)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Puts a link in the place of a file beside the ledger.
fn linked(path: &Path, suffix: &str, to: &Path) {
    let link = beside(path, suffix);
    drop(std::fs::remove_file(&link));
    symlink(to, link).expect("links");
}

#[test]
fn a_lock_that_is_a_link_is_refused_and_not_followed() {
    let (dir, path, other) = written();
    let nothing = dir.path().join("nothing");
    for to in [&other, &nothing] {
        linked(&path, ".lock", to);
        let refused = Ledger::open(options(dir.path())).expect_err("a link");
        assert!(matches!(refused, OpenError::Disk { .. }), "{refused}");
        let says = refused.to_string();
        assert!(
            says.contains("ledger.db.lock is a link, which is not followed; remove it"),
            "{says}"
        );
        salvage(&path).expect_err("a link");
        under_new_name(&path).expect_err("a link");
    }
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!nothing.exists());
    std::fs::remove_file(beside(&path, ".lock")).expect("is there");
    opened(options(dir.path()));
}

#[test]
fn a_lock_with_a_second_name_is_locked_and_not_written() {
    let (dir, path, other) = written();
    let lock = beside(&path, ".lock");
    std::fs::remove_file(&lock).expect("is there");
    std::fs::hard_link(&other, &lock).expect("links");
    let ledger = opened(options(dir.path()));
    assert!(matches!(
        Ledger::open(options(dir.path())),
        Err(OpenError::Locked { .. })
    ));
    drop(ledger);
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
}

#[test]
fn a_head_that_is_a_link_is_reported_and_not_followed() {
    let (dir, path, other) = written();
    let nothing = dir.path().join("nothing");
    for to in [&other, &nothing] {
        linked(&path, ".head", to);
        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
        assert!(recovered.without_head);
        ledger.intake().settle(settlement(101));
        flushed(&ledger.intake()).expect("is on disk");
        let fault = ledger.head_fault().expect("it is not written");
        assert!(
            fault.contains("ledger.db.head is a link") && fault.contains("remove it"),
            "{fault}"
        );
        assert!(ledger.close(PATIENCE));
        // Before anything is moved.
        let refused = under_new_name(&path).expect_err("a link");
        assert!(
            matches!(&refused, SalvageError::Write(says) if says.contains("ledger.db.head is a link")),
            "{refused}"
        );
    }
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!nothing.exists());
    std::fs::remove_file(beside(&path, ".head")).expect("is there");
    std::fs::hard_link(&other, beside(&path, ".head")).expect("links");
    let ledger = opened(options(dir.path()));
    let fault = ledger.head_fault().expect("it is not written");
    assert!(fault.contains("hard link"), "{fault}");
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
}

#[test]
fn a_backup_follows_no_link_at_its_working_name() {
    let (dir, path, other) = written();
    let target = dir.path().join("copy.db");
    for to in [&other, &dir.path().join("nothing")] {
        drop(std::fs::remove_file(&target));
        linked(&target, ".part", to);
        let reader = ledger::Reader::open(&path).expect("opens");
        assert_eq!(reader.backup(&target).expect("copies").rows, 100);
        assert!(!target.is_symlink() && target.is_file());
    }
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!dir.path().join("nothing").exists());
}

/// A salvage that went on without its log would lose the rows in it.
#[test]
fn a_ledger_whose_log_or_index_is_a_link_is_not_salvaged() {
    let (dir, path, other) = written();
    let before = std::fs::read(&path).expect("is there");
    for suffix in ["-wal", "-shm", "-journal"] {
        for to in [&other, &dir.path().join("nothing")] {
            linked(&path, suffix, to);
            for refused in [salvage(&path).err(), under_new_name(&path).err()] {
                let says = refused.expect("a link").to_string();
                let named =
                    format!("ledger.db{suffix} is a link, which is not followed; remove it");
                assert!(says.contains(&named), "{says}");
            }
            std::fs::remove_file(beside(&path, suffix)).expect("is there");
        }
    }
    assert_eq!(std::fs::read(&path).expect("is there"), before);
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!dir.path().join("nothing").exists());
    linked(&path, "-wal", &other);
    let refused = Ledger::open(options(dir.path())).expect_err("a link");
    assert!(
        refused.to_string().contains("ledger.db-wal is a link"),
        "{refused}"
    );
}

/// The operator's own links: to the directory, and to the file.
#[test]
fn a_ledger_reached_through_links_is_opened_and_salvaged_where_it_is() {
    let (dir, path, _) = written();
    let away = tempfile::tempdir().expect("a directory");
    let (to_dir, to_file) = (away.path().join("dir"), away.path().join("usage.db"));
    symlink(dir.path(), &to_dir).expect("links");
    symlink(&path, &to_file).expect("links");
    for through in [to_dir.join("ledger.db"), to_file] {
        let (ledger, recovered) = Ledger::open(ledger::Options::at(&through)).expect("opens");
        assert!(!recovered.is_new && !recovered.without_head);
        assert_eq!(ledger.head_fault(), None);
        assert!(ledger.close(PATIENCE));
        drop(ledger);
        let outcome = salvage(&through).expect("is whole");
        assert!(matches!(outcome, SalvageOutcome::Whole { rows: 100, .. }));
        assert_eq!(under_new_name(&through).expect("copies").settled, 100);
        assert!(path.is_file() && !path.is_symlink());
    }
    assert_eq!(std::fs::read_dir(away.path()).expect("lists").count(), 2);
}
