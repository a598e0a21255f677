//! Wrong usage, and what is not where it was looked for.

use std::fs;

use crate::harness::tollgate;

#[test]
fn a_ledger_that_is_not_there_is_an_error_that_says_where_to_look() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ended = tollgate(dir.path(), &["usage", "report"], &[]);
    let remedy = "name its file with --ledger FILE, or in TOLLGATE_LEDGER";
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.trim_end().ends_with(remedy), "{}", ended.err);
    let config = "ledger: { path: spent/calls.db }\n\
                  backends: { a: { url: \"http://127.0.0.1:1/v1\" } }\n\
                  routes: [ { workload: w, backend: a } ]\n";
    fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    let ended = tollgate(dir.path(), &["usage", "report"], &[]);
    let remedy = format!("{remedy} (tollgate.yaml here names spent/calls.db)");
    assert!(ended.err.trim_end().ends_with(&remedy), "{}", ended.err);
    // A file that is there, and is no ledger, is not looked for elsewhere.
    fs::write(dir.path().join("usage.db"), [b'x'; 4096]).expect("a file");
    let ended = tollgate(dir.path(), &["usage", "report"], &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(!ended.err.contains("--ledger"), "{}", ended.err);
}

#[test]
fn keys_without_a_file_say_that_one_is_wanted() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let create = ["keys", "create", "--workload", "w"];
    for environment in [&[][..], &[("OPENAI_API_KEY", "k")]] {
        for words in [&create[..], &["keys", "list"]] {
            let ended = tollgate(dir.path(), words, environment);
            let said = "tollgate: no tollgate.yaml here; `tollgate init` writes one, or name a file with -c FILE\n";
            assert_eq!((ended.code, &*ended.err), (Some(1), said), "{words:?}");
        }
    }
}

#[test]
fn a_file_without_its_option_is_wrong_usage_that_names_the_option() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for verb in ["run", "check", "explain"] {
        let ended = tollgate(dir.path(), &[verb, "good.yaml"], &[]);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains("'-c good.yaml'"), "{}", ended.err);
    }
    let ended = tollgate(dir.path(), &["version", "good.yaml"], &[]);
    assert!(!ended.err.contains("-c"), "{}", ended.err);
}
