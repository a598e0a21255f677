//! Putting the new ledger where the damaged one was.
//!
//! Invariant: all files change their names or none does, and what is put there belongs to whom the damaged ledger
//! belonged, whoever runs this.
//! Not here: what is in the new file (`salvage`).

use std::path::{Path, PathBuf};

use super::SalvageError;
use crate::backup::sync_directory;
use crate::head_file::{self, Kept};
use crate::open::quoted;
use crate::owner::Owner;
use crate::plain_file;
use crate::schema::beside;

/// Refuses a ledger whose lock is another user's: what this process has not made is given to nobody, so that whoever
/// runs the gate could not open one of the two.
pub(super) fn refuse_two_owners(owner: Owner, path: &Path) -> Result<(), SalvageError> {
    match Owner::of(&beside(path, ".lock"))? {
        Some(lock) if lock.user != owner.user => {
            let path = path.display().to_string();
            let files = ["", ".head", ".lock"].map(|suffix| quoted(&format!("{path}{suffix}")));
            Err(SalvageError::Owners {
                path,
                ledgers: owner.user,
                locks: lock.user,
                files: files.join(" "),
            })
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes an empty file that belongs to whom the damaged one belongs to.
pub(super) fn made_for(owner: Owner, path: &Path, made: &Path) -> Result<(), SalvageError> {
    let file = plain_file::make(made, plain_file::GROUP_READS)?;
    owner.take(&file).map_err(|error| SalvageError::Owner {
        path: path.display().to_string(),
        user: owner.user,
        error,
    })
}

/// Moves what is at the path aside, and the new file there; when that fails, back.
pub(super) fn swap(path: &Path, made: &Path, now: u64) -> Result<Vec<PathBuf>, SalvageError> {
    let aside = beside(path, &format!(".damaged-{now}"));
    let mut kept = Vec::new();
    let moved = ["", "-wal"]
        .iter()
        .try_for_each(|suffix| {
            let (from, to) = (beside(path, suffix), beside(&aside, suffix));
            if from.exists() {
                std::fs::rename(&from, &to)?;
                kept.push((from, to));
            }
            Ok(())
        })
        .and_then(|()| std::fs::rename(made, path));
    if let Err(error) = moved {
        return Err(moved_back(&kept, &error));
    }
    drop(std::fs::remove_file(beside(path, "-shm")));
    Ok(kept.into_iter().map(|(_, to)| to).collect())
}

/// The files are where they were, or it is said where they are.
pub(super) fn moved_back(moved: &[(PathBuf, PathBuf)], error: &std::io::Error) -> SalvageError {
    let mut says = error.to_string();
    for (from, to) in moved.iter().rev() {
        if let Err(error) = std::fs::rename(to, from) {
            let (from, to) = (from.display(), to.display());
            says = format!("{says}; and {to} could not be moved back to {from}: {error}");
        }
    }
    SalvageError::Write(says)
}

/// Writes the new ledger's head beside it, and sees to it that the new names outlive a power loss.
pub(super) fn put(path: &Path, kept: &Kept, owner: Owner, part: &Path) -> Result<(), String> {
    let shown = path.display();
    head_file::replace(path, kept, owner, part).map_err(|error| {
        format!("{shown}.head cannot be written: {error}; it is still the old one's: remove it before the next start")
    })?;
    sync_directory(path).map_err(|error| format!("its directory cannot be synced: {error}; after a power loss the damaged files may be back in their place"))
}
