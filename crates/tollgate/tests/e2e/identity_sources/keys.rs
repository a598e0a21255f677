//! `tollgate keys`, and a gate that is told of each change while it runs.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testing::eventually;

use super::{assert_invalid, bearer, call, config, echo, told};
use crate::harness::answer::json as json_answer;
use crate::harness::{Gate, Sdk, Step, Upstream, post, tollgate, write_private};

/// Runs `tollgate keys …` with the configuration of a directory.
pub(super) fn keys(dir: &Path, args: &[&str]) -> String {
    let config = dir.join("tollgate.yaml");
    let config = config.to_str().expect("UTF-8");
    let all = [&["keys"], args, &["--config", config]].concat();
    let ended = tollgate(dir, &all, &[]);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    ended.out
}

/// The id and the key that were made.
pub(super) fn made(dir: &Path, args: &[&str]) -> (String, String) {
    let out = keys(dir, &[args, &["--json"]].concat());
    let made: Value = serde_json::from_str(&out).expect("JSON");
    let members = made.as_object().expect("an object");
    assert_eq!(members.keys().collect::<Vec<_>>(), ["id", "key"]);
    let text = |name: &str| made[name].as_str().expect("text").to_owned();
    (text("id"), text("key"))
}

/// A gate with keys, of which none is made yet.
fn gate(upstream: &Upstream) -> Gate {
    let config = config(upstream, "[ { keys: { file: keys.jsonl } } ]");
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let (_, _) = made(dir.path(), &["create", "--workload", "chat"]);
    let first = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    // The harness writes files that others can read; the gate would not start with it.
    Gate::start_with_private(&config, &[("keys.jsonl", &first)])
}

/// The configuration of a gate with keys, and a ledger in a directory of its own.
fn with_ledger(upstream: &Upstream, ledger: &Path) -> String {
    let ledger = ledger.join("usage.db");
    config(upstream, "[ { keys: { file: keys.jsonl } } ]")
        + &format!("ledger: {{ path: {} }}\n", ledger.display())
}

fn is_let_in(gate: &Gate, key: &str) -> bool {
    call(gate, &[&bearer(key)]).status == 200
}

#[test]
fn a_key_is_made_used_by_both_sdks_rotated_and_revoked_while_the_gate_runs() {
    let upstream = echo();
    let gate = gate(&upstream);
    let (id, key) = made(
        gate.dir.path(),
        &["create", "--workload", "chat", "--user", "ada"],
    );
    testing::eventually("the gate knows the key", || is_let_in(&gate, &key));
    for sdk in Sdk::BOTH {
        let call = json!({
            "api_key": key,
            "headers": {},
            "body": { "model": "m", "messages": [{ "role": "user", "content": "Hello" }] },
        });
        let input = json!({ "base_url": format!("http://{}/v1", gate.data), "calls": [call] });
        let outcomes = sdk.run("calls", &input);
        assert_eq!(outcomes[0]["status"], 200, "{sdk:?}: {outcomes}");
    }
    for seen in upstream.seen() {
        assert_eq!(seen.header("authorization"), ["Bearer gate-key"]);
        assert!(!seen.head.contains(&key), "the key went upstream");
    }

    let listed: Value =
        serde_json::from_str(&keys(gate.dir.path(), &["list", "--json"])).expect("JSON");
    let listed = listed.as_array().expect("a list");
    let ours = listed.iter().find(|k| k["id"] == *id).expect("the key");
    assert_eq!(
        (&ours["user"], &ours["state"]),
        (&json!("ada"), &json!("active"))
    );
    let secret = &key[15..];
    let file = std::fs::read_to_string(gate.path("keys.jsonl")).expect("a file");
    assert!(!file.contains(secret) && !gate.log().contains(secret));

    let (same, next) = made(gate.dir.path(), &["rotate", &id, "--overlap", "1h"]);
    assert_eq!(same, id);
    testing::eventually("the new secret is good", || is_let_in(&gate, &next));
    assert!(is_let_in(&gate, &key), "the old one is good for an hour");

    let began = testing::Began::now();
    keys(gate.dir.path(), &["revoke", &id]);
    testing::eventually("the key is refused", || !is_let_in(&gate, &next));
    println!("refused {} after it was revoked", began.shown());
    assert_invalid(&call(&gate, &[&bearer(&key)]), "the old secret");
    assert_invalid(&call(&gate, &[&bearer(&next)]), "the new secret");
}

