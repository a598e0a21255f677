//! Walks end, keep their order, and name what is wrong.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::regular::tests::pipe_at;

#[test]
fn a_walk_keeps_the_order_of_names_and_follows_no_link_to_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("b/inner")).unwrap();
    for file in ["b/2.json", "b/inner/1.JSON", "a.json.gz", "c.txt"] {
        fs::write(root.join(file), "{}").unwrap();
    }
    std::os::unix::fs::symlink(root, root.join("b/loop")).unwrap();
    std::os::unix::fs::symlink(root.join("b/2.json"), root.join("z.json")).unwrap();
    let found = walk("toolbench", &[root.to_owned()], &[".json"]).unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["a.json.gz", "b/2.json", "b/inner/1.JSON", "z.json"]);
}

#[test]
fn a_path_without_files_and_a_path_that_is_not_there_are_errors_with_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let none = walk("atif", &[dir.path().to_owned()], &[".json"]).unwrap_err();
    assert!(
        none.to_string().starts_with("no atif file (.json) in "),
        "{none}"
    );
    let gone = walk("atif", &[dir.path().join("gone")], &[".json"]).unwrap_err();
    assert!(gone.to_string().contains("/gone: "), "{gone}");
}

#[test]
fn a_walk_ends_at_its_depth() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("d/".repeat(40))).unwrap();
    let deep = walk("atif", &[dir.path().to_owned()], &[".json"]).unwrap_err();
    assert!(
        deep.to_string()
            .ends_with("lies more than 32 directories deep")
    );
}

#[test]
fn compressed_files_are_read_whatever_their_names_and_damaged_ones_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.json");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"some text, some text").unwrap();
    let bytes = encoder.finish().unwrap();
    fs::write(&path, &bytes).unwrap();
    assert_eq!(whole(&path, 100).unwrap().unwrap(), b"some text, some text");
    assert_eq!(whole(&path, 19).unwrap(), None);
    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    assert!(whole(&path, 100).is_err());
}

#[test]
fn no_named_path_leads_out_of_its_root() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("data"), dir.path().join("secret.png"));
    fs::create_dir_all(root.join("a")).unwrap();
    fs::write(root.join("a/b.png"), "").unwrap();
    fs::write(&outside, "").unwrap();
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    link(&outside, "out.png");
    link(Path::new("../secret.png"), "up.png");
    link(dir.path(), "dir");
    link(Path::new("a/b.png"), "in.png");
    let real = fs::canonicalize(root.join("a/b.png")).unwrap();
    for named in ["a/./b.png", "in.png", "dir/data/a/b.png"] {
        assert_eq!(
            below(&root, named).unwrap().as_ref(),
            Some(&real),
            "{named}"
        );
    }
    for named in [
        "../a",
        "a/../../b",
        "/etc/passwd",
        "out.png",
        "up.png",
        "dir/secret.png",
    ] {
        assert_eq!(below(&root, named).unwrap(), None, "{named}");
    }
    assert!(below(&root, "a/none.png").is_err());
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe.json");
    pipe_at(&pipe);
    for path in [&*pipe, Path::new("/dev/zero"), dir.path()] {
        let error = whole(path, 100).unwrap_err().to_string();
        assert!(error.contains("is no regular file"), "{error}");
    }
}

#[test]
fn sessions_are_named_by_directory_and_file() {
    assert_eq!(
        short_name(Path::new("/x/G1_answer/7_a.b.json.gz")),
        "G1_answer/7_a.b"
    );
    assert_eq!(
        short_name(Path::new("log.jsonl")),
        "/log".trim_start_matches('/')
    );
}
