//! Files beside the ledger, and beside other state of a gate, opened and made by name in a directory that may be
//! another user's.
//!
//! An operator's command runs as root and the directory is the service's: a link there would lead root to any file.
//! Invariant: no link at the end of a name is followed, and nothing but a regular file is opened or waited for.
//! Not here: the ledger's own path, which may be a link that the operator made (`schema::real`); directories on the
//! way, which may be; what SQLite opens beside a database, which follows no link either.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::owner::Owner;

/// The mode of what is made beside a ledger: for its owner, and to be read by the group.
pub const GROUP_READS: u32 = 0o640;

/// Opens the file as `options` say.
///
/// # Errors
/// As `open`; and where a link or something else that is no regular file has the name, in words.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Without NONBLOCK a pipe waits for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(no_file(path)),
        Err(error) => Err(check(path).err().unwrap_or(error)),
    }
}

/// Opens the file to write to it, and makes it where there is none, for `owner` if this process may.
///
/// # Errors
/// Where it cannot be opened or made, with its name; where a link or something else that is no regular file has the name,
/// in words.
pub fn open_or_make(path: &Path, mode: u32, owner: Option<Owner>) -> io::Result<File> {
    opened_or_made(path, mode, owner).map_err(|error| match error.raw_os_error() {
        Some(_) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        None => error,
    })
}

/// As [`open_or_make`], with errors that do not name the file.
pub(crate) fn opened_or_made(path: &Path, mode: u32, owner: Option<Owner>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    // Twice, as another process may make or remove it in between.
    for _ in 0..2 {
        match open(options.clone().create_new(true).mode(mode), path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(made) => {
                // Who cannot give it away can use it.
                drop(owner.map(|owner| owner.take(&made)));
                return Ok(made);
            }
        }
        match open(&mut options, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
    open(options.create(true).mode(mode), path)
}

/// Opens it to be read.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Makes a file of this mode in the place of whatever has the name, and opens it to be read and written.
///
/// # Errors
/// Where what is there cannot be removed, or the file not be made.
pub fn make(path: &Path, mode: u32) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode);
    options.open(path)
}

/// Copies a file to where `make` makes one; gives its length.
///
/// # Errors
/// As [`read`] and [`make`], and when it cannot be copied.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    io::copy(&mut read(from)?, &mut make(to, GROUP_READS)?)
}

/// Whether a regular file, or nothing, has the name.
///
/// # Errors
/// In words, where something else has.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(no_file(path)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn no_file(path: &Path) -> io::Error {
    let what = if path.is_symlink() {
        "a link, which is not followed"
    } else {
        "no regular file"
    };
    io::Error::other(format!("{} is {what}; remove it", path.display()))
}

#[cfg(test)]
mod tests;
