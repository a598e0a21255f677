//! Calls that a route lists: how they are forwarded, and what they are charged.

use std::path::Path;

use testing::eventually;

use super::{passed, refused, request};
use crate::harness::answer::{json, whole};
use crate::harness::{Gate, Step, Upstream, post};

/// Echoes the body; answers 404 for the path `…/lost`.
fn echo() -> Upstream {
    Upstream::start(|_, seen| {
        if seen.head.contains("/lost ") {
            return vec![Step::Send(json(404, r#"{"error":{"message":"no"}}"#))];
        }
        let kind = "application/octet-stream";
        vec![Step::Send(whole(200, kind, &seen.body))]
    })
}

fn config(upstream: &Upstream, ledger: &Path) -> String {
    format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: ours }} }} }}\n\
         routes:\n  - workload: w\n    backend: up\n    \
         limits: [ {{ tokens: 1000, per: 366d }}, {{ requests: 50, per: 366d }} ]\n    unread:\n      \
         - {{ call: POST /v1/batches, tokens: 300, money: 0.25 }}\n      \
         - {{ call: [GET /v1/batches, \"GET /v1/batches/{{id}}\", POST /v1/files], tokens: 0, money: 0 }}\n\
         budgets: {{ mine: {{ workload: w, money: 1, per: month }} }}\n\
         ledger: {{ path: {} }}\n",
        upstream.address,
        ledger.display()
    )
}

fn left(gate: &Gate) -> f64 {
    gate.metric("tollgate_budget_left", &["budget=\"mine\""])
}

#[test]
fn a_listed_call_passes_unread_at_the_charge_of_its_route() {
    let upstream = echo();
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&upstream, &ledger);
    let mut gate = Gate::start(&config, &[]);
    let who = ["x-workload-app: w"];
    let batch = post("/v1/batches", &who, "{ no JSON at all");
    let (seen, response) = passed(&gate, &upstream, &batch);
    assert_eq!(
        (&seen.body[..], &response.body[..]),
        (&b"{ no JSON at all"[..], &seen.body[..])
    );
    let tokens =
        |r: &crate::harness::Response| r.header("x-ratelimit-remaining-tokens").map(str::to_owned);
    eventually("it is charged", || left(&gate) == 0.75);
    let (_, response) = passed(
        &gate,
        &upstream,
        &request("GET", "/v1/batches/batch_1", "w"),
    );
    let remaining: u64 = tokens(&response)
        .expect("a limit")
        .parse()
        .expect("a number");
    assert_eq!(remaining, 700);
    // A call that the upstream refuses is not charged.
    let lost = request("GET", "/v1/batches/lost", "w");
    assert_eq!(gate.call(&lost).status, 404);
    for _ in 0..2 {
        passed(&gate, &upstream, &batch);
    }
    eventually("all are charged", || left(&gate) == 0.25);
    let message = refused(&gate, &upstream, &batch, 429, "rate_limit_exceeded");
    assert!(message.contains("tokens"), "{message}");
    passed(&gate, &upstream, &request("GET", "/v1/batches", "w"));
    let records = gate.records(7);
    assert!(
        records.iter().all(|r| r["operation"] == "unread"),
        "{records:?}"
    );
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.ended().code(), Some(0));
    // Their cost is on disk, so that the budget has it after a restart.
    let gate = Gate::start(&config, &[]);
    eventually("the budget goes on", || left(&gate) == 0.25);
}

#[test]
fn a_path_template_matches_one_plain_segment_and_only_its_method() {
    let upstream = echo();
    let dir = tempfile::tempdir().expect("a directory");
    let gate = Gate::start(&config(&upstream, &dir.path().join("usage.db")), &[]);
    for (method, path) in [
        ("DELETE", "/v1/batches/batch_1"),
        ("POST", "/v1/batches/batch_1"),
        ("GET", "/v1/batches/"),
        ("GET", "/v1/batches/batch_1/"),
        ("GET", "/v1/batches/batch_1/more"),
        ("GET", "/v1/batches/a%20b"),
        ("GET", "/v1/batches/a.b"),
        ("GET", "/v1/batches/completions"),
        ("GET", "/v1/batches/v1"),
        ("GET", "/v1/Batches"),
        ("GET", "/v1/batches%3Flimit=1"),
        ("GET", "/v1/batche%c5%bf"),
    ] {
        let bytes = request(method, path, "w");
        refused(&gate, &upstream, &bytes, 404, "operation_not_allowed");
    }
    let head = request("HEAD", "/v1/batches/batch_1", "w");
    let mut connection = crate::harness::Connection::open(gate.data);
    connection.send(&head);
    while !connection.unread().ends_with(b"\r\n\r\n") {
        assert!(connection.more(), "a head comes");
    }
    assert!(connection.unread().starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_listed_call_open_at_a_kill_stays_charged() {
    let upstream = Upstream::start(|_, _| vec![Step::silence()]);
    let dir = tempfile::tempdir().expect("a directory");
    let config = config(&upstream, &dir.path().join("usage.db"));
    let mut gate = Gate::start(&config, &[]);
    let mut client = crate::harness::Connection::open(gate.data);
    client.send(&post("/v1/batches", &["x-workload-app: w"], "{}"));
    eventually("it is on disk", || {
        gate.metric("tollgate_ledger_admissions_total", &[]) == 1.0
    });
    assert_eq!(left(&gate), 0.75);
    gate.signal(libc::SIGKILL);
    gate.ended();
    let gate = Gate::start(&config, &[]);
    assert_eq!(left(&gate), 0.75);
}