/// Budgets of keys are read from the ledger, and none has to be read again where a key goes.
#[test]
fn a_key_is_revoked_and_one_with_a_budget_is_made_while_the_ledger_is_away() {
    let upstream = echo();
    let ledger = tempfile::tempdir().expect("a directory");
    let config = with_ledger(&upstream, ledger.path());
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let (id, key) = made(dir.path(), &["create", "--workload", "chat"]);
    let budgeted = ["create", "--workload", "chat", "--budget", "1000tokens/day"];
    let (_, other) = made(dir.path(), &budgeted);
    let first = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", &first)]);
    assert!(is_let_in(&gate, &key), "it is good at the start");
    for file in std::fs::read_dir(ledger.path()).expect("lists").flatten() {
        std::fs::remove_file(file.path()).expect("removes");
    }
    testing::eventually("the ledger is away", || {
        gate.metric("tollgate_ledger_available", &[]) == 0.0
    });
    keys(gate.dir.path(), &["revoke", &id]);
    testing::eventually("the key is refused", || !is_let_in(&gate, &key));
    assert!(is_let_in(&gate, &other), "that of the other key is known");
    let (id, third) = made(gate.dir.path(), &budgeted);
    let (_, plain) = made(gate.dir.path(), &["create", "--workload", "chat"]);
    testing::eventually("the new key is good", || is_let_in(&gate, &plain));
    assert!(is_let_in(&gate, &third), "so is the one with a budget");
    testing::eventually("the log says what begins", || {
        gate.log()
            .contains("budgets that keys bring from now on begin with nothing spent")
    });
    keys(gate.dir.path(), &["revoke", &id]);
    testing::eventually("it is refused", || !is_let_in(&gate, &third));
}

