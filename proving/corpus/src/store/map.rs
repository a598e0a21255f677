//! A file as memory: the only place with `unsafe`.
//!
//! Invariant: the bytes are read-only here and belong to the map, which lives as long as the last slice of it.
//! Not here: what the bytes say (`open`), whether they are whole (`verify`).

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

use super::StoreError;
use crate::regular;

/// The bytes of a file. Reading them costs no copy; neither does slicing them.
///
/// While they are in use the file must stay as it is. Our own writer never touches a file that is there: it writes
/// another and renames it, which leaves the mapped one whole. Should somebody else cut the file short meanwhile, the
/// system ends the process with SIGBUS at the first byte that is gone; nothing wrong is sent. Should somebody
/// overwrite it in place, what is sent are the new bytes: check a corpus before a run, and keep it read-only.
///
/// # Errors
/// When the file cannot be opened or mapped, or is no regular file.
pub(super) fn map(path: &Path) -> Result<Bytes, StoreError> {
    let file = regular::open(path).map_err(StoreError::io(path))?;
    let length = file.metadata().map_err(StoreError::io(path))?.len();
    if length == 0 {
        return Ok(Bytes::new()); // an empty map is refused by the system
    }
    Ok(Bytes::from_owner(
        map_file(&file).map_err(StoreError::io(path))?,
    ))
}

#[expect(
    unsafe_code,
    reason = "a corpus is larger than memory, and its bytes go to sockets as they lie in the file"
)]
fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is private to reading: `Mmap` gives out `&[u8]` only, aligned to a page and as long as the file
    // was when it was mapped, and unmaps when it is dropped, which `Bytes` does after the last slice. Bytes of any
    // value are valid `u8`s. What remains is that another process could change the file meanwhile, which no call can
    // forbid; nothing here relies on two reads of a byte being equal: ranges are checked against the map's length, and
    // records are copied out before they are checked and used.
    unsafe { Mmap::map(file) }
}
