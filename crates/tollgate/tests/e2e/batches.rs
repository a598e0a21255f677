//! Files and batches of OpenAI and Anthropic, with their SDKs, in front of providers that keep them for an account.
//!
//! Not here: what a file may hold line by line (`wire::batch`), whose it is on disk (`ledger`).

mod meanwhile;
mod provider;
mod tricks;

use std::path::Path;

use serde_json::{Value, json};
use testing::eventually;

use self::provider::Provider;
use crate::harness::{Ended, Gate, Sdk, tollgate, write_private};
use crate::ledger::{stop, usage};

const MONTH: &str = "budgets: { company: { money: 100, per: month } }\n";

/// A gate whose workloads `a` and `b` share an account of each provider; `b` may use the models `m1` and `claude-small` alone.
fn config(provider: &Provider, ledger: &Path, more: &str) -> String {
    let address = provider.address();
    let batches = |api: &str| {
        format!("batches: {{ api: {api}, unsettled: 2, price_share: 0.5, check_every: 1s }}")
    };
    let (openai, anthropic) = (batches("openai"), batches("anthropic"));
    format!(
        "backends:\n  up: {{ url: http://{address}/v1, credential: {{ file: key }} }}\n\
         \x20 claude: {{ url: http://{address}/v1, dialect: anthropic, credential: {{ file: key }} }}\n\
         routes:\n\
         \x20 - {{ name: a, workload: a, match: {{ model: [m1, m2] }}, backend: up, {openai} }}\n\
         \x20 - {{ name: b, workload: b, match: {{ model: m1 }}, backend: up, {openai} }}\n\
         \x20 - {{ name: ac, workload: a, match: {{ model: [claude-big, claude-small] }}, backend: claude, {anthropic} }}\n\
         \x20 - {{ name: bc, workload: b, match: {{ model: claude-small }}, backend: claude, {anthropic} }}\n\
         prices:\n\
         \x20 m1: {{ input: 2, output: 8, per: 1M }}\n  m2: {{ input: 20, output: 80, per: 1M }}\n\
         \x20 claude-small: {{ input: 1, output: 5, per: 1M }}\n  claude-big: {{ input: 10, output: 50, per: 1M }}\n\
         ledger: {{ path: {} }}\n{more}",
        ledger.display()
    )
}

const KEY: [(&str, &[u8]); 1] = [("key", b"provider-key")];

/// The rows of what batches used.
fn used(ledger: &Path) -> Vec<Value> {
    let rows = usage(ledger, &["export", "--form", "jsonl"]);
    let rows = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    rows.filter(|row: &Value| row["operation"] == "batch_usage")
        .collect()
}

fn give_up(ledger: &Path, id: &str, why: &str) -> Ended {
    let path = ledger.to_str().expect("UTF-8");
    let batches = ["usage", "--ledger", path, "batches"];
    let args = [&batches[..], &["--give-up", id, "--why", why]].concat();
    tollgate(ledger.parent().expect("a directory"), &args, &[])
}

fn sums(rows: &[Value]) -> (u64, u64, u64) {
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum();
    (
        sum("prompt_tokens"),
        sum("completion_tokens"),
        sum("cost_pico"),
    )
}

#[test]
fn a_batch_of_openai_is_its_workloads_and_is_charged_once() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&provider, &ledger, MONTH);
    let gate = Gate::start(&config, &KEY);
    let input =
        json!({ "base_url": format!("http://{}", gate.data), "model": "m1", "other": "m2" });
    let shown = json!([
        "uploaded",
        "refused_line",
        "of_its_workload_alone",
        "begun",
        "listed",
        "over",
        "result",
        "removed"
    ]);
    assert_eq!(Sdk::Python.run("batches_openai", &input), shown);
    eventually("it is charged", || used(&ledger).len() == 1);
    let rows = used(&ledger);
    let (prompt, completion) = provider.served("m1");
    // Half of 2 and 8 a million.
    let cost = prompt * 1_000_000 + completion * 4_000_000;
    assert_eq!(sums(&rows), (prompt, completion, cost), "{rows:?}");
    assert_eq!(rows[0]["model_sent"], "m1");
    assert_eq!(
        (&rows[0]["workload"], &rows[0]["route"]),
        (&json!("a"), &json!("a"))
    );
    let left = || gate.metric("tollgate_budget_left", &[r#"budget="company""#]);
    let spent = left();
    for _ in 0..2 {
        assert_eq!(
            Sdk::Python.run("batches_fetched", &input),
            json!(["fetched"])
        );
    }
    assert_eq!(usage(&ledger, &["batches"]), "Every batch is counted.\n");
    stop(gate);
    let gate = Gate::start(&config, &KEY);
    assert_eq!(
        Sdk::Python.run(
            "batches_fetched",
            &json!({ "base_url": format!("http://{}", gate.data) })
        ),
        json!(["fetched"])
    );
    assert_eq!(used(&ledger), rows);
    assert_eq!(
        gate.metric("tollgate_budget_left", &[r#"budget="company""#]),
        spent
    );
    stop(gate);
}

#[test]
fn a_batch_of_anthropic_is_its_workloads_and_is_charged_by_model() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, MONTH), &KEY);
    let input = json!({ "base_url": format!("http://{}", gate.data) });
    let shown = json!([
        "begun",
        "refused_request",
        "of_its_workload_alone",
        "listed",
        "result",
        "removed",
        "files"
    ]);
    assert_eq!(Sdk::Python.run("batches_anthropic", &input), shown);
    eventually("it is charged", || used(&ledger).len() == 2);
    let rows = used(&ledger);
    for row in &rows {
        let model = row["model_sent"].as_str().expect("a model");
        let (prompt, completion) = provider.served(model);
        let told = sums(std::slice::from_ref(row));
        assert_eq!((told.0, told.1), (prompt, completion), "{row}");
    }
    stop(gate);
}

