//! `tollgate import litellm`: what it prints is a configuration that the next commands take.

use std::fs;

use crate::harness::tollgate;

const LITELLM: &str = "\
model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: sk-canary-abcdefghij }
  - model_name: claude
    litellm_params: { model: anthropic/claude-sonnet-4-5 }
  - model_name: talk
    litellm_params: { model: sagemaker/gpt-j }
litellm_settings: { cache: true, num_retries: 2 }
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY }
";

#[test]
fn what_is_imported_is_checked_gets_a_key_and_takes_calls() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("config.yaml"), LITELLM).expect("it can be written");

    let made = tollgate(dir.path(), &["import", "litellm", "config.yaml"], &[]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(!(made.out + &made.err).contains("canary"));
    let made = tollgate(dir.path(), &["import", "litellm", "config.yaml"], &[]);
    for says in [
        "warning: config.yaml:3: model_list[0].litellm_params.api_key: a secret stands in the file",
        "put it into the variable OPENAI_API_KEY",
        "warning: config.yaml:6: model_list[2]: \"talk\" is left out",
        "3 comments of the file say what differs",
    ] {
        let said = made.err.replace("\n  ", " ");
        assert!(said.contains(says), "no {says:?} in\n{}", made.err);
    }

    // Whose file it is, where it is taken for one of the gate's.
    fs::write(at("tollgate.yaml"), LITELLM).expect("it can be written");
    let check = tollgate(dir.path(), &["check"], &[]);
    assert_eq!(check.code, Some(1));
    let said = check.err.replace("\n  ", " ");
    for says in [
        "`tollgate import litellm FILE`",
        "docs/coming-from.md#from-litellm",
    ] {
        assert!(said.contains(says), "no {says:?} in\n{}", check.err);
    }

    fs::write(at("tollgate.yaml"), &made.out).expect("it can be written");
    let environment = [("OPENAI_API_KEY", "one"), ("ANTHROPIC_API_KEY", "two")];
    let create = ["keys", "create", "--workload", "default"];
    let key = tollgate(dir.path(), &create, &environment);
    assert_eq!(key.code, Some(0), "{}", key.err);
    let check = tollgate(dir.path(), &["check"], &environment);
    assert_eq!(check.code, Some(0), "{}\nin\n{}", check.err, made.out);
    assert!(
        check
            .out
            .contains("good (1 workload, 2 routes, 2 backends)"),
        "{}",
        check.out
    );
    let environment = [
        environment[0],
        environment[1],
        ("TOLLGATE_CREDENTIAL", key.out.trim()),
    ];
    let explained = tollgate(dir.path(), &["explain", "--model", "claude"], &environment);
    assert_eq!(
        explained.code,
        Some(0),
        "{}{}",
        explained.out,
        explained.err
    );
    assert!(
        explained.out.contains("anthropic"),
        "{}{}",
        explained.out,
        explained.err
    );
}

#[test]
fn a_file_that_cannot_be_taken_over_says_where_and_why() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let import = ["import", "litellm", "config.yaml"];
    let none = tollgate(dir.path(), &import, &[]);
    assert_eq!((none.code, none.out.as_str()), (Some(1), ""));
    assert!(
        none.err.starts_with("config.yaml: cannot read the file: "),
        "{}",
        none.err
    );
    let file = dir.path().join("config.yaml");
    fs::write(file, "model_list:\n  - model_name: a\n").expect("it can be written");
    let faulty = tollgate(dir.path(), &import, &[]);
    let says = "config.yaml:2: model_list[0]: has no litellm_params; write litellm_params:";
    assert_eq!((faulty.code, faulty.out.as_str()), (Some(1), ""));
    assert!(faulty.err.starts_with(says), "{}", faulty.err);
}
