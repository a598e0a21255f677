//! Whether the files at the ledger's path are still those that were opened.
//!
//! Whoever removes or replaces an open file leaves the process with one that nobody will ever find
//! again: writes to it succeed and are lost.
//! A file that is cut short is the same file, and what was in it is gone.
//! Invariant: looks at names and never opens a file.
//! Not here: what is done about it (`writer`).

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::schema::beside;

/// The database, its log, its index and its lock, by device and inode. Without the lock's file another gate
/// could begin to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    files: [Option<(u64, u64)>; 4],
    directory: Option<(u64, u64)>,
}

const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", ".lock"];

/// What the names of a ledger's files add to its own: the database, its log and index, the head and the lock.
pub const FILES: [&str; 6] = ["", "-wal", "-shm", "-journal", ".head", ".lock"];

impl Place {
    /// Where they are now.
    pub(crate) fn of(ledger: &Path) -> Self {
        let at = |path: &Path| {
            let of = std::fs::metadata(path).ok()?;
            Some((of.dev(), of.ino()))
        };
        let directory = ledger.parent().filter(|dir| !dir.as_os_str().is_empty());
        Self {
            files: SUFFIXES.map(|suffix| at(&beside(ledger, suffix))),
            directory: at(directory.unwrap_or(Path::new("."))),
        }
    }

    /// What is no longer where it was, in words.
    pub(crate) fn gone(&self, ledger: &Path) -> Option<String> {
        let now = Self::of(ledger);
        let changed = |at: &usize| self.files[*at].is_some() && self.files[*at] != now.files[*at];
        let at = (0..SUFFIXES.len()).find(changed)?;
        let what = if now.files[at].is_none() {
            "removed"
        } else {
            "replaced by another file"
        };
        Some(format!(
            "{} was {what} while the gate writes it",
            beside(ledger, SUFFIXES[at]).display()
        ))
    }

    /// Whether the database alone is the one that was opened: log and index go when it is closed.
    pub(crate) fn is_same_database(&self, ledger: &Path) -> bool {
        self.files[0].is_some() && self.files[0] == Self::of(ledger).files[0]
    }

    /// Whether the directory is the one in which they were opened: nothing is made in another.
    pub(crate) fn is_same_directory(&self, ledger: &Path) -> bool {
        self.directory.is_some() && self.directory == Self::of(ledger).directory
    }
}

/// Bytes below which the database's file does not fall by itself: it shrinks only when the log is
/// copied into it after a commit that gave pages back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortestLength(u64);

impl ShortestLength {
    /// After a commit that left the database with this many bytes, in the file and the log together.
    /// Where they are not known, any length is right: the commit may have given pages back.
    pub(crate) fn of(ledger: &Path, committed: Option<u64>) -> Self {
        Self(length(ledger).unwrap_or(0).min(committed.unwrap_or(0)))
    }

    /// In words, when the file is shorter; `committed` are the database's bytes now, where they are
    /// known: it may have given pages back since.
    pub(crate) fn cut(self, ledger: &Path, committed: Option<u64>) -> Option<String> {
        let shortest = self.0.min(committed.unwrap_or(u64::MAX));
        let length = length(ledger).filter(|length| *length < shortest)?;
        Some(format!(
            "{} was cut short while the gate writes it: it has {length} bytes and had {shortest}",
            ledger.display()
        ))
    }
}

/// Bytes of the log, which only a checkpoint makes fewer.
pub(crate) fn log_length(ledger: &Path) -> u64 {
    length(&beside(ledger, "-wal")).unwrap_or(0)
}

fn length(file: &Path) -> Option<u64> {
    std::fs::metadata(file).ok().map(|file| file.len())
}

#[cfg(test)]
mod tests;
