//! Where a program lies that somebody named without a path.
//!
//! Invariant: what is found is absolute, so that it is the same from every directory.
//! Not here: what cargo built (`subject`), starting it (`process`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file of this name beside this very program, as packages lay them.
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    in_dir(own.parent()?, name)
}

/// The first of this name on `PATH`; a path that begins at the root is itself.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.is_absolute() {
        return direct.is_file().then(|| direct.to_owned());
    }
    first_of(&std::env::var_os("PATH")?, name)
}

/// The first of this name in directories as `PATH` has them.
fn first_of(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).find_map(|dir| in_dir(&dir, name))
}

fn in_dir(dir: &Path, name: &str) -> Option<PathBuf> {
    let file = dir.join(name);
    let file = file.is_file().then_some(file)?;
    std::path::absolute(file).ok()
}

#[cfg(test)]
mod tests {
    //! Directories in their order.

    use super::*;

    #[test]
    fn the_first_directory_of_path_that_has_the_file_is_meant() {
        let dir = tempfile::tempdir().expect("a directory");
        let [empty, one, two] = ["empty", "one", "two"].map(|name| dir.path().join(name));
        for dir in [&empty, &one, &two] {
            std::fs::create_dir(dir).expect("a directory");
        }
        for dir in [&one, &two] {
            std::fs::write(dir.join("x"), "").expect("a file");
        }
        let path = std::env::join_paths([&empty, &one, &two]).expect("a path");
        assert_eq!(first_of(&path, "x"), Some(one.join("x")));
        assert_eq!(first_of(&path, "y"), None);
        // A directory is no program.
        std::fs::create_dir(one.join("y")).expect("a directory");
        assert_eq!(first_of(&path, "y"), None);
    }
}
