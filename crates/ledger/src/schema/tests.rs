//! Which links a database's name may lead through.

use std::os::unix::fs::symlink;

use rusqlite::OpenFlags;

use super::{connect, connect_to_copy, make, name_to_write, open, real};

#[test]
fn no_link_in_the_place_of_a_database_is_followed_and_links_on_the_way_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    make(&at("usage.db"), [1; 16]).expect("makes");
    symlink(at("usage.db"), at("link.db")).expect("a link");
    symlink(dir.path(), at("way")).expect("a link");
    for flags in [
        OpenFlags::SQLITE_OPEN_READ_ONLY,
        OpenFlags::SQLITE_OPEN_READ_WRITE,
    ] {
        let says = open(&at("link.db"), flags).expect_err("is a link");
        assert!(says.to_string().contains("unable to open"), "{says}");
        open(&at("way/usage.db"), flags).expect("opens");
    }
    open(&real(&at("link.db")), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the file itself");
}

#[test]
fn a_copy_is_not_written_through_a_link_that_came_after_the_file_was_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    make(&at("usage.db"), [1; 16]).expect("makes");
    std::fs::write(at("other"), "").expect("writes");
    symlink(at("other"), at("copy")).expect("a link");
    symlink(dir.path(), at("way")).expect("a link");
    for db in [connect(&at("usage.db")), connect_to_copy(&at("usage.db"))] {
        let db = db.expect("opens");
        let into = |name: &str| {
            db.execute(
                "VACUUM INTO ?1",
                [name_to_write(&at(name)).expect("a name")],
            )
        };
        into("copy").expect_err("is a link");
        assert_eq!(std::fs::read(at("other")).expect("is there"), b"");
        into("way/copied").expect("copies");
        std::fs::remove_file(at("copied")).expect("is there");
    }
}

#[test]
fn a_link_to_a_file_that_is_not_made_yet_is_that_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let made = std::fs::canonicalize(dir.path()).expect("is there");
    symlink("usage.db", dir.path().join("near")).expect("a link");
    symlink(dir.path().join("usage.db"), dir.path().join("far")).expect("a link");
    symlink("near", dir.path().join("twice")).expect("a link");
    symlink("round", dir.path().join("round")).expect("a link");
    let round = dir.path().join("round");
    assert_eq!(real(&round), round);
    for link in ["near", "far", "twice"] {
        assert_eq!(real(&dir.path().join(link)), made.join("usage.db"));
    }
    let none = dir.path().join("none");
    assert_eq!(real(&none), none);
}
