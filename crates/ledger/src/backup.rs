//! A copy of a ledger while a gate writes it.
//!
//! The copy is what one moment's reader sees, without free room, in one file; it is checked before
//! it has its name.
//! Invariant: a file of that name is whole, or is not there. Writers do not wait.
//! Not here: how a backup is put back (docs/backup.md).

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::Connection;

use crate::read::{ReadError, Reader};
use crate::schema::{beside, connect_to_read};
use crate::verify::Verified;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] ReadError),
    /// There is a file of that name.
    #[error("{0} is there already: name another file, or remove it")]
    Exists(String),
    /// It could not be written.
    #[error("cannot write {path}: {says}")]
    Write {
        /// The backup.
        path: String,
        /// Why.
        says: String,
    },
    /// What was copied is not as it was written.
    #[error("the copy is not whole: {0}; `tollgate usage verify` says more of the ledger")]
    Damaged(String),
}

impl Reader {
    /// Copies the ledger to `target`, which must not be there, and checks the copy.
    ///
    /// # Errors
    /// When it cannot be read or written, or is not as it was written. Then there is no `target`.
    pub fn backup(&self, target: &Path) -> Result<Verified, BackupError> {
        let failed = |says: String| BackupError::Write {
            path: target.display().to_string(),
            says,
        };
        if target.exists() {
            return Err(BackupError::Exists(target.display().to_string()));
        }
        let part = beside(target, ".part");
        let made = copy_into(&self.db, &part)
            .map_err(failed)
            .and_then(|()| {
                let verified =
                    Reader::checked(connect_to_read(&part).map_err(|e| failed(e.to_string()))?)?;
                match verified.findings.first() {
                    Some(finding) => Err(BackupError::Damaged(finding.to_string())),
                    None => Ok(verified),
                }
            })
            .and_then(|verified| {
                std::fs::rename(&part, target)
                    .and_then(|()| sync_directory(target))
                    .map_err(|error| failed(error.to_string()))?;
                Ok(verified)
            });
        if made.is_err() {
            drop(std::fs::remove_file(&part));
        }
        made
    }
}

/// Copies all of a database into a file of mode 0640, synced.
pub(crate) fn copy_into(db: &Connection, file: &Path) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o640);
    // An empty file is taken for a new database.
    options.open(file).map_err(|error| error.to_string())?;
    let name = file.to_str().ok_or("its name is not Unicode")?;
    db.execute("VACUUM INTO ?1", [name])
        .map_err(|error| error.to_string())?;
    let written = OpenOptions::new().write(true).open(file);
    written
        .and_then(|file| file.sync_all())
        .map_err(|error| error.to_string())
}

/// So that a rename outlives a power loss.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    std::fs::File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}
