//! A directory of the run's own, for its ledger.
//!
//! Invariant: nobody else may read it; it goes with the run unless it is to be kept. A run that is killed leaves it.
//! Not here: what is in it (`ledger`).

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory; it is removed when this is dropped.
pub(crate) struct Home {
    path: PathBuf,
    is_kept: bool,
}

impl Home {
    /// Makes one in the system's directory for temporary files.
    pub(crate) fn make(is_kept: bool) -> Result<Self, String> {
        let name = format!("tollgate-demo-{:016x}", RandomState::new().hash_one(0));
        let path = std::env::temp_dir().join(name);
        if path.to_str().is_none() {
            let says = "its name is not UTF-8; TMPDIR says where";
            return Err(format!("cannot use {}: {says}", path.display()));
        }
        let made = |path: &Path| -> io::Result<PathBuf> {
            fs::DirBuilder::new().mode(0o700).create(path)?;
            fs::canonicalize(path)
        };
        let path = made(&path).map_err(|error| {
            format!(
                "cannot make a directory for the ledger, {}: {error}; TMPDIR says where",
                path.display()
            )
        })?;
        Ok(Self { path, is_kept })
    }

    /// The ledger's file.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.path.join("usage.db")
    }

    /// Whether it is there when the run is over.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the demo's directory");
        }
    }
}
