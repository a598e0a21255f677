//! To whom files of a gate's state belong: those beside a ledger, or the keys, to whom that belongs, whoever makes them.
//!
//! An operator's command runs as root; the service that goes on with what it wrote does not.
//! Invariant: only files that this process has made are given away. One that is there could be anybody's: who owns the
//! directory can give it any name.
//! Not here: how files are made (`plain_file`).

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub(crate) user: u32,
    group: u32,
}

impl Owner {
    /// Of the file at `path`; none where there is none.
    ///
    /// # Errors
    /// Where it cannot be told.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(Some(found.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file that was just made to them. A group that this process may not give is left out: the user can open it.
    ///
    /// # Errors
    /// When the file stays another user's.
    pub fn take(self, file: &File) -> io::Result<()> {
        let found = Self::from(file.metadata()?);
        if found == self {
            return Ok(());
        }
        match fchown(file, Some(self.user), Some(self.group)) {
            Err(error) if found.user != self.user => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl From<Metadata> for Owner {
    fn from(found: Metadata) -> Self {
        Self {
            user: found.uid(),
            group: found.gid(),
        }
    }
}
