//! Manifests good and bad.

use std::path::{Path, PathBuf};

use super::{Find, Places, Subject, SubjectError, parse};

fn fault(text: &str) -> String {
    parse(Path::new("gateways/x/subject.toml"), text)
        .expect_err("a fault")
        .to_string()
}

#[test]
fn a_typing_error_names_the_file_and_the_field() {
    let says = fault("summary = 'x'\nfind = { path = ['x'] }\nstart = ['-c']\nreddy_seconds = 3\n");
    assert!(
        says.starts_with("gateways/x/subject.toml: ") && says.contains("reddy_seconds"),
        "{says}"
    );
    let says = fault("summary = 'x'\nfind = { path = ['x'] }\nstart = '-c'\n");
    assert!(
        says.contains("start = '-c'") && says.contains("line 3"),
        "{says}"
    );
    let says = fault("summary = 'x'\nfind = { package = 'x' }\nstart = ['-c']\n");
    assert!(says.contains("package") && says.contains("cargo"), "{says}");
}

#[test]
fn fields_that_make_no_sense_together_are_refused() {
    assert!(fault("summary = 'x'\nfind = { path = [] }\nstart = ['a']").contains("`find.path`"));
    assert!(fault("summary = 'x'\nfind = { cargo = 'x' }").contains("`start`"));
    assert!(fault("summary = 'x'\nfind = 'upstream'\nstart = ['a']").contains("`start`"));
}

#[test]
fn every_placeholder_is_filled_in_files_and_arguments() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("x"), dir.path().join("run"));
    std::fs::create_dir(&from).expect("a directory");
    let toml =
        "summary = 'x'\nfind = { path = ['sh'] }\nstart = ['-c', '{dir}/x.conf', '{cores}']\n";
    std::fs::write(from.join("subject.toml"), toml).expect("a file");
    std::fs::write(
        from.join("x.conf"),
        "listen {port} {admin_port}; up {upstream_port}; {other}",
    )
    .expect("a file");
    let subjects = Subject::load_all(dir.path(), &[]).expect("one subject");
    assert_eq!(subjects.len(), 1);
    let places = Places {
        port: 1,
        admin_port: 2,
        upstream_port: 3,
        cores: 4,
        dir: to.clone(),
    };
    let args = subjects[0].render(&places).expect("files");
    assert_eq!(
        args,
        [
            "-c".into(),
            to.join("x.conf").display().to_string(),
            "4".into()
        ]
    );
    let conf = std::fs::read_to_string(to.join("x.conf")).expect("a file");
    assert_eq!(conf, "listen 1 2; up 3; {other}");
    assert!(!to.join("subject.toml").exists());
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("one")).expect("a directory");
    std::fs::write(
        dir.path().join("one/subject.toml"),
        "summary = 'x'\nfind = 'upstream'",
    )
    .expect("a file");
    let error = Subject::load_all(dir.path(), &["two".into()]).expect_err("no such subject");
    assert!(
        matches!(&error, SubjectError::Unknown { known, .. } if known == "one"),
        "{error}"
    );
}

#[test]
fn a_program_that_is_missing_says_how_to_get_it() {
    let manifest = "summary = 'x'\ninstall = 'apt-get install x'\nfind = { path = ['no-such-program-x'] }\nstart = ['-c']";
    let manifest = parse(Path::new("x"), manifest).expect("a manifest");
    let subject = Subject {
        name: "x".into(),
        dir: PathBuf::from("/"),
        manifest,
    };
    assert!(
        subject
            .program()
            .expect_err("missing")
            .to_string()
            .contains("apt-get install x")
    );
    let mut ours = subject;
    ours.manifest.find = Find::Cargo("no-such-binary".into());
    let says = ours.program().expect_err("missing").to_string();
    assert!(
        says.contains("cargo build --release -p no-such-binary"),
        "{says}"
    );
}
