//! Roles, reloads, the end of a gate and its keys, over the admin API.
//!
//! Not here: what bodies are taken, page for page (`admin`'s own tests).

use serde_json::{Value, json};

use crate::fixture::answer;
use crate::harness::{Connection, Gate, Response, Step, Upstream, chat, post};

const BEARERS: &str = "admin:\n  bearer: { inline: canary-all }\n  bearers:\n    \
     prometheus: { inline: canary-read, roles: read }\n    \
     ops: { inline: canary-operate, roles: [operate] }\n    \
     portal: { file: secrets/portal, roles: [keys, read] }\n";

/// A gate with keys, of which none is made yet.
fn gate(upstream: &Upstream) -> Gate {
    gate_with(upstream, "")
}

fn gate_with(upstream: &Upstream, extra: &str) -> Gate {
    let files: [(&str, &[u8]); 2] = [("keys.jsonl", b""), ("secrets/portal", b"canary-keys\n")];
    let extra = BEARERS.to_owned() + extra;
    Gate::start_with_private(&config(upstream, &extra), &files)
}

fn config(upstream: &Upstream, extra: &str) -> String {
    let address = upstream.address;
    format!(
        "workers: 1\nidentity: [ {{ keys: {{ file: keys.jsonl }} }} ]\n\
         backends: {{ up: {{ url: http://{address}/v1, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: [chat, ci], backend: up }} ]\n{extra}"
    )
}

fn echo() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer())])
}

/// A request on the admin listener, with a body where there is one.
pub(super) fn ask(gate: &Gate, line: &str, secret: &str, extra: &str, body: &str) -> Response {
    let kind = match body {
        "" => String::new(),
        body => format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ),
    };
    let request = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {secret}\r\n{extra}{kind}connection: close\r\n\r\n{body}"
    );
    Connection::open(gate.admin).call(request.as_bytes())
}

fn told(response: &Response) -> (u16, String) {
    (response.status, response.code())
}

/// The answer to a call of a model with this key.
fn call(gate: &Gate, key: &str) -> Response {
    let line = format!("authorization: Bearer {key}");
    gate.call(&post("/v1/chat/completions", &[&line], &chat("m", false)))
}

#[test]
fn a_credential_opens_what_its_roles_say_and_the_log_names_it() {
    let upstream = echo();
    let gate = gate(&upstream);
    for (line, allowed) in [
        (
            "GET /metrics",
            &["canary-all", "canary-read", "canary-keys"][..],
        ),
        (
            "GET /api/v1/limits",
            &["canary-all", "canary-read", "canary-keys"],
        ),
        ("GET /api/v1/keys", &["canary-all", "canary-keys"]),
        ("POST /api/v1/reload", &["canary-all", "canary-operate"]),
    ] {
        for secret in ["canary-all", "canary-read", "canary-operate", "canary-keys"] {
            let got = ask(&gate, line, secret, "", "");
            if allowed.contains(&secret) {
                assert_eq!(got.status, 200, "{line} {secret}: {}", got.text());
            } else {
                assert_eq!(
                    told(&got),
                    (403, "role_required".to_owned()),
                    "{line} {secret}"
                );
            }
        }
        let unknown = ask(&gate, line, "canary-none", "", "");
        assert_eq!(told(&unknown), (401, "credential_required".to_owned()));
    }
    let caller = ask(&gate, "GET /api/v1/caller", "canary-keys", "", "").json();
    assert_eq!(
        caller,
        json!({ "name": "portal", "by": "bearer", "roles": ["read", "keys"] })
    );
    let log = gate.log();
    assert!(log.contains("the admin API asked for a reload") && log.contains("by=\"ops\""));
    let config = ask(&gate, "GET /config", "canary-read", "", "").text();
    assert!(
        !config.contains("canary") && !log.contains("canary"),
        "{config}"
    );
    // A secret that is rotated keeps its roles.
    gate.replace("secrets/portal", b"canary-next\n");
    testing::eventually("the new secret counts", || {
        ask(&gate, "GET /api/v1/keys", "canary-next", "", "").status == 200
    });
    assert_eq!(
        ask(&gate, "GET /api/v1/keys", "canary-keys", "", "").status,
        401
    );
}