#[test]
fn a_budget_that_a_key_brings_while_the_ledger_is_away_is_read_once_it_is_back() {
    let spent = r#"{"id":"c","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":150000,"completion_tokens":1,"total_tokens":150001}}"#;
    let upstream = Upstream::start(|_, _| vec![Step::Send(json_answer(200, spent))]);
    let [ledger, away] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let config = with_ledger(&upstream, ledger.path());
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let (_, key) = made(dir.path(), &["create", "--workload", "chat"]);
    let plain = std::fs::read_to_string(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", plain.as_bytes())]);
    assert!(is_let_in(&gate, &key), "it spends what it likes");
    testing::eventually("that is in the ledger", || {
        gate.metric("tollgate_ledger_rows_total", &[]) == 1.0
    });
    let moved = |from: &Path, to: &Path| {
        for file in std::fs::read_dir(from).expect("lists").flatten() {
            std::fs::rename(file.path(), to.join(file.file_name())).expect("moves");
        }
    };
    let is_available = || gate.metric("tollgate_ledger_available", &[]) == 1.0;
    moved(ledger.path(), away.path());
    testing::eventually("the ledger is away", || !is_available());

    // The budget of another key, written into this one.
    made(
        dir.path(),
        &[
            "create",
            "--workload",
            "chat",
            "--budget",
            "100000tokens/day",
        ],
    );
    let all = std::fs::read_to_string(dir.path().join("keys.jsonl")).expect("a file");
    let with: Value = serde_json::from_str(all.lines().last().expect("a line")).expect("JSON");
    let mut line: Value = serde_json::from_str(plain.trim()).expect("JSON");
    line["budgets"] = with["budgets"].clone();
    std::fs::write(gate.path("keys.jsonl"), format!("{line}\n")).expect("a file");
    testing::eventually("the keys are taken", || {
        gate.log()
            .contains("budgets that keys bring from now on begin with nothing spent")
    });
    moved(away.path(), ledger.path());
    testing::eventually("the ledger is back", is_available);
    let file = std::fs::read_to_string(gate.path("tollgate.yaml")).expect("a file");
    gate.replace("tollgate.yaml", (file + "# again\n").as_bytes());
    testing::eventually("a reload reads what it spent", || {
        gate.metric("tollgate_config_last_reload_success", &[]) == 1.0
    });
    let refused = told(&call(&gate, &[&bearer(&key)]));
    assert_eq!(refused, (402, "insufficient_quota".to_owned()));
}

#[test]
fn a_key_is_revoked_whatever_is_wrong_with_the_rest_of_the_configuration() {
    let upstream = echo();
    let gate = gate(&upstream);
    let (id, key) = made(gate.dir.path(), &["create", "--workload", "chat"]);
    testing::eventually("the gate knows the key", || is_let_in(&gate, &key));
    let config = gate.path("tollgate.yaml");
    let good = std::fs::read_to_string(&config).expect("a file");
    std::fs::write(&config, good.clone() + "ledgr: {}\n").expect("a file");
    testing::eventually("the configuration is refused", || {
        gate.log().contains("configuration refused")
    });
    let see = "docs/troubleshooting.md#configuration-refused-the-old-one-stays-in-force";
    assert!(gate.log().contains(see), "{}", gate.log());
    assert!(is_let_in(&gate, &key), "the old one serves on");
    let listed = keys(gate.dir.path(), &["list", "--json"]);
    assert!(listed.contains(&id), "{listed}");
    keys(gate.dir.path(), &["revoke", &id]);
    testing::eventually("the key is refused", || !is_let_in(&gate, &key));
    assert_invalid(&call(&gate, &[&bearer(&key)]), "a revoked key");
    // A damaged file of keys closes its source then, too.
    std::fs::write(gate.path("keys.jsonl"), "damaged\n").expect("a file");
    testing::eventually("nobody is let in", || {
        told(&call(&gate, &[&bearer(&key)])).0 == 503
    });
}

#[test]
fn an_sdk_sees_a_bad_key_as_its_providers_would_tell_it() {
    let upstream = echo();
    let gate = gate(&upstream);
    for sdk in Sdk::BOTH {
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] });
        let call = json!({ "api_key": "tgk_0", "headers": {}, "body": body });
        let input = json!({ "base_url": format!("http://{}/v1", gate.data), "calls": [call] });
        let outcome = &sdk.run("calls", &input)[0];
        assert_eq!(
            (&outcome["error"], &outcome["code"]),
            (&json!("AuthenticationError"), &json!("invalid_api_key")),
            "{sdk:?}: {outcome}"
        );
    }
    // The dialect of Anthropic has its own form of errors.
    let refused = gate.call(&crate::harness::post(
        "/v1/messages",
        &["x-api-key: tgk_0"],
        r#"{"model":"m","max_tokens":1,"messages":[]}"#,
    ));
    let body: Value = serde_json::from_slice(&refused.body).expect("JSON");
    assert_eq!(
        (refused.status, &body["type"]),
        (401, &json!("error")),
        "{body}"
    );
    assert_eq!(body["error"]["type"], "authentication_error");
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn keys_that_cannot_be_trusted_let_nobody_in_until_they_are_well_again() {
    let upstream = echo();
    let gate = gate(&upstream);
    let (_, key) = made(gate.dir.path(), &["create", "--workload", "ci"]);
    testing::eventually("the gate knows the key", || is_let_in(&gate, &key));
    let path = gate.path("keys.jsonl");
    let good = std::fs::read(&path).expect("a file");
    let unavailable = || {
        let said = told(&call(&gate, &[&bearer(&key)]));
        said == (503, "identity_unavailable".to_owned())
    };
    let heal = || {
        std::fs::write(&path, &good).expect("a file");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, private).expect("permissions");
        testing::eventually("the key is good again", || is_let_in(&gate, &key));
    };
    let damage = |bytes: &[u8]| std::fs::write(&path, bytes).expect("a file");
    let damages: [(&str, &dyn Fn()); 4] = [
        ("a line cut short", &|| damage(&good[..good.len() - 9])),
        ("zeros", &|| damage(&vec![0; good.len()])),
        ("gone", &|| std::fs::remove_file(&path).expect("a file")),
        ("readable by others", &|| {
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(&path, open).expect("permissions");
        }),
    ];
    let shown = || {
        let config = gate.admin("/api/v1/config").json();
        (config["version"].clone(), config["key_files"].clone())
    };
    let is_well = || gate.metric("tollgate_identity_key_file_ok", &["source=\"identity[0]\""]);
    // What is shown follows what is done, by a moment.
    testing::eventually("both keys are shown", || shown().1[0]["keys"] == 2);
    let (version, well) = shown();
    assert_eq!((is_well(), &well[0]["keys"]), (1.0, &json!(2)), "{well}");
    assert_eq!(well[0]["source"], "identity[0]");
    let unwell = json!([{ "source": "identity[0]", "keys": 0, "version": null }]);
    for (what, damaged) in damages {
        damaged();
        testing::eventually(what, unavailable);
        testing::eventually(what, || (is_well(), shown().1) == (0.0, unwell.clone()));
        heal();
        testing::eventually(what, || (is_well(), shown().1) == (1.0, well.clone()));
    }
    // What another key changes is the file's version, and the file's alone.
    keys(gate.dir.path(), &["create", "--workload", "ci"]);
    testing::eventually("the file has another version", || {
        let keys = &shown().1[0];
        keys["keys"] == 3 && keys["version"] != well[0]["version"]
    });
    let hash = |version: &Value| {
        version
            .as_str()
            .and_then(|v| v.split('-').next())
            .map(str::to_owned)
    };
    assert_eq!(hash(&shown().0), hash(&version));
    assert!(gate.log().contains("the file of keys cannot be used"));
}