#[test]
fn a_batch_that_nobody_fetches_is_charged_after_a_kill() {
    let provider = Provider::start(false);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&provider, &ledger, "");
    let mut gate = Gate::start(&config, &KEY);
    let begun = tricks::begin(&gate, "a", "m1", 3);
    assert_eq!(begun.status, 200, "{}", begun.text());
    let uncounted = usage(&ledger, &["batches"]);
    let id = begun.json()["id"].as_str().expect("an id").to_owned();
    assert!(uncounted.contains(&id), "{uncounted}");
    let copy = dir.path().join("copy.db");
    let said = usage(&ledger, &["backup", &copy.display().to_string()]);
    assert!(said.contains("files and batches: "), "{said}");
    assert_eq!(usage(&copy, &["batches"]), uncounted);
    std::fs::remove_file(dir.path().join("copy.db.batches")).expect("it was copied");
    let none = usage(&copy, &["batches"]);
    assert!(none.starts_with("There is no "), "{none}");
    assert_eq!(
        gate.metric("tollgate_batches_uncounted", &[r#"workload="a""#]),
        1.0
    );
    // A second is taken, a third is too many.
    assert_eq!(tricks::begin(&gate, "a", "m1", 1).status, 200);
    let third = tricks::begin(&gate, "a", "m1", 1);
    assert_eq!(
        (third.status, &*third.code()),
        (429, "batches_uncounted"),
        "{}",
        third.text()
    );
    gate.signal(libc::SIGKILL);
    gate.wait(testing::PATIENCE);
    assert_eq!(used(&ledger), Vec::<Value>::new());
    provider.finish();
    let mut gate = Gate::start(&config, &KEY);
    eventually("both are charged", || used(&ledger).len() == 2);
    let rows = used(&ledger);
    let (prompt, completion) = provider.served("m1");
    assert_eq!((sums(&rows).0, sums(&rows).1), (prompt, completion));
    gate.signal(libc::SIGKILL);
    gate.wait(testing::PATIENCE);
    let gate = Gate::start(&config, &KEY);
    eventually("none is left", || {
        usage(&ledger, &["batches"]) == "Every batch is counted.\n"
    });
    assert_eq!(used(&ledger), rows);
    let lost = "there was no .batches file";
    assert!(!gate.log().contains(lost));
    stop(gate);
    for suffix in ["", "-wal", "-shm"] {
        let file = dir.path().join(format!("usage.db.batches{suffix}"));
        assert!(std::fs::remove_file(file).is_ok() || !suffix.is_empty());
    }
    let gate = Gate::start(&config, &KEY);
    eventually("it is told that the file was lost", || {
        gate.log().contains(lost)
    });
    stop(gate);
}

#[test]
fn a_batch_that_can_never_be_counted_is_given_up_by_name_and_charged_nothing() {
    let provider = Provider::start(false);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, MONTH), &KEY);
    let left = || gate.metric("tollgate_budget_left", &[r#"budget="company""#]);
    let before = left();
    let begun = tricks::begin(&gate, "a", "m1", 3);
    let id = tricks::id_of(&begun);
    provider.forget(&id);
    let unknown = give_up(&ledger, "batch_99", "none");
    assert!(unknown.code == Some(1) && unknown.err.contains("no batch"));
    let given_up = give_up(&ledger, &id, "its provider has forgotten it");
    assert_eq!(given_up.code, Some(0), "{}", given_up.err);
    assert!(
        given_up.out.contains("nothing is charged"),
        "{}",
        given_up.out
    );
    eventually("its row says so", || used(&ledger).len() == 1);
    let row = &used(&ledger)[0];
    assert_eq!(
        (&row["code"], &row["workload"], &row["model_sent"]),
        (&json!("batch_given_up"), &json!("a"), &json!("m1")),
        "{row}"
    );
    assert_eq!(
        (&row["prompt_tokens"], &row["cost_pico"]),
        (&Value::Null, &Value::Null)
    );
    eventually("none is left", || {
        usage(&ledger, &["batches"]) == "Every batch is counted.\n"
    });
    assert_eq!(left(), before);
    let log = gate.log();
    let told = log
        .lines()
        .find(|line| line.contains("a batch was given up"));
    let told = told.expect("a line");
    for says in [&*id, "uid ", "its provider has forgotten it", "workload"] {
        assert!(told.contains(says), "{says}: {told}");
    }
    stop(gate);
}

#[test]
fn a_disk_that_takes_nothing_lets_no_batch_begin_and_what_was_made_is_tried_until_it_is_kept() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let key = dir.path().join("key");
    write_private(&key, KEY[0].1);
    let config = config(&provider, &ledger, "")
        .replace("{ file: key }", &format!("{{ file: {} }}", key.display()));
    let gate = Gate::start_to_be_limited(&config);
    let file = tricks::uploaded(&gate, "a", "m1", 1);
    let made = || provider.asked("POST /v1/batches ");
    // No further byte of the notes of what is kept; the log is shorter.
    let wal = dir.path().join("usage.db.batches-wal");
    let most = std::fs::metadata(wal).expect("a file").len();
    assert!((gate.log().len() as u64) < most, "the log would be cut");
    let full = |is_full: bool| match is_full {
        true => gate.limit_files(&most.to_string()),
        false => gate.limit_files("unlimited"),
    };
    full(true);
    let refused = tricks::batch_of(&gate, "a", &file);
    full(false);
    assert_eq!(
        (refused.status, &*refused.code()),
        (503, "batches_unavailable")
    );
    assert_eq!(made(), 0, "nothing goes out");
    // The disk goes away while its provider makes it, and comes back.
    provider.hold();
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| tricks::batch_of(&gate, "a", &file));
        eventually("it is being made", || made() == 1);
        full(true);
        provider.let_go();
        eventually("it was tried", || gate.log().contains("is not kept yet"));
        full(false);
        asking.join().expect("no panic")
    });
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = tricks::id_of(&answer);
    assert!(usage(&ledger, &["batches"]).contains(&id) || used(&ledger).len() == 1);
    stop(gate);
}

