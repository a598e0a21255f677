//! `tollgate init`: a file that the next command takes.

use std::process::Command;

use crate::harness::{Gate, tollgate};

#[test]
fn what_init_writes_is_good_and_is_not_replaced() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let environment = [("OPENAI_API_KEY", "canary")];
    let wrote = tollgate(dir.path(), &["init", "--no-probe"], &environment);
    assert_eq!((wrote.code, wrote.err.as_str()), (Some(0), ""));
    assert!(
        wrote.out.contains("\nwrote tollgate.yaml\n"),
        "{}",
        wrote.out
    );
    assert!(
        wrote.out.contains("tollgate run\n") && wrote.out.contains("curl "),
        "{}",
        wrote.out
    );
    let text = std::fs::read_to_string(dir.path().join("tollgate.yaml")).expect("it is there");
    assert!(
        text.contains("OPENAI_API_KEY") && !text.contains("canary"),
        "{text}"
    );
    let check = tollgate(dir.path(), &["check"], &environment);
    assert_eq!(check.code, Some(0), "{}", check.err);

    let again = tollgate(dir.path(), &["init", "--no-probe"], &[]);
    assert_eq!((again.code, again.out.as_str()), (Some(1), ""));
    assert!(
        again
            .err
            .starts_with("tollgate init: tollgate.yaml is there"),
        "{}",
        again.err
    );
    let kept = std::fs::read_to_string(dir.path().join("tollgate.yaml"));
    assert_eq!(kept.expect("it is there"), text);

    let printed = tollgate(dir.path(), &["init", "--no-probe", "--print"], &environment);
    assert_eq!(
        (printed.code, printed.out.as_str()),
        (Some(0), text.as_str())
    );
    let odd = tollgate(dir.path(), &["init", "--engine", "8000", "--print"], &[]);
    assert_eq!((odd.code, odd.out.as_str()), (Some(1), ""));
    assert!(odd.err.contains("http://127.0.0.1:8000/v1"), "{}", odd.err);
}

/// A file that may not grow stands for a full disk.
#[test]
fn a_file_that_cannot_be_written_whole_is_taken_away() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let init = |limit: &str| {
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" init --no-probe");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(Gate::binary());
        let ended = shell.current_dir(dir.path()).output().expect("a shell");
        (
            ended.status.code(),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    };
    let (code, says) = init("0");
    assert_eq!(code, Some(1), "{says}");
    assert!(
        says.starts_with("tollgate init: cannot write tollgate.yaml: "),
        "{says}"
    );
    let left = std::fs::read_dir(dir.path()).expect("a directory").count();
    assert_eq!(left, 0, "nothing is left");
    assert_eq!(init("unlimited").0, Some(0), "the next try is not refused");
}