#[test]
fn a_gate_does_not_start_with_keys_that_others_can_read_or_that_are_damaged() {
    let upstream = echo();
    let dir = tempfile::tempdir().expect("a directory");
    let config = config(&upstream, "[ { keys: { file: keys.jsonl } } ]");
    std::fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    let check = || tollgate(dir.path(), &["check"], &[("COLUMNS", "1000")]);
    let said = |what: &str| {
        let ended = check();
        let words = ended.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(ended.code, Some(1), "{words}");
        assert!(
            words.contains("identity[0].keys.file") && words.contains(what),
            "{words}"
        );
        let run = tollgate(dir.path(), &["run"], &[]);
        assert_eq!(run.code, Some(1), "{}", run.err);
    };
    said("tollgate keys create");
    made(dir.path(), &["create", "--workload", "chat"]);
    assert_eq!(check().code, Some(0));
    let path = dir.path().join("keys.jsonl");
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(&path, open).expect("permissions");
    said("chmod 600");
    std::fs::remove_file(&path).expect("a file");
    made(dir.path(), &["create", "--workload", "chat"]);
    std::fs::write(&path, "{}\n").expect("a file");
    said("line 1");
}

/// Each of them would be a key whose every call is refused.
#[test]
fn a_key_with_a_budget_of_money_in_which_nothing_has_a_price_is_not_made() {
    let upstream = echo();
    let config =
        config(&upstream, "[ { keys: { file: keys.jsonl } } ]") + "ledger: { path: usage.db }\n";
    let in_dollars = "prices: { m: { input: 1, output: 1, per: 1M } }\n";
    let dir = tempfile::tempdir().expect("a directory");
    let create = ["keys", "create", "--workload", "chat", "--budget"];
    let refused = |prices: &str, args: &[&str], says: &str| {
        std::fs::write(dir.path().join("tollgate.yaml"), config.clone() + prices).expect("a file");
        let ended = tollgate(dir.path(), &[&create[..], args].concat(), &[]);
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.out);
        assert!(ended.err.contains(says), "{}", ended.err);
        assert!(!dir.path().join("keys.jsonl").exists(), "{args:?}");
    };
    let none = "nothing that this key may ask for has a price in EUR, so that every call would be refused; prices are in USD";
    refused(in_dollars, &["5EUR/month"], none);
    refused("", &["5EUR/month"], "there are no prices");
    let other = "nothing that this key may ask for has a price in USD";
    refused(in_dollars, &["5USD/month", "--model", "other-*"], other);
    let one = "the model other has no price in USD";
    let both = ["5USD/month", "--model", "m", "--model", "other"];
    refused(in_dollars, &both, one);
    std::fs::write(dir.path().join("tollgate.yaml"), config + in_dollars).expect("a file");
    for good in [&["5USD/month"][..], &["5USD/month", "--model", "m*"]] {
        made(dir.path(), &[&create[1..], good].concat());
    }
}

