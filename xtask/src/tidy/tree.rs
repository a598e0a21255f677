//! The text files of the repository: those that git tracks or would track.

use std::path::Path;
use std::process::Command;

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
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .map_err(|cause| format!("git did not start: {cause}"))?;
        if !output.status.success() {
            let says = String::from_utf8_lossy(&output.stderr);
            return Err(format!("git ls-files failed: {}", says.trim()));
        }
        let paths = String::from_utf8_lossy(&output.stdout);
        let paths = paths.split('\0').filter(|path| root.join(path).is_file());
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
    fn read(root: &Path, path: &str) -> Self {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        Self {
            path: path.to_owned(),
            text,
        }
    }
}
