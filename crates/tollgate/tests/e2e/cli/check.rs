//! `tollgate check`: good files, all faults of a bad one, and the examples that are shipped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::tollgate;

/// Six faults, one of each kind that a person makes.
const BAD: &str = "\
listen: { data: \"nope\" }
backends: { a: { url: ftp://x, credentials: 1 } }
routes: [ { workload: w, backend: b, limits: [ { requests: 0, per: 1 fortnight } ] } ]
";

#[test]
fn every_fault_is_named_at_once_with_its_place() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("bad.yaml"), BAD).expect("a file");
    let ended = tollgate(dir.path(), &["check", "-c", "bad.yaml"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    for start in [
        "bad.yaml:1: listen.data: ",
        "bad.yaml:2: backends.a: unknown field \"credentials\"; did you mean credential?",
        "bad.yaml:2: backends.a.url: ",
        "bad.yaml:3: routes[0].backend: ",
        "bad.yaml:3: routes[0].limits[0].per: ",
        "bad.yaml:3: routes[0].limits[0].requests: ",
    ] {
        let lines = ended.err.lines().filter(|l| l.starts_with(start));
        assert_eq!(lines.count(), 1, "{start:?} in\n{}", ended.err);
    }
    assert!(ended.err.ends_with("6 faults\n"), "{}", ended.err);
}

#[test]
fn a_file_that_is_not_there_is_a_fault() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ended = tollgate(dir.path(), &["check", "-c", "none.yaml"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert!(
        ended.err.starts_with("none.yaml: cannot read the file"),
        "{}",
        ended.err
    );
}

#[test]
fn the_demo_prints_a_configuration_that_is_good() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let printed = tollgate(dir.path(), &["demo", "--print-config"], &[]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    fs::write(dir.path().join("demo.yaml"), printed.out).expect("a file");
    let keys = [("ON_PREM_KEY", "k1"), ("FRONTIER_KEY", "k2")];
    let ended = tollgate(dir.path(), &["check", "-c", "demo.yaml"], &keys);
    let said = "demo.yaml: good (3 workloads, 2 routes, 2 backends)\n";
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), said),
        "{}",
        ended.err
    );
}

#[test]
fn the_examples_are_good_where_what_they_refer_to_exists() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let made = rcgen::generate_simple_self_signed(vec!["gate.test".into()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    for (name, content) in [
        ("tls/gate.pem", certificate.as_str()),
        ("tls/gate.key", &key),
        ("tls/internal-ca.pem", &certificate),
        ("secrets/replicas", "canary-1"),
        ("secrets/openai", "canary-2"),
        ("secrets/gemini-api-key", "canary-3"),
        (
            "llama/tokenizer.json",
            include_str!("../../../../../vectors/tokens/tiny_tokenizer.json"),
        ),
        (
            "llama/tokenizer_config.json",
            r#"{"chat_template":"{{ messages }}"}"#,
        ),
    ] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    let environment = [("VLLM_API_KEY", "canary-4"), ("GEMINI_API_KEY", "canary-5")];
    let examples = examples();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let name = example
            .file_name()
            .and_then(|n| n.to_str())
            .expect("a name");
        fs::copy(&example, dir.path().join(name)).expect("a copy");
        let ended = tollgate(dir.path(), &["check", "-c", name], &environment);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(
            ended.out.starts_with(&format!("{name}: good (")),
            "{}",
            ended.out
        );
        assert!(!(ended.out + &ended.err).contains("canary"), "{name}");
    }
}

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let all = fs::read_dir(dir).expect("the examples are there");
    let all = all.map(|entry| entry.expect("an entry").path());
    all.filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect()
}
