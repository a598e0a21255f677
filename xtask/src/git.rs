//! How git is asked about a checkout.
//!
//! Invariant: it answers of the checkout that is named, and whoever owns that. In a container that is often another user than the one who runs us, and git
//! refuses such a directory unless it is named as safe.

use std::path::Path;
use std::process::Command;

use crate::command::succeed;

/// What a git that runs us, such as one with a hook, says of its own repository.
const OF_ONE_REPOSITORY: [&str; 6] = [
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// A git that runs in a checkout.
pub(crate) fn git(checkout: &Path) -> Command {
    let whole = checkout.canonicalize();
    let whole = whole.unwrap_or_else(|_| checkout.to_owned());
    let mut git = Command::new("git");
    git.arg("-c")
        .arg(format!("safe.directory={}", whole.display()))
        .current_dir(checkout);
    for name in OF_ONE_REPOSITORY {
        git.env_remove(name);
    }
    git
}

/// Paths of the files that git tracks or would track. What was deleted and not yet committed is among them.
pub(crate) fn files(checkout: &Path) -> Result<Vec<String>, String> {
    let listed = succeed(git(checkout).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    Ok(paths.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Command, files, git};

    /// Makes git take every directory for somebody else's.
    const ANOTHERS: &str = "GIT_TEST_ASSUME_DIFFERENT_OWNER";

    #[test]
    fn a_checkout_of_another_user_is_read() {
        let dir = std::env::temp_dir().join(format!("tollgate-git-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let made = git(&dir).args(["init", "-q"]).status().expect("git starts");
        assert!(made.success());
        fs::write(dir.join("file"), "").expect("a file");
        assert_eq!(files(&dir), Ok(vec!["file".to_owned()]));
        let asked = |mut git: Command| {
            git.args(["-C", &dir.display().to_string(), "status", "--porcelain"])
                .env_remove("GIT_DIR")
                .env(ANOTHERS, "1")
                // What this machine holds for safe is no part of the test.
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1");
            git.output().expect("git starts").status.success()
        };
        assert!(!asked(Command::new("git")), "a plain git refuses it");
        assert!(asked(git(&dir)));
        fs::remove_dir_all(&dir).expect("removed");
    }
}
