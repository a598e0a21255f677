//! A stamp beside an installation: what was installed there, so that a second run only looks.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Stamp {
    file: PathBuf,
    content: String,
}

impl Stamp {
    /// The stamp of `parts` installed in `dir`. A directory that was moved has another stamp,
    /// because virtual environments hold absolute paths.
    pub(crate) fn new(dir: &Path, parts: &[&str]) -> Self {
        let content = format!("{}\n{}\n", dir.display(), parts.join("\n"));
        Self {
            file: dir.with_extension("stamp"),
            content,
        }
    }

    /// Whether exactly this was installed.
    pub(crate) fn is_there(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|content| content == self.content)
    }

    /// To be called last, when the installation is whole.
    pub(crate) fn put(&self) -> Result<(), String> {
        fs::write(&self.file, &self.content)
            .map_err(|cause| format!("{}: {cause}", self.file.display()))
    }
}
