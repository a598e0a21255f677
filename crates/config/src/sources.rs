//! What a document may refer to: files and environment variables.
//!
//! Not here: a host's files and variables (`tollgate`), what is watched ([`crate::Loaded`]).

use std::io;
use std::path::{Path, PathBuf};

/// The world that a document may refer to.
pub trait Sources {
    /// The content of a regular file of at most so many bytes.
    ///
    /// # Errors
    /// As the file system says; [`io::ErrorKind::FileTooLarge`] where it is longer.
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>>;

    /// The names of the files of a directory.
    ///
    /// # Errors
    /// As the file system says; where there is none, nobody knows.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let _unknown = directory;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The permission bits of a file, as `chmod` writes them.
    ///
    /// # Errors
    /// As the file system says; where there is none, nobody knows.
    fn mode(&self, path: &Path) -> io::Result<u32> {
        let _unknown = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// An environment variable, if it is set to text.
    fn var(&self, name: &str) -> Option<String>;
}
