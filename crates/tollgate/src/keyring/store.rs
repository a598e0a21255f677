//! Changing the file of keys.
//!
//! Invariant: the file is changed whole or not at all, on disk before it is said; two that change it wait for each
//! other, ten seconds at most; nobody but its owner can read it at any time.
//! Not here: what a change is (`keyring`).

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admin::KeyFault;
use identity::keys::KeyFile;
use ledger::{Owner, plain_file};

use crate::identity::read_keys;
use crate::world::World;

/// What it means that there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// No key was made yet.
    IsEmpty,
    /// It was lost: a gate does not run without it.
    IsLost,
}

/// The mode of keys and of their lock.
const PRIVATE: u32 = 0o600;
/// Longest wait for others that change the file.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Changes the keys as `with` says; where there is no file, as `absent` says.
pub(super) fn change<T>(
    path: &Path,
    absent: Absent,
    with: impl FnOnce(&mut KeyFile) -> Result<T, KeyFault>,
) -> Result<T, KeyFault> {
    let shown = path.display();
    let cannot =
        |error: io::Error| KeyFault::Unavailable(format!("{shown} cannot be changed: {error}"));
    // Who changes it through a symbolic link waits for who does not.
    let target = target_of(path).map_err(cannot)?;
    let lock = Owner::of(&target)
        .and_then(|owner| plain_file::open_or_make(&beside(&target, ".lock"), PRIVATE, owner))
        .map_err(cannot)?;
    locked(&lock).map_err(cannot)?;
    let mut file = read(path, absent)?;
    let done = with(&mut file)?;
    replace(&target, &file.text()).map_err(cannot)?;
    Ok(done)
}

/// Reads the keys; where there is no file, as `absent` says.
pub(super) fn read(path: &Path, absent: Absent) -> Result<KeyFile, KeyFault> {
    if absent == Absent::IsEmpty && matches!(path.try_exists(), Ok(false)) {
        return Ok(KeyFile::default());
    }
    read_keys(path, &World).map_err(KeyFault::Unavailable)
}

/// Waits until nobody else changes the file.
fn locked(lock: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() < WAIT_MAX => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                let says = "another process has been changing it for more than 10 seconds";
                return Err(io::Error::new(io::ErrorKind::TimedOut, says));
            }
        }
    }
}

/// The file itself, where a symbolic link leads to it: the link stays.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        found => found,
    }
}

/// Puts a new file of the same owner in the place of the old one.
fn replace(target: &Path, text: &str) -> io::Result<()> {
    let owner = Owner::of(target)?;
    let new = beside(target, ".new");
    let mut file = plain_file::make(&new, PRIVATE)?;
    // A gate that runs as another user than who changes it has to read it.
    let written = owner
        .map_or(Ok(()), |owner| owner.take(&file))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&new, target));
    if let Err(error) = written {
        drop(std::fs::remove_file(&new));
        return Err(error);
    }
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let found = std::fs::metadata(path).expect("a file");
        found.permissions().mode() & 0o777
    }

    #[test]
    fn a_refused_change_changes_nothing_and_the_file_is_its_owners_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.jsonl");
        change(&path, Absent::IsEmpty, |_| Ok(())).expect("a file");
        assert_eq!(mode(&path), 0o600);
        std::fs::write(&path, "\n").expect("a file");
        let no = || KeyFault::Wrong("no".to_owned());
        assert_eq!(
            change(&path, Absent::IsEmpty, |_| Err::<(), _>(no())),
            Err(no())
        );
        assert_eq!(std::fs::read(&path).expect("a file"), b"\n");
        std::fs::write(&path, "damaged\n").expect("a file");
        let refused = change(&path, Absent::IsEmpty, |_| Ok(())).expect_err("damaged");
        assert!(refused.to_string().contains("line 1"), "{refused}");
        assert_eq!(std::fs::read(&path).expect("a file"), b"damaged\n");
    }

    #[test]
    fn a_file_that_was_lost_is_not_made_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.jsonl");
        let refused = change(&path, Absent::IsLost, |_| Ok(()));
        assert!(
            matches!(refused, Err(KeyFault::Unavailable(_))),
            "{refused:?}"
        );
        assert!(read(&path, Absent::IsLost).is_err() && !path.exists());
        assert_eq!(read(&path, Absent::IsEmpty), Ok(KeyFile::default()));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.jsonl");
        change(&path, Absent::IsEmpty, |_| Ok(())).expect("a file");
        let open = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, open).expect("permissions");
        let refused = change(&path, Absent::IsEmpty, |_| Ok(())).expect_err("open to others");
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let (real, link) = (dir.path().join("real"), dir.path().join("keys.jsonl"));
        change(&real, Absent::IsEmpty, |_| Ok(())).expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        change(&link, Absent::IsEmpty, |_| Ok(())).expect("a change");
        assert!(link.is_symlink() && real.is_file() && !real.is_symlink());
        // Both wait for one lock.
        let locks = std::fs::read_dir(dir.path()).expect("a directory");
        let locks = locks.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().ends_with(".lock")
        });
        assert_eq!(locks.count(), 1);
    }

    #[test]
    fn a_lock_that_is_a_link_or_a_pipe_is_refused_and_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.jsonl");
        let (lock, other) = (beside(&path, ".lock"), dir.path().join("other"));
        let refused = |what: &str| {
            let refused = change(&path, Absent::IsEmpty, |_| Ok(())).expect_err("a link");
            let says = refused.to_string();
            assert!(
                says.contains(&format!("keys.jsonl.lock is {what}; remove it")),
                "{says}"
            );
            assert!(!path.exists());
            std::fs::remove_file(&lock).expect("is there");
        };
        std::os::unix::fs::symlink(&other, &lock).expect("a link");
        refused("a link, which is not followed");
        assert!(!other.exists(), "it was followed");
        std::fs::write(&other, "canary").expect("a file");
        std::os::unix::fs::symlink(&other, &lock).expect("a link");
        refused("a link, which is not followed");
        let made = std::process::Command::new("mkfifo").arg(&lock).status();
        assert!(made.expect("runs").success());
        refused("no regular file");
        change(&path, Absent::IsEmpty, |_| Ok(())).expect("a change");
    }

    #[test]
    fn keys_and_lock_belong_to_whom_the_keys_belonged() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys.jsonl");
        change(&path, Absent::IsEmpty, |_| Ok(())).expect("a file");
        std::fs::remove_file(beside(&path, ".lock")).expect("is there");
        // Only root can give a file away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(4_321), Some(4_322)).expect("gives");
        }
        let owner = Owner::of(&path).expect("is there");
        change(&path, Absent::IsEmpty, |_| Ok(())).expect("a change");
        for file in [path.clone(), beside(&path, ".lock")] {
            assert_eq!(Owner::of(&file).expect("is there"), owner, "{file:?}");
            assert_eq!(mode(&file), 0o600);
        }
    }
}
