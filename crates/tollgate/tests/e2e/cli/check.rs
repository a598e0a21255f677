//! `tollgate check`: valid files, every fault of an invalid one, and the shipped examples.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Gate, Pane, tollgate, write_private};

/// Six faults, one of each kind that a person makes.
const BAD: &str = "\
listen: { data: \"nope\" }
backends: { a: { url: ftp://x, credentials: 1 } }
routes: [ { workload: w, backend: b, limits: [ { requests: 0, per: 1 fortnight } ] } ]
";

/// Wide enough that no line is broken; eighty columns are tested in `width`.
const WIDE: (&str, &str) = ("COLUMNS", "1000");

#[test]
fn check_reports_every_fault_with_its_location() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("bad.yaml"), BAD).expect("a file");
    let ended = tollgate(dir.path(), &["check", "-c", "bad.yaml"], &[WIDE]);
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
fn faults_of_an_editors_list_of_servers_name_its_file_and_line() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let document = "backends: { a: { url: http://127.0.0.1:1/v1 } }\n\
                    routes: [ { workload: w, backend: a } ]\n";
    fs::write(dir.path().join("gate.yaml"), document).expect("a file");
    let file = dir.path().join("mcp.json");
    let checked = || {
        let words = ["check", "-c", "gate.yaml", "--mcp-config", "mcp.json"];
        let ended = tollgate(dir.path(), &words, &[WIDE]);
        (ended.code, ended.err)
    };
    for (list, start) in [
        (
            "{\"mcpServers\": {\n  \"github\": { \"url\": \"ftp://x\" }\n}}\n",
            "mcp.json:2: mcpServers.github.url: ",
        ),
        (
            "{\"mcpServers\": {\n\n  \"a b\": { \"url\": \"http://127.0.0.1:1/mcp\" }\n}}\n",
            "mcp.json:3: mcpServers",
        ),
        ("{\"mcpServers\": {\n", "mcp.json:"),
        ("[]\n", "mcp.json:1: "),
    ] {
        fs::write(&file, list).expect("a file");
        let (code, told) = checked();
        assert_eq!(code, Some(1), "{list}: {told}");
        assert!(
            told.lines().any(|line| line.starts_with(start)),
            "{list}: {told}"
        );
        assert!(!told.contains("gate.yaml:"), "{told}");
    }
    fs::remove_file(&file).expect("it is there");
    let (code, told) = checked();
    let start = "mcp.json: cannot read the file";
    assert_eq!((code, told.starts_with(start)), (Some(1), true), "{told}");
}

#[test]
fn a_missing_file_is_a_fault() {
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
fn where_the_configuration_comes_from_is_told_to_who_named_none_and_looks() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = "backends: { a: { url: http://127.0.0.1:1/v1 } }\n\
                routes: [ { workload: w, backend: a } ]\n";
    fs::write(dir.path().join("tollgate.yaml"), file).expect("a file");
    let notice = "configuration: tollgate.yaml of the current directory";
    let shown = |options: &str| {
        let (place, program) = (dir.path().display(), Gate::binary());
        let check = format!("{} check {options}", program.display());
        let script = format!("cd '{place}' && {check}; echo over; cat");
        let pane = Pane::run(120, 20, &script)?;
        Some(pane.until("it has ended", |shown| shown.contains("over")))
    };
    let Some(unnamed) = shown("") else {
        return testing::skip("there is no tmux");
    };
    assert!(unnamed.contains(notice), "{unnamed}");
    let named = shown("-c tollgate.yaml").expect("as before");
    assert!(
        named.contains(": good (") && !named.contains("configuration:"),
        "{named}"
    );
    let unseen = shown("2> errors").expect("as before");
    assert!(unseen.contains(": good ("), "{unseen}");
    let errors = fs::read_to_string(dir.path().join("errors")).expect("a file");
    assert_eq!(errors, "");
}

#[test]
fn more_workers_than_can_run_at_once_are_a_warning() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = "backends: { a: { url: http://127.0.0.1:1/v1 } }\n\
                  routes: [ { workload: w, backend: a } ]\n";
    let check = |more: &str| {
        fs::write(dir.path().join("tollgate.yaml"), format!("{config}{more}")).expect("a file");
        let ended = tollgate(dir.path(), &["check"], &[WIDE]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.err
    };
    assert_eq!(check(""), "");
    assert_eq!(check("workers: 1\n"), "");
    let said = check("workers: 1024\n");
    let says = "warning: tollgate.yaml:3: workers: 1024 are more than the ";
    assert!(said.starts_with(says), "{said}");
}

