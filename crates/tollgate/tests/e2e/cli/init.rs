//! `tollgate init`: a file that the next command takes.

use crate::harness::tollgate;

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
