//! Files and environment, for `config` to read from.
//!
//! Not here: watching them (`watch`).

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use config::Sources;
use policy::secret::Secret;

/// Largest file that is kept beside a configuration, bytes: more than any that it reads but files of keys.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The process's file system and environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World;

impl Sources for World {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn is_private(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::metadata(path)?;
        Ok(found.mode() & 0o077 == 0)
    }

    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// The files of a configuration as they were when it was read.
#[derive(Debug, Default)]
pub(crate) struct Files(Mutex<HashMap<PathBuf, Secret>>);

/// Reads the world's files, and keeps them.
#[derive(Debug)]
pub(crate) struct Keeping<'f>(pub(crate) &'f Files);

impl Sources for Keeping<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let bytes = World.read(path)?;
        if bytes.len() <= KEPT_BYTES_MAX {
            let kept = Secret::new(bytes.clone());
            let mut files = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            files.insert(path.to_owned(), kept);
        }
        Ok(bytes)
    }

    fn is_private(&self, path: &Path) -> io::Result<bool> {
        World.is_private(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        World.var(name)
    }
}

/// Reads files as they were kept, but for these and for what was not kept.
#[derive(Debug)]
pub(crate) struct Kept<'f> {
    pub(crate) files: &'f Files,
    pub(crate) anew: Vec<PathBuf>,
}

impl Sources for Kept<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_anew = self.anew.iter().any(|anew| anew == path);
        match files.get(path).filter(|_| !is_anew) {
            Some(kept) => Ok(kept.expose().to_vec()),
            None => World.read(path),
        }
    }

    fn is_private(&self, path: &Path) -> io::Result<bool> {
        World.is_private(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        World.var(name)
    }
}
