//! One build at a time into a directory.
//!
//! Invariant: whoever has the lock is the only one that writes to the working directory and that gives it its name. The
//! system takes the lock back however a process ends, so that none is left over.
//! Not here: what is in that directory (`journal`, `store`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::BuildError;
use crate::store::{StoreError, StoreWriter};

const LOCK: &str = "lock";

/// The working directory is this build's until this is dropped.
pub(super) struct Lock {
    file: File,
    work: PathBuf,
}

impl Lock {
    /// Makes the working directory of `out`, if it is not there, and locks it.
    pub(super) fn take(out: &Path) -> Result<Self, BuildError> {
        let work = StoreWriter::work_dir(out);
        fs::create_dir_all(&work).map_err(StoreError::io(&work))?;
        let path = work.join(LOCK);
        let mut open = OpenOptions::new();
        let open = open.write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(StoreError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&work)),
            Err(TryLockError::Error(error)) => return Err(StoreError::io(&path)(error).into()),
        }
        let lock = Self { file, work };
        if lock.is_there() {
            Ok(lock)
        } else {
            // Between opening and locking, the build that had it ended, and took the directory with it.
            Err(in_use(&lock.work))
        }
    }

    /// After the working directory became `out`: takes the lock's file out of the corpus. Should the process end before
    /// that, an empty file stays, which nobody reads.
    pub(super) fn leave(self, out: &Path) {
        let _ = fs::remove_file(out.join(LOCK));
    }

    /// Whether the file of that name is the one that is locked.
    fn is_there(&self) -> bool {
        let id = |about: fs::Metadata| (about.dev(), about.ino());
        let named = fs::metadata(self.work.join(LOCK)).map(id);
        let own = self.file.metadata().map(id);
        named.is_ok_and(|named| own.is_ok_and(|own| own == named))
    }
}

impl Drop for Lock {
    /// A build that wrote nothing leaves nothing.
    fn drop(&mut self) {
        let inside = fs::read_dir(&self.work);
        let alone = inside.is_ok_and(|inside| inside.take(2).count() == 1);
        if alone && self.is_there() {
            let _ = fs::remove_file(self.work.join(LOCK));
            let _ = fs::remove_dir(&self.work);
        }
    }
}

fn in_use(work: &Path) -> BuildError {
    BuildError::Plan(format!(
        "{} is in use by another build: wait until it has ended, or name another directory",
        work.display()
    ))
}
