//! What is read of cargo, and what is told of binaries; shell scripts stand for them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Binary, build, run};
use crate::cargo::root;
use crate::tally::Tally;

#[test]
fn a_test_binary_is_known_by_cargos_line_and_nothing_else_is_one() {
    let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/proving/prove/Cargo.toml",
        "target":{"kind":["test"],"name":"e2e","src_path":"ROOT/proving/prove/tests/e2e/main.rs"},
        "profile":{"test":true},"executable":"/w/target/debug/deps/e2e-1"}"#;
    let root = root().display().to_string();
    let line = line.replace('\n', "").replace("ROOT", &root);
    let of = |line: &str| Binary::of(&line.parse().expect("JSON"));
    let binary = of(&line).expect("a test binary");
    assert_eq!(binary.source, "proving/prove/tests/e2e/main.rs");
    assert_eq!(binary.name, "e2e");
    for (what, other) in [
        (r#""test":true"#, r#""test":false"#),
        (r#""/w/target/debug/deps/e2e-1""#, "null"),
        (r#""profile""#, r#""other""#),
        (r#"["test"]"#, r#"["bench"]"#),
    ] {
        assert_eq!(of(&line.replace(what, other)), None, "{other}");
    }
}

#[test]
fn the_gate_is_the_program_of_that_name_and_no_test_of_it() {
    let line = |kind: &str, is_test: bool| {
        format!(
            "echo '{{\"target\":{{\"kind\":[\"{kind}\"],\"name\":\"tollgate\"}},\
             \"profile\":{{\"test\":{is_test}}},\"executable\":\"/t/{kind}-{is_test}\"}}'\n"
        )
    };
    let mut command = Command::new("sh");
    let lines = [
        line("bin", true),
        line("example", false),
        line("bin", false),
    ];
    command.args(["-c", &lines.concat()]);
    let gate = build(command).gate();
    assert_eq!(gate, Some("/t/bin-false".into()));
}

/// A cargo that has built these scripts.
fn cargo(name: &str, scripts: &[&str]) -> Command {
    let dir = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let mut said = String::new();
    for (n, script) in scripts.iter().enumerate() {
        let (text, file) = (dir.join(format!("{n}.txt")), dir.join(n.to_string()));
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("is written");
        // By another process: whatever another test starts meanwhile would hold what this one had open to be written, and no such file runs.
        let copied = Command::new("cp").args([&text, &file]).status();
        assert!(copied.is_ok_and(|status| status.success()), "is copied");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("may be run");
        said += &format!(
            "echo '{{\"profile\":{{\"test\":true}},\"manifest_path\":\"{}/Cargo.toml\",\
             \"target\":{{\"kind\":[\"lib\"],\"name\":\"a\",\"src_path\":\"/s\"}},\
             \"executable\":\"{}\"}}'\n",
            dir.display(),
            file.display()
        );
    }
    let mut command = Command::new("sh");
    command.args(["-c", &said]);
    command
}

#[test]
fn every_binary_runs_in_its_directory_and_one_that_fails_fails_the_run() {
    let ok = |n: u32| format!("echo 'test result: ok. {n} passed; 0 failed; 0 ignored'");
    let here = "test \"$(pwd -P)\" = \"$(realpath \"$CARGO_MANIFEST_DIR\")\" || exit 3";
    let scripts = [ok(2), format!("{here}; {}", ok(3)), "exit 7".to_owned()];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let good = run(built("good", &scripts[..2]), 2, |_| {});
    let passed = |passed| Tally {
        passed,
        ..Tally::default()
    };
    assert!(good.success);
    assert_eq!(good.tally, passed(5));
    let bad = run(built("bad", &scripts), 2, |_| {});
    assert!(!bad.success);
    assert_eq!(bad.tally, passed(5), "those beside it are counted");
    let told = run(built("told", &["exit $CODE"]), 1, |command| {
        command.env("CODE", "0");
    });
    assert!(told.success);
}

fn built(name: &str, scripts: &[&str]) -> Vec<Binary> {
    let built = build(cargo(name, scripts));
    assert_eq!(built.fault, None);
    built.tests
}

#[test]
fn what_is_built_is_known_though_the_rest_is_not_and_a_warning_is_a_fault() {
    let ok = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
    let with = |name: &str, more: &str| {
        let mut command = Command::new("sh");
        let script = cargo(name, &[ok]).get_args().nth(1).map(|s| s.to_owned());
        let script = script.and_then(|s| s.into_string().ok());
        command.args(["-c", &format!("{}{more}", script.unwrap_or_default())]);
        build(command)
    };
    let broken = with("broken", "exit 101");
    assert_eq!(broken.tests.len(), 1);
    assert!(broken.fault.is_some_and(|says| says.contains("101")));
    let message = r#"{"message":{"level":"LEVEL","rendered":"warning: unused\n"}}"#;
    for (level, fault) in [("warning", Some("1 warnings")), ("note", None)] {
        let line = message.replace("LEVEL", level);
        let warned = with(level, &format!("printf '%s\\n' '{line}'"));
        assert_eq!(warned.tests.len(), 1, "{level}");
        assert_eq!(warned.fault.as_deref(), fault, "{level}");
    }
    let fault = build(Command::new("there-is-no-such-program")).fault;
    assert!(fault.is_some_and(|says| says.contains("did not start")));
}
