//! The files change their names all together, or not at all.

use super::*;

#[test]
fn files_that_cannot_be_put_in_place_leave_the_old_ones_where_they_were() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    std::fs::write(&path, b"the file").expect("writes");
    std::fs::write(beside(&path, "-wal"), b"its log").expect("writes");
    // There is nothing to put there.
    let made = dir.path().join("made");
    let refused = swap(&path, &made, 7).expect_err("nothing was made");
    assert!(matches!(refused, SalvageError::Write(_)), "{refused}");
    assert_eq!(std::fs::read(&path).expect("reads"), b"the file");
    assert_eq!(
        std::fs::read(beside(&path, "-wal")).expect("reads"),
        b"its log"
    );
    let left = std::fs::read_dir(dir.path()).expect("lists").count();
    assert_eq!(left, 2);
}

#[test]
fn a_file_that_cannot_be_moved_back_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (was, is) = (dir.path().join("ledger.db"), dir.path().join("aside"));
    let failed = std::io::Error::other("no room");
    let says = moved_back(&[(was.clone(), is.clone())], &failed).to_string();
    for word in [
        "no room",
        &was.display().to_string(),
        &is.display().to_string(),
    ] {
        assert!(says.contains(word), "{word}: {says}");
    }
}
