//! What root writes for a service belongs to whom the service's ledger belonged.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use ledger::{SalvageError, salvage, under_new_name};
use testing::{PATIENCE, skip};

use super::salvage::salvaged;
use crate::rows::{flushed, opened, options, settlement};

/// A user that is not this one.
const SERVICE: u32 = 4_321;
/// Its group.
const GROUP: u32 = 4_322;

/// A directory in which all belongs to a service, with a ledger whose second half is damaged; none without root.
fn of_a_service() -> Option<(tempfile::TempDir, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        skip("to give files away needs root");
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    (1..=500).for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    assert!(ledger.close(PATIENCE));
    let path = dir.path().join("ledger.db");
    let file = std::fs::OpenOptions::new().write(true).open(&path);
    let file = file.expect("opens");
    let middle = file.metadata().expect("is there").len() / 8192 * 4096;
    file.write_all_at(&[0xa5; 8192], middle).expect("writes");
    for entry in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        chown(entry.path(), Some(SERVICE), Some(GROUP)).expect("gives");
    }
    chown(dir.path(), Some(SERVICE), Some(GROUP)).expect("gives");
    Some((dir, path))
}

/// Files that are not the service's.
fn of_others(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir).expect("lists").flatten();
    let others = files.filter(|file| {
        let found = file.metadata().expect("is there");
        (found.uid(), found.gid()) != (SERVICE, GROUP)
    });
    others
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Files with their owners and lengths; without what SQLite makes to read, which it gives to the ledger's owner.
fn listed(dir: &Path) -> BTreeSet<(String, u32, u64)> {
    let files = std::fs::read_dir(dir).expect("lists").flatten();
    let one = |file: std::fs::DirEntry| {
        let found = file.metadata().expect("is there");
        let name = file.file_name().to_string_lossy().into_owned();
        (name, found.uid(), found.len())
    };
    let is_for_reading = |name: &str| name.ends_with("-shm") || name.ends_with("-wal");
    files
        .map(one)
        .filter(|(name, ..)| !is_for_reading(name))
        .collect()
}

#[test]
fn what_root_salvages_belongs_to_the_ledgers_owner() {
    for gone in [&[][..], &[".lock"], &[".head", ".lock"]] {
        let Some((dir, path)) = of_a_service() else {
            return;
        };
        for suffix in gone {
            let file = PathBuf::from(format!("{}{suffix}", path.display()));
            std::fs::remove_file(file).expect("is there");
        }
        assert!(salvaged(&path).settled > 0);
        assert_eq!(of_others(dir.path()), Vec::<String>::new(), "{gone:?}");
        // Whole by now; all of it is written anew.
        under_new_name(&path).expect("copies");
        assert_eq!(of_others(dir.path()), Vec::<String>::new(), "{gone:?}");
        let files = ["", ".head", ".lock"].map(|suffix| format!("ledger.db{suffix}"));
        assert!(files.iter().all(|file| dir.path().join(file).is_file()));
    }
}

/// Either may be the one that is wrong: a backup that root has put back, or a lock that root has made.
#[test]
fn a_lock_of_another_user_than_the_ledgers_is_refused_before_anything_is_changed() {
    for file in ["ledger.db.lock", "ledger.db"] {
        let Some((dir, path)) = of_a_service() else {
            return;
        };
        chown(dir.path().join(file), Some(0), Some(0)).expect("takes");
        let before = listed(dir.path());
        let refused = salvage(&path).expect_err("they are two users'");
        assert!(matches!(refused, SalvageError::Owners { .. }), "{refused}");
        let says = refused.to_string();
        assert!(
            says.contains("ledger.db.lock to user") && says.contains("chown -h USER"),
            "{says}"
        );
        assert_eq!(listed(dir.path()), before, "nothing was changed");
        // As it says.
        for file in ["ledger.db", "ledger.db.head", "ledger.db.lock"] {
            chown(dir.path().join(file), Some(SERVICE), Some(GROUP)).expect("gives");
        }
        assert!(salvaged(&path).settled > 0);
        assert_eq!(of_others(dir.path()), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_made_beside_a_ledger_that_is_not_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = salvage(&dir.path().join("ledger.db")).expect_err("is not there");
    assert!(matches!(refused, SalvageError::Nothing(_)), "{refused}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
}
