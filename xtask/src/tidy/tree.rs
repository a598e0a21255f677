//! The text files of the repository: those that git tracks or would track.

use std::path::Path;
use std::process::Command;

pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// Empty for a file that is not UTF-8.
    pub(super) text: String,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
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

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
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
