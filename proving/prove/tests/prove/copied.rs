//! A scenario's directory that was copied to where no checkout is, and a `prove` that was copied with it.
//!
//! Not here: scenarios and their faults (`campaign`), real gateways (the end-to-end tests).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::PROVE;

const SCENARIO: &str = "[engine]\npreset = 'small.toml'\n[gateway]\nsubject = 'gateway'\n\
    [corpus]\nconfig = 'corpus.toml'\n[baseline]\nusers = 2\n";
const SUBJECT: &str = "summary = 'x'\nready_seconds = 100\nfind = { cargo = 'tollgate' }\nstart = ['run', '--port', '{port}']\n";
const CORPUS: &str = "[[profile]]\nname = 'coding'\nreader = 'synthetic'\nsessions = 3\n";

/// The scenario, and `prove` in a directory of its own.
fn copied() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for name in ["scenario/gateway", "bin", "path"] {
        fs::create_dir_all(at(name)).expect("a directory");
    }
    for (name, text) in [
        ("scenario/scenario.toml", SCENARIO),
        (
            "scenario/small.toml",
            include_str!("../campaign/small.toml"),
        ),
        ("scenario/corpus.toml", CORPUS),
        ("scenario/gateway/subject.toml", SUBJECT),
    ] {
        fs::write(at(name), text).expect("a file");
    }
    let prove = at("bin/prove");
    if fs::hard_link(PROVE, &prove).is_err() {
        fs::copy(PROVE, &prove).expect("a copy");
    }
    (dir, prove)
}

fn run(dir: &Path, prove: &Path) -> Output {
    let mut command = Command::new(prove);
    command.arg("run").arg(dir.join("scenario"));
    command.arg("--out").arg(dir.join("out"));
    command.env_remove("CARGO_TARGET_DIR");
    command.env("PATH", dir.join("path")).current_dir(dir);
    command.output().expect("prove runs")
}

/// A gateway that leaves a mark, and ends.
fn leave_gateway(at: &Path, mark: &Path) {
    let text = format!("#!/bin/sh\necho \"$0 $*\" > '{}'\n", mark.display());
    fs::write(at, text).expect("a file");
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn a_copied_scenario_fails_before_its_corpus_is_built_where_no_tollgate_is() {
    let (dir, prove) = copied();
    let output = run(dir.path(), &prove);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("gateway.subject: not found: tollgate: not in a checkout, not beside this program, not on PATH"),
        "{said}"
    );
    assert!(!said.contains("building the corpus"), "{said}");
    assert!(!dir.path().join("out").exists(), "{said}");
}

#[test]
fn a_copied_scenario_finds_tollgate_beside_prove_and_else_on_path() {
    for place in ["bin", "path"] {
        let (dir, prove) = copied();
        let (gateway, mark) = (
            dir.path().join(place).join("tollgate"),
            dir.path().join("mark"),
        );
        leave_gateway(&gateway, &mark);
        let output = run(dir.path(), &prove);
        let said = String::from_utf8_lossy(&output.stderr);
        let marked = fs::read_to_string(&mark);
        let marked = marked.unwrap_or_else(|error| panic!("{place}: {error}: {said}"));
        let started = format!("{} run --port ", gateway.display());
        assert!(marked.starts_with(&started), "{marked}");
    }
}
