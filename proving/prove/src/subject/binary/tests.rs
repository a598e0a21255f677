//! Old and fresh binaries by example.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{changed_source, words};

fn written_at(path: &Path, age_seconds: u64) {
    let file = fs::File::create(path).expect("a file");
    file.set_modified(SystemTime::now() - Duration::from_secs(age_seconds))
        .expect("a time");
}

#[test]
fn a_source_that_changed_after_the_build_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    written_at(&at("gate"), 50);
    written_at(&at("old.rs"), 100);
    written_at(&at("new one.rs"), 10);
    let list = |sources: &str| {
        let path = dir.path().display();
        let sources = sources.replace("DIR", &path.to_string());
        fs::write(at("gate.d"), format!("{path}/gate: {sources}\n")).expect("a file");
    };
    list("DIR/old.rs");
    assert_eq!(changed_source(&at("gate")), None);
    list("DIR/old.rs DIR/new\\ one.rs DIR/gone.rs");
    assert_eq!(changed_source(&at("gate")), Some(at("new one.rs")));
    fs::remove_file(at("gate.d")).expect("removed");
    assert_eq!(changed_source(&at("gate")), None);
}

#[test]
fn a_blank_may_stand_in_a_word() {
    assert_eq!(words("a b\\ c  d"), ["a", "b c", "d"]);
}