#[test]
fn a_key_keeps_to_its_own_limits_and_budget_and_its_use_is_reported() {
    let upstream = echo();
    let config = config(&upstream, "[ { keys: { file: keys.jsonl } } ]")
        + "ledger: { path: usage.db }\nprices: { m: { input: 1, output: 1, per: 1M } }\n";
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let limited = [
        "create",
        "--workload",
        "chat",
        "--user",
        "ada",
        "--limit",
        "requests=2/1h",
    ];
    let (id, key) = made(dir.path(), &limited);
    let poor = [
        "create",
        "--workload",
        "chat",
        "--budget",
        "0.000001USD/month",
    ];
    let (_, broke) = made(dir.path(), &poor);
    let (_, free) = made(
        dir.path(),
        &["create", "--workload", "chat", "--model", "other-*"],
    );
    let file = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", &file)]);

    for left in [1, 0] {
        let response = call(&gate, &[&bearer(&key)]);
        assert_eq!(response.status, 200, "{}", response.text());
        let shown = response.header("x-ratelimit-remaining-requests");
        assert_eq!(shown, Some(left.to_string().as_str()));
    }
    let over = call(&gate, &[&bearer(&key)]);
    assert_eq!(told(&over), (429, "rate_limit_exceeded".to_owned()));
    assert!(over.text().contains("for this key"), "{}", over.text());
    // Another key of the same workload has its own.
    let refused = call(&gate, &[&bearer(&broke)]);
    assert_eq!(told(&refused), (402, "request_exceeds_budget".to_owned()));
    let other = call(&gate, &[&bearer(&free)]);
    assert_eq!(told(&other), (404, "model_not_found".to_owned()));

    let records = gate.records(5);
    let ours = records
        .iter()
        .find(|r| r["key"] == *id)
        .expect("a line of the key");
    assert_eq!(
        (&ours["user"], &ours["identity"]),
        (&json!("ada"), &json!("key"))
    );
    let ledger = gate.path("usage.db");
    let ledger = ledger.to_str().expect("UTF-8");
    testing::eventually("the ledger has the rows", || {
        let args = [
            "usage", "report", "--by", "key,user", "--json", "--ledger", ledger,
        ];
        let ended = tollgate(gate.dir.path(), &args, &[]);
        ended.code == Some(0) && ended.out.contains(&id) && ended.out.contains("ada")
    });
}

/// Calls of ten tokens each until the key's budget is used up.
fn spent(gate: &Gate, key: &str) -> usize {
    let body = r#"{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"Hello"}]}"#;
    let ask = || {
        let asked = post("/v1/chat/completions", &[&bearer(key)], body);
        gate.call(&asked).status
    };
    let calls = (0..100).map(|_| ask()).take_while(|status| *status == 200);
    calls.count()
}

#[test]
fn what_a_key_may_is_changed_while_the_gate_runs_and_what_it_spent_stays_spent() {
    let upstream = echo();
    let ledger = tempfile::tempdir().expect("a directory");
    let config = with_ledger(&upstream, ledger.path());
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let small = [
        "create",
        "--workload",
        "chat",
        "--budget",
        "100tokens/month",
        "--tag",
        "team=a",
    ];
    let (id, key) = made(dir.path(), &small);
    let first = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", &first)]);
    let dir = gate.dir.path();
    let before = spent(&gate, &key);
    assert!(
        (1..=10).contains(&before),
        "{before} calls of a budget for 10"
    );

    let says = keys(dir, &["change", &id, "--budget", "200tokens/month"]);
    let is = "budgets: 100tokens/month -> 200tokens/month";
    assert!(says.contains(is) && !says.contains("tags"), "{says}");
    testing::eventually("the larger budget holds", || is_let_in(&gate, &key));
    let after = before + 1 + spent(&gate, &key);
    assert!(
        (before + 1..=20).contains(&after),
        "{after} calls of a budget for 20"
    );

    // What is taken away is gone, and the rest stays.
    let change = [
        "change",
        &id,
        "--without",
        "budgets",
        "--limit",
        "requests=1000/1h",
        "--json",
    ];
    let now: Value = serde_json::from_str(&keys(dir, &change)).expect("JSON");
    assert_eq!(now["tags"], json!({ "team": "a" }));
    assert_eq!(now["limits"][0]["amount"], 1000);
    assert!(
        now.get("budgets").is_none() && now.get("sha256").is_none(),
        "{now}"
    );
    testing::eventually("without a budget", || is_let_in(&gate, &key));
    assert_eq!(spent(&gate, &key), 100, "nothing holds it");
}