#[test]
fn a_drain_waits_for_what_is_being_made_also_where_its_client_has_left() {
    let provider = Provider::start(false);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&provider, &ledger, "");
    let mut gate = Gate::start(&config, &KEY);
    let file = tricks::uploaded(&gate, "a", "m1", 1);
    provider.hold();
    let asking = tricks::batch_asked(&gate, "a", &file);
    eventually("it is being made", || {
        provider.asked("POST /v1/batches ") == 1
    });
    drop(asking);
    eventually("its client has left", || {
        gate.records(2)
            .iter()
            .any(|record| record["outcome"] == "aborted")
    });
    gate.signal(libc::SIGTERM);
    eventually("it drains", || gate.log().contains("draining"));
    provider.let_go();
    assert!(gate.wait(testing::PATIENCE).success());
    let uncounted = usage(&ledger, &["batches"]);
    assert!(uncounted.contains("batch_0"), "{uncounted}");
}

#[test]
fn a_removal_that_its_provider_answers_with_404_removes_it_here() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, ""), &KEY);
    let file = tricks::uploaded(&gate, "a", "m1", 1);
    let is_listed = || tricks::get(&gate, "a", "/v1/files").text().contains(&file);
    assert!(is_listed());
    provider.forget(&file);
    let removed = tricks::delete(&gate, "a", &format!("/v1/files/{file}"));
    assert_eq!(removed.status, 404, "{}", removed.text());
    assert!(!is_listed());
    let again = tricks::delete(&gate, "a", &format!("/v1/files/{file}"));
    assert_eq!((again.status, &*again.code()), (404, "file_not_found"));
    stop(gate);
}

#[test]
fn uploads_that_are_refused_count_for_limits() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let limited = "backend: up, limits: [ { requests: 2, per: 1h } ], ";
    let config = config(&provider, &ledger, "").replacen("backend: up, ", limited, 1);
    let gate = Gate::start(&config, &KEY);
    for _ in 0..2 {
        let refused = tricks::upload(&gate, "a", "no call");
        assert_eq!(
            (refused.status, &*refused.code()),
            (400, "batch_call_refused")
        );
    }
    let limited = tricks::upload(&gate, "a", "no call");
    assert_eq!(
        (limited.status, &*limited.code()),
        (429, "rate_limit_exceeded")
    );
    assert_eq!(provider.asked("POST /v1/files "), 0);
    stop(gate);
}