#[test]
fn a_secret_that_others_can_read_or_change_is_a_fault_of_check_and_of_a_start() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = "backends: { a: { url: http://127.0.0.1:1/v1, credential: { file: secrets/key } } }\n\
                  routes: [ { workload: w, backend: a } ]\n";
    fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    fs::create_dir(dir.path().join("secrets")).expect("a directory");
    let key = dir.path().join("secrets/key");
    write_private(&key, "canary");
    for (bits, is_open) in [
        (0o644, true),
        (0o604, true),
        (0o602, true),
        (0o660, true),
        (0o600, false),
        (0o400, false),
        (0o440, false),
    ] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(bits);
        fs::set_permissions(&key, mode).expect("a mode");
        let checked = tollgate(dir.path(), &["check"], &[WIDE]);
        if !is_open {
            assert_eq!(checked.code, Some(0), "{bits:o} {}", checked.err);
            continue;
        }
        let says = format!(
            "tollgate.yaml:1: backends.a.credential.file: others can read or change the file \"secrets/key\", \
             which holds a secret (mode {bits:04o}); chmod 600"
        );
        for verb in ["check", "run"] {
            let ended = tollgate(dir.path(), &[verb], &[WIDE]);
            assert_eq!(ended.code, Some(1), "{bits:o}");
            assert!(ended.err.contains(&says), "{verb} {}", ended.err);
        }
    }
}

#[test]
fn what_the_process_finds_wrong_names_the_line_and_an_unset_variable_its_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let good = "backends:\n  a: { url: http://127.0.0.1:1/v1 }\n\
                routes: [ { workload: w, backend: a } ]\n";
    write_private(&dir.path().join("keys.jsonl"), "damaged\n");
    write_private(
        &dir.path().join("key.pem"),
        "-----BEGIN PRIVATE KEY-----\nno key\n-----END PRIVATE KEY-----\n",
    );
    let check = |more: &str| {
        fs::write(dir.path().join("tollgate.yaml"), format!("{good}{more}")).expect("a file");
        let ended = tollgate(dir.path(), &["check"], &[WIDE]);
        assert_eq!(ended.code, Some(1), "{more}: {}", ended.out);
        ended.err
    };
    for (more, says) in [
        (
            "identity:\n  - header: x-workload-app\n  - keys: { file: keys.jsonl }\n",
            "tollgate.yaml:6: identity[1].keys.file: ",
        ),
        (
            "traces:\n  otlp: https://127.0.0.1:4318\n  ca: key.pem\n",
            "tollgate.yaml:6: traces.ca: ",
        ),
        (
            "traces:\n  otlp: localhost:4318\n",
            "tollgate.yaml:5: traces.otlp: \"localhost:4318\" is not an http:// or https:// address; \
             write an address such as http://127.0.0.1:4318",
        ),
        (
            "admin: { bearer: { env: ADMIN_TOKEN } }\n",
            "tollgate.yaml:4: admin.bearer.env: the variable ADMIN_TOKEN is not set; set it, or use `file`",
        ),
        (
            "admin: { bearer: { env: AKIAIOSFODNN7EXAMPLE } }\n",
            "tollgate.yaml:4: admin.bearer.env: the variable named here is not set",
        ),
    ] {
        let said = check(more);
        assert!(said.contains(says), "no {says:?} in\n{said}");
    }
}

/// A configuration with a ledger, a log and a secret at these paths.
fn writing(ledger: &str, log: &str, secret: &str) -> String {
    format!(
        "access_log: {log}\nledger: {{ path: {ledger} }}\n\
         backends: {{ a: {{ url: http://127.0.0.1:1/v1, credential: {{ file: {secret} }} }} }}\n\
         routes: [ {{ workload: w, backend: a }} ]\n"
    )
}

#[test]
fn without_a_path_the_file_of_the_current_directory_takes_precedence_over_the_environment() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let keys = [("OPENAI_API_KEY", "canary-1")];
    let ended = tollgate(dir.path(), &["check"], &keys);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (
            Some(0),
            "environment: good (1 workload, 1 route, 1 backend)\n",
            ""
        )
    );

    let file = "backends: { a: { url: http://127.0.0.1:1/v1 } }\n\
                routes: [ { workload: w, backend: a } ]\n";
    fs::write(dir.path().join("tollgate.yaml"), file).expect("a file");
    let ended = tollgate(dir.path(), &["check"], &keys);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(
        (ended.out.as_str(), ended.err.as_str()),
        ("tollgate.yaml: good (1 workload, 1 route, 1 backend)\n", "")
    );

    // A file that cannot be read is a fault, not a reason to use the environment.
    fs::remove_file(dir.path().join("tollgate.yaml")).expect("it was there");
    fs::create_dir(dir.path().join("tollgate.yaml")).expect("a directory");
    let ended = tollgate(dir.path(), &["check"], &keys);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(
        ended.err.contains("tollgate.yaml: cannot read the file"),
        "{}",
        ended.err
    );
}

