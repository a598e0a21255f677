//! Completions and manual pages are what shells and `man` take without a word.

use std::path::Path;
use std::process::Command;

use crate::harness::tollgate;

/// Runs a program and gives what it printed; it must succeed, and complain of nothing.
fn said(program: &str, arguments: &[&str]) -> String {
    let ended = Command::new(program).args(arguments).output();
    let ended = ended.unwrap_or_else(|cause| panic!("{program}: {cause}"));
    let complained = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{program}: {complained}");
    assert_eq!(complained, "", "{program} {arguments:?}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

#[test]
fn bash_completes_verbs_and_options() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let told = tollgate(Path::new("."), &["completions", "bash"], &[]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let file = dir.path().join("tollgate");
    std::fs::write(&file, told.out).expect("a file");
    let file = file.to_str().expect("a path");
    for (line, expected) in [
        ("tollgate dem", "demo"),
        ("tollgate usage sal", "salvage"),
        ("tollgate completions fi", "fish"),
        ("tollgate demo --print", "--print-config"),
    ] {
        let (at, words) = (line.split(' ').count() - 1, line);
        let script = format!(
            "source '{file}'; COMP_WORDS=({words}); COMP_CWORD={at}; _tollgate tollgate \
             \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        assert_eq!(said("bash", &["-c", &script]).trim(), expected, "{line}");
    }
}

#[test]
fn a_shell_that_is_not_known_is_said_with_those_that_are() {
    let ended = tollgate(Path::new("."), &["completions", "tcsh"], &[]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("bash, elvish, fish, powershell, zsh"),
        "{}",
        ended.err
    );
}

#[test]
fn manual_pages_are_written_one_for_each_verb() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let told = tollgate(dir.path(), &["man", "share/man1"], &[]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let pages = std::fs::read_dir(dir.path().join("share/man1")).expect("a directory");
    let pages: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    assert!(
        told.out.starts_with(&format!("{} pages", pages.len())),
        "{}",
        told.out
    );
    for page in ["tollgate.1", "tollgate-run.1", "tollgate-usage-report.1"] {
        assert!(
            pages.iter().any(|path| path.ends_with(page)),
            "no {page} in {pages:?}"
        );
    }
    let whole = tollgate(dir.path(), &["man"], &[]);
    let written = std::fs::read_to_string(dir.path().join("share/man1/tollgate.1"));
    assert_eq!(whole.out.trim_end(), written.expect("a page").trim_end());
    if Command::new("groff").arg("--version").output().is_err() {
        return testing::skip("groff is not installed");
    }
    for page in &pages {
        let page = page.to_str().expect("a path");
        let text = said("groff", &["-man", "-Tutf8", "-ww", "-P-cbou", page]);
        assert!(text.contains("EXAMPLES"), "{page}: {text}");
    }
}

#[test]
fn pages_that_cannot_be_written_are_a_failure_that_names_the_place() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("taken"), "").expect("a file");
    let ended = tollgate(dir.path(), &["man", "taken"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert!(
        ended.err.starts_with("tollgate: cannot write taken: "),
        "{}",
        ended.err
    );
}
