//! Opening files that others have named or written: regular files alone.
//!
//! Invariant: opening never waits, and what is opened has an end: no pipe, device or socket.
//! Not here: where a path may lead (`reader::files`), how much of a file is read (whoever reads it).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading.
///
/// # Errors
/// When it cannot be opened, or is something else: `InvalidInput`.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe waits for a writer unless it is told not to; of a regular file the flag changes nothing.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let says = "is no regular file: name one, or write into one what comes from elsewhere";
    Err(io::Error::new(io::ErrorKind::InvalidInput, says))
}

#[cfg(test)]
pub(crate) mod tests;