#[test]
fn unwritable_paths_and_missing_secrets_are_reported_with_a_remedy() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let check = |config: &str| {
        fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
        tollgate(dir.path(), &["check"], &[WIDE])
    };
    let ended = check(&writing("usage.db", "log.jsonl", "secrets/provider-key"));
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    let message = "tollgate.yaml:3: backends.a.credential.file: cannot read the file \
                \"secrets/provider-key\": it does not exist; write the secret alone into it";
    assert!(ended.err.contains(message), "{}", ended.err);

    fs::create_dir(dir.path().join("secrets")).expect("a directory");
    write_private(&dir.path().join("secrets/provider-key"), "canary");
    let ended = check(&writing(
        "ledgers/usage.db",
        "logs/log.jsonl",
        "secrets/provider-key",
    ));
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(1), ""),
        "{}",
        ended.err
    );
    for message in [
        "tollgate.yaml:2: ledger.path: the directory ledgers does not exist; ",
        "tollgate.yaml:1: access_log: the directory logs does not exist; make the directory",
        "\n2 faults\n",
    ] {
        assert!(
            ended.err.contains(message),
            "no {message:?}:\n{}",
            ended.err
        );
    }
    // `run` reports the same, before anything listens.
    let ran = tollgate(dir.path(), &["run"], &[]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err
            .contains("ledger.path: the directory ledgers does not exist"),
        "{}",
        ran.err
    );

    fs::write(dir.path().join("ledgers"), "").expect("a file");
    fs::create_dir_all(dir.path().join("logs/log.jsonl")).expect("a directory");
    let ended = check(&writing(
        "ledgers/usage.db",
        "logs/log.jsonl",
        "secrets/provider-key",
    ));
    for message in ["ledgers is no directory", "logs/log.jsonl is a directory"] {
        assert!(
            ended.err.contains(message),
            "no {message:?}:\n{}",
            ended.err
        );
    }

    fs::remove_file(dir.path().join("ledgers")).expect("it was there");
    fs::remove_dir(dir.path().join("logs/log.jsonl")).expect("it was there");
    fs::create_dir(dir.path().join("ledgers")).expect("a directory");
    let ended = check(&writing(
        "ledgers/usage.db",
        "logs/log.jsonl",
        "secrets/provider-key",
    ));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for unmade in ["ledgers/usage.db", "logs/log.jsonl"] {
        assert!(!dir.path().join(unmade).exists(), "check made {unmade}");
    }
}

#[test]
fn the_configuration_that_demo_prints_passes_check() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let printed = tollgate(dir.path(), &["demo", "--print-config"], &[]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    fs::write(dir.path().join("demo.yaml"), printed.out).expect("a file");
    let ended = tollgate(dir.path(), &["check", "-c", "demo.yaml"], &[]);
    let said = "demo.yaml: good (3 workloads, 2 routes, 2 backends)\n";
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), said),
        "{}",
        ended.err
    );
}

/// The comments of each example say how to make the files that it refers to; the test makes only those.
#[test]
fn the_examples_pass_check_with_files_made_as_their_comments_say() {
    let examples = examples();
    assert!(examples.len() >= 5, "{examples:?}");
    let programs = programs();
    for example in examples {
        let name = example
            .file_name()
            .and_then(|n| n.to_str())
            .expect("a name");
        let text = fs::read_to_string(&example).expect("an example");
        let commands: Vec<&str> = text
            .lines()
            .filter_map(|l| l.strip_prefix("#   $ "))
            .collect();
        let last = format!("tollgate check -c {name}");
        assert_eq!(commands.last(), Some(&&*last), "the last command of {name}");

        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::copy(&example, dir.path().join(name)).expect("a copy");
        let path = format!(
            "{}:{}",
            programs.path().display(),
            std::env::var("PATH").expect("a path")
        );
        let output = std::process::Command::new("sh")
            .args(["-e", "-u", "-c", &commands.join("\n")])
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", path)
            .envs(["VLLM", "OPENAI", "GEMINI"].map(|of| (format!("{of}_API_KEY"), "canary")))
            .output()
            .expect("a shell");
        let said =
            [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(output.status.success(), "{name}: {said:?}");
        assert!(
            said[0].ends_with(")\n") && said[0].contains(&format!("{name}: good (")),
            "{said:?}"
        );
        assert!(!said.concat().contains("canary"), "{name}");
    }
}

/// A directory with `tollgate`, and with a stub of the Hugging Face command line, which would need an
/// account: the stub writes a small tokenizer to the path that it is given.
fn programs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(crate::harness::Gate::binary(), dir.path().join("tollgate"))
        .expect("a link");
    let tokenizer =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tokens/tiny_tokenizer.json");
    let hf = format!(
        "#!/bin/sh\n[ \"$1 $3 $4 $5\" = 'download tokenizer.json tokenizer_config.json --local-dir' ] || exit 1\n\
         mkdir -p \"$6\" && cp '{}' \"$6/tokenizer.json\"\n\
         printf '{{\"chat_template\":\"{{{{ messages }}}}\"}}' > \"$6/tokenizer_config.json\"\n",
        tokenizer.display()
    );
    let path = dir.path().join("hf");
    fs::write(&path, hf).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).expect("a mode");
    dir
}

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let all = fs::read_dir(dir).expect("the examples are there");
    let all = all.map(|entry| entry.expect("an entry").path());
    all.filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect()
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for question in ["schema", "version"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let ended = std::process::Command::new(crate::harness::Gate::binary())
            .arg(question)
            .stdout(full.expect("Linux has it"))
            .output();
        let ended = ended.expect("starts");
        let says = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{question}: {says}");
        assert!(says.contains("cannot write"), "{question}: {says}");
    }
}
