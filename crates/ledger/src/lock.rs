//! One writer for each ledger.
//!
//! Invariant: the lock is the kernel's (`flock` on a file beside the ledger), so it goes with the
//! process however that ends; the pid in the file is there for people. No link is followed to it.
//! Not here: readers, which need no lock.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::owner::Owner;
use crate::plain_file;
use crate::schema::beside;

/// Held for as long as the ledger is open.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Another process writes; its pid, where it could be read.
    Held(Option<u32>),
    /// Its file cannot be opened or locked.
    File(io::Error),
}

impl Lock {
    pub(crate) fn take(ledger: &Path) -> Result<Self, Refused> {
        let path = beside(ledger, ".lock");
        let mut file = Owner::of(ledger)
            .and_then(|owner| plain_file::open_or_make(&path, 0o666, owner))
            .map_err(Refused::File)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refused::Held(pid(&mut file))),
            Err(TryLockError::Error(error)) => return Err(Refused::File(error)),
        }
        // The name is a courtesy: a full disk must not keep a ledger from recovery.
        drop(name(&mut file));
        Ok(Self(file))
    }
}

/// Writes this process's pid, unless the file has a second name, under which it may be another's.
fn name(file: &mut File) -> io::Result<()> {
    if file.metadata()?.nlink() > 1 {
        return Ok(());
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

impl Drop for Lock {
    /// Closing the file is not enough: a child process that is being started holds a copy of it for a moment.
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
