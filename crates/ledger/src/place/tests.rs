//! When a file is shorter than it can be.

use super::*;

#[test]
fn a_file_that_shrinks_is_cut_only_below_what_the_last_commit_left() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let file = std::fs::File::create(&path).expect("makes it");
    // Bytes after the last commit, where they are known; whether a file of 6000 bytes is cut.
    for (committed, is_cut) in [
        (Some(20_000), true),
        (Some(10_000), true),
        (Some(6000), false),
        (None, false),
    ] {
        file.set_len(10_000).expect("grows");
        let shortest = ShortestLength::of(&path, committed);
        file.set_len(6000).expect("shrinks");
        let cut = shortest.cut(&path, None);
        assert_eq!(cut.is_some(), is_cut, "{committed:?}: {cut:?}");
    }
}