#[test]
fn a_change_of_a_key_that_cannot_be_is_refused_and_changes_nothing() {
    let upstream = echo();
    let dir = tempfile::tempdir().expect("a directory");
    let config = config(&upstream, "[ { keys: { file: keys.jsonl } } ]");
    std::fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    let (id, _) = made(dir.path(), &["create", "--workload", "chat"]);
    let (revoked, _) = made(dir.path(), &["create", "--workload", "chat"]);
    keys(dir.path(), &["revoke", &revoked]);
    let file = || std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let before = file();
    for (args, says) in [
        (&[&*id][..], "nothing is to change"),
        (&["0123456789", "--name", "x"], "there is no key"),
        (&[&revoked, "--name", "x"], "is revoked"),
        (&[&id, "--budget", "1tokens/day"], "a budget needs a ledger"),
        (&[&id, "--expires", "0s"], "a key that is never good"),
        (&[&id, "--model", "a*b"], "a * that is not at its end"),
        (
            &[&id, "--name", "x", "--without", "name"],
            "say one of them",
        ),
    ] {
        let ended = tollgate(dir.path(), &[&["keys", "change"], args].concat(), &[]);
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.out);
        assert!(ended.err.contains(says), "{args:?}: {}", ended.err);
    }
    assert_eq!(file(), before);
}

