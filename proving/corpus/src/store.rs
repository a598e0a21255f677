//! A corpus on disk: a directory of three files.
//!
//! - `bodies`: the bytes of all requests, session after session, each part once.
//! - `corpus.json`: what the corpus is ([`crate::manifest`]).
//! - `index`: a header, then a record for each session and for each request, which say where the parts are.
//!
//! `index` is written last and holds the checksum of `corpus.json` and of itself, and one of each session's bytes.
//! Invariant: every byte of the three files is under a checksum, and nothing outside `bodies` is ever reached.
//! Not here: what the bytes mean (`unroll`), how a corpus is built (`build`).

mod layout;
mod map;
mod open;
mod verify;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

pub use layout::VERSION;
pub use open::{Corpus, Session, Turn};
pub use verify::Verified;
pub(crate) use writer::resumed;
pub use writer::{Lengths, StoreWriter, StoredSession, StoredTurn};

/// Bytes of an index before its records.
pub(crate) const HEADER_LENGTH: u64 = layout::HEADER_BYTES as u64;
/// Bytes of `corpus.json` at most: the names and digests of some two million sources.
pub const MOST_MANIFEST_BYTES: u64 = 512 << 20;
/// The file of all bytes.
pub const BODIES: &str = "bodies";
/// The file of records.
pub const INDEX: &str = "index";
/// The file that describes the corpus.
pub const MANIFEST: &str = "corpus.json";

/// A corpus that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{}: damaged at byte {at}: {says}; build the corpus anew or fetch it again", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong there.
        says: String,
    },
    /// Another program wrote it, or another version of this one.
    #[error("{}: {says}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What it is.
        says: String,
    },
}

impl StoreError {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { path, source }
    }

    /// Whether the corpus is there and not whole, so that trying again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Foreign { .. })
    }
}

#[cfg(test)]
mod tests;
