//! No link is followed, and nothing is waited for.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// A file that is not the ledger's, a link to it, one to nothing, a pipe and a directory.
fn made() -> (tempfile::TempDir, PathBuf, [PathBuf; 4]) {
    let dir = tempfile::tempdir().expect("a directory");
    let other = dir.path().join("other");
    std::fs::write(&other, "canary").expect("writes");
    let names = ["link", "dangling", "pipe", "directory"].map(|name| dir.path().join(name));
    symlink(&other, &names[0]).expect("links");
    symlink(dir.path().join("nothing"), &names[1]).expect("links");
    let made = std::process::Command::new("mkfifo").arg(&names[2]).status();
    assert!(made.expect("runs").success());
    std::fs::create_dir(&names[3]).expect("a directory");
    (dir, other, names)
}

#[test]
fn links_pipes_and_directories_are_refused_by_name_and_left_as_they_are() {
    let (dir, other, names) = made();
    for name in names {
        let mut writing = OpenOptions::new();
        writing.read(true).write(true).create(true).truncate(true);
        for says in [open(&mut writing, &name), read(&name)] {
            let says = says.expect_err("is refused").to_string();
            let what = if name.is_symlink() {
                "a link"
            } else {
                "no regular file"
            };
            assert!(says.contains(&*name.to_string_lossy()), "{says}");
            assert!(
                says.contains(what) && says.ends_with("; remove it"),
                "{says}"
            );
        }
        check(&name).expect_err("is refused");
        assert!(name.symlink_metadata().is_ok());
    }
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!dir.path().join("nothing").exists());
    check(&other).expect("is a file");
    check(&dir.path().join("nothing")).expect("is nothing");
}

#[test]
fn a_file_is_made_in_the_place_of_a_link() {
    let (dir, other, names) = made();
    for name in &names[..3] {
        copy(&other, name).expect("copies");
        assert!(!name.is_symlink() && name.is_file());
        assert_eq!(std::fs::read(name).expect("is there"), b"canary");
    }
    make(&names[0], GROUP_READS).expect("makes");
    assert_eq!(std::fs::read(&other).expect("is there"), b"canary");
    assert!(!dir.path().join("nothing").exists());
}
