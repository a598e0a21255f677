//! The text files of the repository: those that git tracks or would track.

use std::path::Path;

use crate::git;

pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// Empty for a file that is not UTF-8.
    pub(crate) text: String,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let paths = git::files(root)?.into_iter();
        let paths = paths.filter(|path| root.join(path).is_file());
        Ok(Self {
            files: paths.map(|path| File::read(root, path)).collect(),
        })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

impl File {
    fn read(root: &Path, path: String) -> Self {
        let text = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        Self { path, text }
    }
}
