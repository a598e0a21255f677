//! What is the same and what is not.

use std::fs;
use std::path::PathBuf;

use super::same_files;

/// Two directories, thrown away at the end.
struct Two(PathBuf);

impl Two {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("tollgate-twice-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&dir));
        for side in ["left/deep", "right/deep"] {
            fs::create_dir_all(dir.join(side)).expect("a directory");
        }
        Self(dir)
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.0.join(path), text).expect("a file");
    }

    fn compared(&self) -> Result<usize, String> {
        same_files(&self.0.join("left"), &self.0.join("right"))
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn the_first_file_that_differs_is_named_with_its_place() {
    let two = Two::new("place");
    for side in ["left", "right"] {
        two.put(&format!("{side}/a"), "same");
        two.put(&format!("{side}/deep/b"), "same");
    }
    assert_eq!(two.compared(), Ok(2));
    two.put("right/deep/b", "sane");
    let says = two.compared().expect_err("they differ");
    assert!(
        says.starts_with("twice: deep/b differs at byte 3: cmp -l "),
        "{says}"
    );
    two.put("right/deep/b", "same and more");
    let says = two.compared().expect_err("they differ");
    assert!(
        says.starts_with("twice: deep/b differs at byte 5"),
        "{says}"
    );
}

#[test]
fn a_file_of_one_side_alone_is_named() {
    let two = Two::new("alone");
    two.put("left/a", "");
    assert_eq!(
        two.compared(),
        Err("twice: a is in the first alone".to_owned())
    );
    two.put("right/a", "");
    two.put("right/deep/b", "");
    assert_eq!(
        two.compared(),
        Err("twice: deep/b is in the second alone".to_owned())
    );
}
