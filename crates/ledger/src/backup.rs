//! A copy of a ledger while a gate writes it.
//!
//! The copy is what one moment's reader sees, without free room, in one file; it is checked before
//! it has its name.
//! Invariant: a file of that name is whole, or is not there. Writers do not wait. Whose files and batches are is copied before the rows: a batch
//! that is settled in between is asked about once more after a restore, and its row is there.
//! Not here: how a backup is put back (docs/backup.md).

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use crate::batches;
use crate::damage::is_damage;
use crate::plain_file;
use crate::read::{ReadError, Reader};
use crate::schema::{beside, cannot_open, connect_to_copy, connect_to_read, name_to_write};
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
    #[error(
        "{ledger} is not as it was written, and no copy was made: {finding}. See what else is wrong: tollgate usage --ledger {ledger} verify. Then put an earlier backup back, or keep what is whole: tollgate usage --ledger {ledger} salvage"
    )]
    Damaged {
        /// The ledger.
        ledger: String,
        /// What was found first.
        finding: String,
    },
}

impl Reader {
    /// Copies what stands beside the ledger of files and batches to beside `target`, where there is such a file; to be called before
    /// [`Reader::backup`].
    ///
    /// # Errors
    /// When it cannot be read or written. Then there is no copy.
    pub fn backup_batches(&self, target: &Path) -> Result<Option<PathBuf>, BackupError> {
        let Some(from) = batches::file_of(&self.path) else {
            return Ok(None);
        };
        let target = beside(target, batches::SUFFIX);
        if target.exists() {
            return Err(BackupError::Exists(target.display().to_string()));
        }
        let part = beside(&target, ".part");
        let copied = connect_to_copy(&from).and_then(|db| copy_into(&db, &part));
        let named = copied
            .map_err(|error| failed(&target, &error))
            .and_then(|()| {
                std::fs::rename(&part, &target)
                    .and_then(|()| sync_directory(&target))
                    .map_err(|error| failed(&target, &error))
            });
        if named.is_err() {
            drop(std::fs::remove_file(&part));
        }
        named.map(|()| Some(target))
    }

    /// Copies the ledger to `target`, which must not be there, and checks the copy.
    ///
    /// # Errors
    /// When it cannot be read or written, or is not as it was written. Then there is no `target`.
    pub fn backup(&self, target: &Path) -> Result<Verified, BackupError> {
        if target.exists() {
            return Err(BackupError::Exists(target.display().to_string()));
        }
        let part = beside(target, ".part");
        let made = self.copied(&part, target).and_then(|verified| {
            std::fs::rename(&part, target)
                .and_then(|()| sync_directory(target))
                .map_err(|error| failed(target, &error))?;
            Ok(verified)
        });
        if made.is_err() {
            drop(std::fs::remove_file(&part));
        }
        made
    }

    fn copied(&self, part: &Path, target: &Path) -> Result<Verified, BackupError> {
        // Not this reader's connection: of an older layout it has views under the names of the tables.
        let copied = connect_to_copy(&self.path).and_then(|db| copy_into(&db, part));
        let met = match copied {
            Err(error) if is_damage(&error) || is_doubled(&error) => error.to_string(),
            Err(error) => return Err(failed(target, &error)),
            Ok(()) => {
                let copy = connect_to_read(part).map_err(|error| failed(target, &error))?;
                let verified = Reader::checked(copy)?;
                match verified.findings.first() {
                    Some(finding) => finding.to_string(),
                    None => return Ok(verified),
                }
            }
        };
        let findings = self.verify(None)?.findings;
        Err(match findings.first() {
            Some(finding) => BackupError::Damaged {
                ledger: self.path.display().to_string(),
                finding: finding.to_string(),
            },
            None => {
                let says = format!(
                    "the ledger is whole and its copy is not ({met}): look at the disk that the copy is on"
                );
                failed(target, &says)
            }
        })
    }
}

/// Whether an index would have one key twice, which no whole ledger has.
fn is_doubled(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

fn failed(target: &Path, says: &impl ToString) -> BackupError {
    BackupError::Write {
        path: target.display().to_string(),
        says: says.to_string(),
    }
}

/// Copies all of a database into a file of mode 0640, synced.
pub(crate) fn copy_into(db: &Connection, file: &Path) -> rusqlite::Result<()> {
    let written = |error: io::Error| cannot_open(file, &error);
    // An empty file is taken for a new database.
    let copy = plain_file::make(file, plain_file::GROUP_READS).map_err(written)?;
    db.execute("VACUUM INTO ?1", [name_to_write(file)?])?;
    copy.sync_all().map_err(written)
}

/// So that a rename outlives a power loss.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    std::fs::File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}