#[test]
fn without_a_credential_a_loopback_gate_is_read_and_not_changed() {
    let upstream = echo();
    let files: [(&str, &[u8]); 1] = [("keys.jsonl", b"")];
    let gate = Gate::start_with_private(&config(&upstream, ""), &files);
    assert_eq!(gate.admin("/metrics").status, 200);
    for line in [
        "GET /api/v1/keys",
        "POST /api/v1/keys",
        "POST /api/v1/reload",
        "POST /api/v1/drain",
    ] {
        let refused = ask(&gate, line, "x", "", "");
        assert_eq!(told(&refused), (403, "role_required".to_owned()), "{line}");
        assert!(
            refused.text().contains("admin: { bearers:"),
            "{}",
            refused.text()
        );
    }
}

#[test]
fn a_key_is_made_used_changed_rotated_and_revoked_over_the_api() {
    let upstream = echo();
    let gate = gate_with(&upstream, "ledger: { path: usage.db }\n");
    let secret = "canary-keys";
    let wanted = json!({
        "workload": "chat", "user": "ada", "name": "laptop", "tags": { "team": "search" },
        "models": ["m"], "limits": [{ "of": "requests", "amount": 50, "per_s": 60 }], "expires": "90d",
        "budgets": [{ "unit": "tokens", "amount": "100000", "per": "day" }],
    });
    let made = ask(&gate, "POST /api/v1/keys", secret, "", &wanted.to_string());
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let made = made.json();
    let text = |value: &Value, name: &str| value[name].as_str().expect("text").to_owned();
    let (id, key) = (text(&made, "id"), text(&made, "key"));
    assert_eq!(made["in_force"], true);
    // The answer comes once the gate knows the key.
    let used = call(&gate, &key);
    assert_eq!(used.status, 200, "{}", used.text());
    assert_eq!(used.header("x-ratelimit-limit-requests"), Some("50"));
    let record = gate.records(1).pop().expect("a line");
    assert_eq!(
        (&record["key"], &record["user"]),
        (&json!(id), &json!("ada"))
    );

    let listed = ask(&gate, "GET /api/v1/keys", secret, "", "");
    let row = &listed.json()["keys"][0];
    assert_eq!((&row["id"], &row["state"]), (&json!(id), &json!("active")));
    for name in [
        "workload", "user", "name", "tags", "models", "limits", "budgets",
    ] {
        assert_eq!(row[name], wanted[name], "{name}");
    }
    let one = ask(&gate, &format!("GET /api/v1/keys/{id}"), secret, "", "");
    let mut shown = one.json();
    let standing = shown.as_object_mut().expect("an object").remove("standing");
    assert_eq!(shown, *row);
    let budget = &standing.expect("budgets")[0];
    assert_eq!(
        [&budget["name"], &budget["unit"], &budget["period"]],
        [&Value::Null, &json!("tokens"), &json!("day")]
    );
    let held = budget["held"].as_u64().expect("a number");
    assert!((1..100_000).contains(&held), "{budget}");
    assert_eq!(budget["remaining"], 100_000 - held);
    for page in [listed.text(), one.text(), gate.log()] {
        assert!(
            !page.contains(&key[15..]) && !page.contains("sha256"),
            "{page}"
        );
    }

    let line = format!("PATCH /api/v1/keys/{id}");
    let change = r#"{"limits":[{"of":"requests","amount":40,"per_s":60}],"expires":null}"#;
    let now = ask(&gate, &line, secret, "", change).json();
    assert_eq!(
        (&now["in_force"], now.get("expires_unix_s")),
        (&json!(true), None)
    );
    assert_eq!(now["budgets"], wanted["budgets"]);
    let used = call(&gate, &key);
    assert_eq!(used.header("x-ratelimit-limit-requests"), Some("40"));

    let line = format!("POST /api/v1/keys/{id}/rotate");
    let rotated = ask(&gate, &line, secret, "", r#"{"overlap":"1h"}"#).json();
    let next = text(&rotated, "key");
    assert_eq!(rotated["state"], "rotating");
    for good in [&key, &next] {
        assert_eq!(call(&gate, good).status, 200);
    }
    let line = format!("DELETE /api/v1/keys/{id}");
    let begun = testing::Began::now();
    let revoked = ask(&gate, &line, secret, "", "");
    assert_eq!(
        (revoked.status, &revoked.json()["state"]),
        (200, &json!("revoked"))
    );
    for bad in [&key, &next] {
        assert_eq!(told(&call(&gate, bad)), (401, "invalid_api_key".to_owned()));
    }
    println!("refused {} after it was revoked", begun.shown());
    let line = format!("POST /api/v1/keys/{id}/rotate");
    let refused = ask(&gate, &line, secret, "", "");
    assert_eq!(told(&refused), (409, "key_revoked".to_owned()));
    let log = gate.log();
    for what in ["key made", "key changed", "key rotated", "key revoked"] {
        let is_told = |line: &&str| line.contains(what) && line.contains("by=\"portal\"");
        let line = log.lines().find(is_told);
        assert!(line.is_some_and(|line| line.contains(&id)), "{what}: {log}");
    }
    // The command line sees the same keys.
    let path = gate.path("tollgate.yaml");
    let path = path.to_str().expect("UTF-8");
    let listed = crate::harness::tollgate(
        gate.dir.path(),
        &["keys", "list", "--json", "-c", path],
        &[],
    );
    let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
    assert_eq!(
        (&listed[0]["id"], &listed[0]["state"]),
        (&json!(id), &json!("revoked"))
    );
}

#[test]
fn what_cannot_be_a_key_is_refused_and_the_file_stays() {
    let upstream = echo();
    let gate = gate(&upstream);
    for (body, says) in [
        (r#"{"workload":"nobody"}"#, "there are chat, ci"),
        (r#"{"workload":"chat","user":""}"#, "1 to 256 bytes"),
        (
            r#"{"workload":"chat","colour":"red"}"#,
            "unknown field `colour`",
        ),
        (r#"{"workload":"chat","models":[]}"#, "`models` is empty"),
        (r#"{"workload":["chat"]}"#, "workload: invalid type"),
        (
            r#"{"workload":"chat","expires":"soon"}"#,
            "expires: write a number and s, m, h, d or w",
        ),
        (
            r#"{"workload":"chat","limits":[{"of":"calls","amount":1,"per_s":1}]}"#,
            "limits[0].of",
        ),
        (
            r#"{"workload":"chat","limits":[{"of":"tokens","amount":0,"per_s":1}]}"#,
            "8 limits",
        ),
        (
            r#"{"workload":"chat","budgets":[{"unit":"USD","amount":"1","per":"day"}]}"#,
            "needs a ledger",
        ),
        (
            r#"{"workload":"chat","id":"0123456789"}"#,
            "unknown field `id`",
        ),
        ("{\"workload\":\"chat\",\"name\":\"\u{7}\"}", ""),
        ("not JSON", "the body"),
    ] {
        let refused = ask(&gate, "POST /api/v1/keys", "canary-keys", "", body);
        assert_eq!(
            told(&refused),
            (400, "invalid_request".to_owned()),
            "{body}"
        );
        assert!(refused.text().contains(says), "{body}: {}", refused.text());
    }
    assert_eq!(std::fs::read(gate.path("keys.jsonl")).expect("a file"), b"");
    // A file that is damaged is not written over.
    std::fs::write(gate.path("keys.jsonl"), "damaged\n").expect("a file");
    let refused = ask(
        &gate,
        "POST /api/v1/keys",
        "canary-keys",
        "",
        r#"{"workload":"chat"}"#,
    );
    assert_eq!(told(&refused), (503, "keys_unavailable".to_owned()));
    assert!(refused.text().contains("line 1"), "{}", refused.text());
    let left = std::fs::read(gate.path("keys.jsonl")).expect("a file");
    assert_eq!(left, b"damaged\n");
    // Nor is one that was lost made anew, without the keys that were in it.
    std::fs::remove_file(gate.path("keys.jsonl")).expect("it is there");
    for (line, body) in [
        ("POST /api/v1/keys", r#"{"workload":"chat"}"#),
        ("GET /api/v1/keys", ""),
    ] {
        let refused = ask(&gate, line, "canary-keys", "", body);
        assert_eq!(
            told(&refused),
            (503, "keys_unavailable".to_owned()),
            "{line}"
        );
    }
    assert!(!gate.path("keys.jsonl").exists());
}

#[test]
fn keys_made_at_the_same_time_are_all_there() {
    let upstream = echo();
    let gate = gate(&upstream);
    let made: Vec<String> = std::thread::scope(|scope| {
        let make = || {
            let made = ask(
                &gate,
                "POST /api/v1/keys",
                "canary-keys",
                "",
                r#"{"workload":"ci"}"#,
            );
            assert_eq!(made.status, 201, "{}", made.text());
            made.json()["key"].as_str().expect("a key").to_owned()
        };
        let makers: Vec<_> = (0..12).map(|_| scope.spawn(make)).collect();
        makers
            .into_iter()
            .map(|maker| maker.join().expect("a key"))
            .collect()
    });
    for key in &made {
        assert_eq!(call(&gate, key).status, 200);
    }
    let page = ask(&gate, "GET /api/v1/keys?limit=5", "canary-keys", "", "").json();
    assert_eq!(page["keys"].as_array().map(Vec::len), Some(5));
    let after = page["next"].as_str().expect("there are more");
    let line = format!("GET /api/v1/keys?after={after}");
    let rest = ask(&gate, &line, "canary-keys", "", "").json();
    assert_eq!(
        (rest["keys"].as_array().map(Vec::len), &rest["next"]),
        (Some(7), &Value::Null)
    );
}

#[test]
fn a_reload_is_asked_for_and_answered_with_what_came_of_it() {
    let upstream = echo();
    let gate = gate(&upstream);
    let reload = || ask(&gate, "POST /api/v1/reload", "canary-operate", "", "");
    let first = reload().json()["version"]
        .as_str()
        .expect("a version")
        .to_owned();
    gate.reconfigure(&config(
        &upstream,
        &format!("{BEARERS}cors: {{ origins: \"*\" }}\n"),
    ));
    let second = reload().json()["version"]
        .as_str()
        .expect("a version")
        .to_owned();
    assert_ne!(
        first.split('-').next(),
        second.split('-').next(),
        "{first} {second}"
    );
    gate.reconfigure(&config(&upstream, &format!("{BEARERS}colour: red\n")));
    let refused = reload();
    assert_eq!(told(&refused), (422, "configuration_refused".to_owned()));
    assert!(refused.text().contains("colour"), "{}", refused.text());
    let page = ask(&gate, "GET /api/v1/config", "canary-read", "", "").json();
    assert_eq!(page["version"], second, "the old one serves on");
}

#[test]
fn keys_are_read_while_another_process_holds_their_lock_and_changes_wait() {
    let upstream = echo();
    let gate = gate(&upstream);
    let lock = std::fs::File::create(gate.path("keys.jsonl.lock")).expect("a file");
    lock.lock().expect("nobody holds it");
    std::thread::scope(|scope| {
        let make = || {
            ask(
                &gate,
                "POST /api/v1/keys",
                "canary-keys",
                "",
                r#"{"workload": "chat"}"#,
            )
        };
        let changes: Vec<_> = (0..6).map(|_| scope.spawn(make)).collect();
        for _ in 0..50 {
            let listed = ask(&gate, "GET /api/v1/keys", "canary-keys", "", "");
            assert_eq!(listed.status, 200, "{}", listed.text());
        }
        assert!(changes.iter().all(|change| !change.is_finished()));
        lock.unlock().expect("it was held");
        for change in changes {
            assert_eq!(change.join().expect("no panic").status, 201);
        }
    });
}

#[test]
fn a_gate_that_is_told_to_drain_ends() {
    let upstream = echo();
    let mut gate = gate(&upstream);
    let refused = ask(&gate, "POST /api/v1/drain", "canary-read", "", "");
    assert_eq!(told(&refused), (403, "role_required".to_owned()));
    let told = ask(&gate, "POST /api/v1/drain", "canary-operate", "", "");
    assert_eq!(
        (told.status, told.json()),
        (202, json!({ "draining": true }))
    );
    assert!(gate.wait(testing::PATIENCE).success());
    let log = gate.log();
    assert!(
        log.contains("the gate stops: the admin API asked for it") && log.contains("by=\"ops\""),
        "{log}"
    );
}

#[test]
fn a_web_page_changes_nothing_whatever_it_brings() {
    let upstream = echo();
    let gate = gate(&upstream);
    for extra in [
        "origin: https://app.example\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
    ] {
        for line in [
            "POST /api/v1/keys",
            "POST /api/v1/reload",
            "DELETE /api/v1/keys/0123456789",
        ] {
            let refused = ask(&gate, line, "canary-all", extra, "");
            assert_eq!(
                told(&refused),
                (403, "origin_not_allowed".to_owned()),
                "{line} {extra}"
            );
        }
    }
    // What a form can send is no JSON.
    let form = "content-type: text/plain\r\ncontent-length: 19\r\n\r\n{\"workload\":\"chat\"}";
    let refused = ask(&gate, "POST /api/v1/keys", "canary-all", form, "");
    assert_eq!(told(&refused), (415, "unsupported_media_type".to_owned()));
    assert_eq!(std::fs::read(gate.path("keys.jsonl")).expect("a file"), b"");
}