#[test]
fn a_key_is_revoked_by_its_file_where_the_configuration_cannot_be_read() {
    let upstream = echo();
    let gate = gate(&upstream);
    let (id, key) = made(gate.dir.path(), &["create", "--workload", "chat"]);
    testing::eventually("the gate knows the key", || is_let_in(&gate, &key));
    let good = std::fs::read_to_string(gate.path("tollgate.yaml")).expect("a file");
    let run = |args: &[&str]| tollgate(gate.dir.path(), &[&["keys"], args].concat(), &[]);
    for unreadable in [&*format!("{good}workers: 1\n"), "a:\n\t- b\n", ""] {
        gate.replace("tollgate.yaml", unreadable.as_bytes());
        let refused = run(&["revoke", &id]);
        assert_eq!(refused.code, Some(1), "{}", refused.out);
        assert!(refused.err.contains("--file"), "{}", refused.err);
        let listed = run(&["list", "--json", "--file", "keys.jsonl"]);
        assert!(listed.out.contains(&id), "{}", listed.err);
    }
    let absent = run(&["revoke", &id, "--file", "kyes.jsonl"]);
    assert!(absent.err.contains("does not exist"), "{}", absent.err);
    let both = run(&["revoke", &id, "--file", "keys.jsonl", "-c", "tollgate.yaml"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
    assert_eq!(run(&["revoke", &id, "--file", "keys.jsonl"]).code, Some(0));
    testing::eventually("the key is refused", || !is_let_in(&gate, &key));
}

#[test]
fn a_second_rotation_within_the_overlap_of_the_first_is_refused_but_by_force() {
    let upstream = echo();
    let gate = gate(&upstream);
    let (id, first) = made(gate.dir.path(), &["create", "--workload", "chat"]);
    let (_, second) = made(gate.dir.path(), &["rotate", &id, "--overlap", "24h"]);
    let again = ["keys", "rotate", &id, "--overlap", "24h"];
    let refused = tollgate(gate.dir.path(), &again, &[]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("is good until"), "{}", refused.err);
    testing::eventually("both are good", || {
        is_let_in(&gate, &first) && is_let_in(&gate, &second)
    });
    let (_, third) = made(gate.dir.path(), &["rotate", &id, "--force"]);
    testing::eventually("the third is good", || is_let_in(&gate, &third));
    assert!(is_let_in(&gate, &second) && !is_let_in(&gate, &first));
    // Who gives no overlap wants all of them to end.
    let (_, last) = made(gate.dir.path(), &["rotate", &id, "--overlap", "0s"]);
    testing::eventually("the last is good", || is_let_in(&gate, &last));
    assert!(!is_let_in(&gate, &second) && !is_let_in(&gate, &third));
}

#[test]
fn a_key_whose_names_nobody_can_read_or_whose_models_fit_nothing_is_not_made() {
    let upstream = echo();
    let gate = gate(&upstream);
    let before = std::fs::read(gate.path("keys.jsonl")).expect("a file");
    for (option, value) in [
        ("--user", "ada\u{200b}"),
        ("--user", "\u{202e}ada"),
        ("--name", "team\u{feff}"),
        ("--tag", "team=sear\u{2060}ch"),
        ("--tag", "te\u{ad}am=search"),
        ("--user", "ada "),
        ("--user", " ada"),
        ("--tag", "team= search"),
        ("--model", "gpt-4 "),
        ("--model", "gpt-4 gpt-5"),
        ("--model", "gpt\u{200b}-4"),
        ("--model", "gpt-*-mini"),
        ("--model", "gpt-**"),
    ] {
        let create = ["keys", "create", "--workload", "chat", option, value];
        let refused = tollgate(gate.dir.path(), &create, &[]);
        assert_eq!(refused.code, Some(1), "{option} {value:?}: {}", refused.out);
    }
    let after = std::fs::read(gate.path("keys.jsonl")).expect("a file");
    assert_eq!(before, after);
    for good in ["gpt-*", "*", "gpt-4"] {
        made(
            gate.dir.path(),
            &["create", "--workload", "chat", "--model", good],
        );
    }
}

#[test]
fn a_key_that_somebody_else_made_is_its_users_and_follows_its_file() {
    let upstream = echo();
    let identity = "[ { static_keys: { ada: { workload: chat, file: ada }, ci: { workload: ci, inline: canary-of-ci-0123 } } }, { keys: { file: keys.jsonl } } ]";
    let dir = tempfile::tempdir().expect("a directory");
    write_private(&dir.path().join("ada"), "canary-of-ada-0123\n");
    let config = config(&upstream, identity);
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let (_, own) = made(dir.path(), &["create", "--workload", "chat"]);
    let keys = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(
        &config,
        &[("ada", b"canary-of-ada-0123\n"), ("keys.jsonl", &keys)],
    );
    // In any place that SDKs have for it.
    for line in [
        bearer("canary-of-ada-0123"),
        "x-api-key: canary-of-ada-0123".into(),
    ] {
        assert_eq!(call(&gate, &[&line]).status, 200);
    }
    assert_eq!(call(&gate, &[&bearer("canary-of-ci-0123")]).status, 200);
    assert!(is_let_in(&gate, &own), "it is left to the next source");
    for other in ["canary-of-ada-012", "canary-of-ada-01234", "ada", ""] {
        assert_ne!(call(&gate, &[&bearer(other)]).status, 200, "{other}");
    }
    assert_eq!(call(&gate, &[]).status, 401);
    let records = gate.records(4);
    let who: Vec<_> = records
        .iter()
        .map(|record| (record["workload"].as_str(), record["user"].as_str()))
        .collect();
    assert_eq!(
        who[..3],
        [
            (Some("chat"), Some("ada")),
            (Some("chat"), Some("ada")),
            (Some("ci"), Some("ci"))
        ]
    );
    assert_eq!(
        upstream.nth(0).expect("a call").header("authorization"),
        ["Bearer gate-key"]
    );
    let version = || gate.admin("/config").json()["version"].clone();
    let before = version();
    gate.replace("ada", b"canary-of-ada-4567");
    eventually("the new key is good", || {
        is_let_in(&gate, "canary-of-ada-4567")
    });
    assert!(!is_let_in(&gate, "canary-of-ada-0123"));
    eventually("it is another configuration", || version() != before);
    let seen = [gate.log(), gate.admin("/config").text()].concat();
    assert!(!seen.contains("canary"), "{seen}");
}
