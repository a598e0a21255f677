//! What a start refuses, a reload refuses: the document, the files that it names and the words that only the machine
//! can judge.
//!
//! Not here: faults of documents, of which there are vectors; addresses in use, which only a start can find.

use std::os::unix::fs::PermissionsExt;

use super::changes::ask;
use crate::harness::{Gate, Step, Upstream, chat, post, tollgate};

const KEYS: &str = "identity: [ { keys: { file: keys.jsonl } } ]\n";

fn with_keys_of(file: &str) -> String {
    KEYS.replace("keys.jsonl", file)
}

#[test]
fn whatever_a_start_refuses_a_reload_refuses_and_the_old_document_serves_on() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(crate::fixture::answer())]);
    let rest = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: chat, backend: up }} ]\n\
         admin: {{ bearers: {{ ops: {{ inline: canary-operate, roles: [operate] }} }} }}\n",
        upstream.address
    );
    let made = tempfile::tempdir().expect("a directory");
    let key = |file: &str, extra: &str, args: &[&str]| {
        let config = format!("{}{extra}{rest}", with_keys_of(file));
        std::fs::write(made.path().join("tollgate.yaml"), config).expect("a file");
        let create = [&["keys", "create", "--workload", "chat"], args].concat();
        let ended = tollgate(made.path(), &create, &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let file = std::fs::read(made.path().join(file)).expect("a file");
        (ended.out.trim().to_owned(), file)
    };
    let (secret, keys) = key("keys.jsonl", "", &[]);
    let ledger = "ledger: { path: usage.db }\n";
    let (_, budgeted) = key("budgeted.jsonl", ledger, &["--budget", "9tokens/day"]);
    let gate = Gate::start_with_private(
        &format!("{KEYS}{rest}"),
        &[
            ("keys.jsonl", &keys),
            ("open.jsonl", &keys),
            ("damaged.jsonl", b"{}\n"),
            ("budgeted.jsonl", &budgeted),
            ("text", b"neither keys nor certificates\n"),
        ],
    );
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(gate.path("open.jsonl"), open).expect("permissions");

    let with = |extra: &str| format!("{KEYS}{extra}");
    let faults = [
        ("a word of the document", with("colour: red\n")),
        ("keys that are not there", with_keys_of("missing.jsonl")),
        ("keys that others can read", with_keys_of("open.jsonl")),
        ("keys that are damaged", with_keys_of("damaged.jsonl")),
        ("keys that are no file", with_keys_of(".")),
        ("budgets of keys without a ledger", with_keys_of("budgeted.jsonl")),
        (
            "a key set that is none",
            "identity: [ { jwt: { issuer: https://issuer.example, audience: gate, workload: chat, jwks: { file: text } } } ]\n".to_owned(),
        ),
        (
            "a policy that is none",
            with("authority: { rego: { files: text } }\n"),
        ),
        (
            "a tokenizer that is none",
            with("tokenizers: { m: { file: text, template: text } }\n"),
        ),
        (
            "a ledger in no directory",
            with("ledger: { path: nowhere/usage.db }\n"),
        ),
        ("a ledger that is a text", with("ledger: { path: text }\n")),
        (
            "a server that is not understood",
            with("ledger: { path: usage.db, postgres: { file: text } }\n"),
        ),
        (
            "roots of a collector that are none",
            with("traces: { url: https://127.0.0.1:1, ca: text }\n"),
        ),
    ];
    for (what, head) in faults {
        let config = format!("{head}{rest}");
        gate.reconfigure(&config);
        let check = tollgate(gate.dir.path(), &["check"], &[]);
        let run = tollgate(gate.dir.path(), &["run"], &[]);
        let refused = ask(&gate, "POST /api/v1/reload", "canary-operate", "", "");
        assert_eq!(
            (check.code, run.code, refused.status),
            (Some(1), Some(1), 422),
            "{what}: {} {} {}",
            check.err,
            run.err,
            refused.text()
        );
        assert_eq!(refused.code(), "configuration_refused", "{what}");
        let line = format!("authorization: Bearer {secret}");
        let call = post("/v1/chat/completions", &[&line], &chat("m", false));
        assert_eq!(
            gate.call(&call).status,
            200,
            "{what}: the old one serves on"
        );
    }
    // The log's file is named in what all of these begin with.
    let document = std::fs::read_to_string(gate.path("tollgate.yaml")).expect("a file");
    let elsewhere = format!("{KEYS}{rest}");
    let head = document.split("identity:").next().expect("its head");
    let head = head.replace("access.jsonl", "nowhere/access.jsonl");
    gate.replace("tollgate.yaml", format!("{head}{elsewhere}").as_bytes());
    let refused = ask(&gate, "POST /api/v1/reload", "canary-operate", "", "");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("access_log"), "{}", refused.text());

    gate.reconfigure(&format!("{KEYS}{rest}"));
    let taken = ask(&gate, "POST /api/v1/reload", "canary-operate", "", "");
    assert_eq!(taken.status, 200, "{}", taken.text());
}
