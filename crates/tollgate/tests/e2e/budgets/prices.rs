//! Prices: the cost of calls in ledger rows, reports, metrics and budgets.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{call, engine, left, status, stop};
use crate::harness::{Gate, Upstream, tollgate};

/// Ten dollars for a million tokens: one cent for a thousand.
fn config(upstream: &Upstream, ledger: &Path) -> String {
    format!(
        "backends: {{ up: {{ url: http://{}/v1 }}, euro: {{ url: http://{0}/v1 }} }}\n\
         routes:\n\
         \x20 - {{ workload: [a, b], backend: up, match: {{ model: m }} }}\n\
         \x20 - {{ workload: a, backend: up, match: {{ model: \"x-*\" }} }}\n\
         \x20 - {{ workload: b, backend: euro, match: {{ model: [n, unpriced] }} }}\n\
         groups: {{ team: [a] }}\n\
         prices:\n\
         \x20 m: {{ input: 10, output: 30, request: 0.001 }}\n\
         \x20 n: {{ input: 1, output: 1, at: {{ euro: {{ input: 20, output: 20, currency: EUR }} }} }}\n\
         budgets: {{ dollars: {{ workload: a, money: 0.1, per: month }} }}\n\
         ledger: {{ path: {} }}\n",
        upstream.address,
        ledger.display()
    )
}

fn usage(ledger: &Path, args: &[&str]) -> String {
    let dir = ledger.parent().expect("a directory");
    let path = ledger.display().to_string();
    let ended = tollgate(
        dir,
        &[&["usage", "--ledger", &path][..], args].concat(),
        &[],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out
}

fn to(model: &str, workload: &str, usage: &str) -> Vec<u8> {
    let call = String::from_utf8(call(workload, 10, usage)).expect("text");
    let body = call.split("\r\n\r\n").nth(1).expect("a body");
    let body = body.replace("\"model\":\"m\"", &format!("\"model\":\"{model}\""));
    crate::harness::post(
        "/v1/chat/completions",
        &[&format!("x-workload-app: {workload}")],
        &body,
    )
}

#[test]
fn calls_are_priced_by_model_and_backend_until_the_budget_is_exceeded() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = config(&upstream, &ledger);
    let gate = Gate::start(&config, &[]);
    // 0.001 + 1000 × 0.00001 + 500 × 0.00003 = 0.026 dollars.
    assert_eq!(status(&gate, "a", 500, "1000,500"), 200);
    testing::eventually("it is settled", || {
        (left(&gate, "dollars") - 0.074).abs() < 1e-12
    });
    assert_eq!(gate.call(&to("m", "b", "1,1")).status, 200);
    assert_eq!(gate.call(&to("n", "b", "10,10")).status, 200);
    assert_eq!(gate.call(&to("unpriced", "b", "10,10")).status, 200);
    let unpriced = gate.call(&to("x-1", "a", "1,1"));
    assert_eq!(
        (unpriced.status, unpriced.code().as_str()),
        (403, "model_not_priced")
    );
    assert_eq!(status(&gate, "a", 2500, "1,1"), 402, "0.075 and more");
    let cost = |currency: &str| gate.metric("tollgate_cost_total", &[currency]);
    testing::eventually("costs are counted", || {
        (cost("currency=\"USD\"") - 0.02704).abs() < 1e-12
            && (cost("currency=\"EUR\"") - 0.0004).abs() < 1e-12
            && gate.metric("tollgate_unpriced_total", &["workload=\"b\""]) == 1.0
    });
    stop(gate);

    let mut rows: Vec<Value> = usage(&ledger, &["export", "--form", "jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // Calls of two workers stand in the order in which their rows were written.
    rows.sort_by_key(|row| [&row["workload"], &row["cost"]].map(ToString::to_string));
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
            [
                text("workload"),
                text("budget_group"),
                text("currency"),
                text("cost"),
            ]
        })
        .collect();
    let row = |cells: [&str; 4]| cells.map(str::to_owned);
    assert_eq!(
        seen,
        [
            row(["a", "team", "USD", "0.026"]),
            row(["b", "-", "EUR", "0.0004"]),
            row(["b", "-", "USD", "0.00104"]),
            row(["b", "-", "-", "-"]),
        ]
    );
    assert_eq!(rows[0]["price_id"], rows[2]["price_id"]);
    assert_eq!(rows[0]["price_id"].as_str().map(str::len), Some(16));
    assert_ne!(rows[1]["price_id"], rows[2]["price_id"]);

    let report = usage(&ledger, &["report", "--by", "workload", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(report.to_string().contains("0.00104"), "{report}");
    let focus = usage(&ledger, &["export", "--form", "focus"]);
    let billed: Vec<&str> = focus
        .lines()
        .skip(1)
        .filter_map(|l| l.split(',').next())
        .collect();
    let mut billed: Vec<&str> = billed;
    billed.sort_unstable();
    assert_eq!(
        billed,
        [
            "", "", "0.00001", "0.00003", "0.0002", "0.0002", "0.001", "0.001", "0.01", "0.015"
        ],
        "a charge for each kind of tokens, and unknown is not zero"
    );

    let gate = Gate::start(&config, &[]);
    assert!((left(&gate, "dollars") - 0.074).abs() < 1e-12, "read back");
    stop(gate);
}

/// The rates of a business unit: the same call at two prices, and a statement that says for whom each is.
#[test]
fn a_business_unit_has_rates_of_its_own_and_the_statement_names_them() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: [a, b], backend: up, match: {{ model: m }} }} ]\n\
         groups: {{ team: a }}\n\
         prices:\n\
         \x20 m:\n\
         \x20   - {{ for: {{ group: team }}, input: 5, output: 15 }}\n\
         \x20   - {{ input: 10, output: 30 }}\n\
         ledger: {{ path: {} }}\n",
        upstream.address,
        ledger.display()
    );
    let gate = Gate::start(&config, &[]);
    for workload in ["a", "b"] {
        assert_eq!(status(&gate, workload, 500, "1000,500"), 200);
    }
    stop(gate);
    let rows = usage(&ledger, &["export", "--form", "jsonl"]);
    let cost = |workload: &str| {
        let rows = rows
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let mut rows = rows.filter(|row: &Value| row["workload"] == workload);
        let row = rows.next().expect("a row");
        (row["cost"].clone(), row["price_id"].clone())
    };
    let ((a, of_team), (b, of_all)) = (cost("a"), cost("b"));
    assert_eq!((a, b), ("0.0125".into(), "0.025".into()));
    assert_ne!(of_team, of_all);
    let csv = usage(&ledger, &["statement", "--csv"]);
    for told in [
        "input 5.00, output 15.00 USD per million, for group team",
        "input 10.00, output 30.00 USD per million\"",
    ] {
        assert!(csv.contains(told), "no {told:?} in {csv}");
    }
}

#[test]
fn a_catalogue_prices_what_its_providers_answer_and_own_prices_go_before_it() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let file = dir.path().join("catalogue.yaml");
    let catalogue = |input: u32| {
        let text = format!(
            "acme:\n  source: https://acme.example/prices\n  as_of: 2026-11-28\n  hosts: [127.0.0.1]\n  \
             models: {{ m: {{ input: {input}, output: 30 }}, n: {{ input: 7, output: 7 }} }}\n"
        );
        std::fs::write(&file, text).expect("it can be written");
    };
    catalogue(10);
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }}, elsewhere: {{ url: http://localhost:{}/v1 }} }}\n\
         routes:\n\
         \x20 - {{ workload: b, backend: up, match: {{ model: [m, n] }} }}\n\
         \x20 - {{ workload: a, backend: elsewhere }}\n\
         prices: {{ catalogue: {}, n: {{ input: 1, output: 1 }} }}\n\
         ledger: {{ path: {} }}\n",
        upstream.address,
        upstream.address.port(),
        file.display(),
        ledger.display()
    );
    let gate = Gate::start(&config, &[]);
    let cost = |workload: &str| {
        let named = format!("workload=\"{workload}\"");
        gate.metric("tollgate_cost_total", &[&named])
    };
    // 1000 × 0.00001 + 10 × 0.00003 dollars, and of its own price 20 × 0.000001.
    assert_eq!(gate.call(&to("m", "b", "1000,10")).status, 200);
    assert_eq!(gate.call(&to("n", "b", "10,10")).status, 200);
    testing::eventually("costs are counted", || (cost("b") - 0.01032).abs() < 1e-12);
    // The same model at another address than its provider's.
    assert_eq!(gate.call(&to("m", "a", "1000,10")).status, 200);
    testing::eventually("it is counted", || {
        gate.metric("tollgate_unpriced_total", &["workload=\"a\""]) == 1.0
    });
    // A change of the file is taken, and is another configuration.
    let version = || gate.admin("/config").json()["version"].clone();
    let before = version();
    catalogue(20);
    testing::eventually("it is read anew", || {
        let before = cost("b");
        assert_eq!(gate.call(&to("m", "b", "1000,0")).status, 200);
        testing::eventually("it is counted", || cost("b") > before);
        (cost("b") - before - 0.02).abs() < 1e-12
    });
    assert_ne!(version(), before);
    stop(gate);
}

/// Tiers by the volume of a period: what is used lasts over a restart, and rows and statements name the price.
#[test]
fn a_price_above_a_volume_of_a_budget_is_for_calls_above_it() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: a, backend: up, match: {{ model: m }} }} ]\n\
         prices:\n\
         \x20 m:\n\
         \x20   - {{ for: {{ volume: {{ budget: company, above: 1K }} }}, input: 5, output: 15 }}\n\
         \x20   - {{ input: 10, output: 30 }}\n\
         budgets: {{ company: {{ tokens: 1M, per: month }} }}\n\
         ledger: {{ path: {} }}\n",
        upstream.address,
        ledger.display()
    );
    let gate = Gate::start(&config, &[]);
    // What a call may come to, which it writes itself, is no volume.
    assert_eq!(status(&gate, "a", 900_000, "600,100"), 200);
    testing::eventually("it is settled", || left(&gate, "company") == 999_300.0);
    assert_eq!(status(&gate, "a", 100, "600,100"), 200);
    testing::eventually("it is settled", || left(&gate, "company") == 998_600.0);
    assert_eq!(status(&gate, "a", 100, "60,10"), 200);
    testing::eventually("it is settled", || left(&gate, "company") == 998_530.0);
    stop(gate);
    let gate = Gate::start(&config, &[]);
    assert_eq!(status(&gate, "a", 10, "6,1"), 200);
    stop(gate);

    let rows = usage(&ledger, &["export", "--form", "jsonl"]);
    let mut rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // Calls of two workers stand in the order in which their rows were written.
    rows.sort_by_key(|row| std::cmp::Reverse(row["prompt_tokens"].as_u64()));
    let costs: Vec<_> = rows.iter().map(|row| row["cost"].as_str()).collect();
    // The second call leads above 1,000 tokens, those after it are there.
    let below = Some("0.009");
    assert_eq!(costs, [below, below, Some("0.00045"), Some("0.000045")]);
    assert_eq!(rows[0]["price_id"], rows[1]["price_id"]);
    assert_ne!(rows[1]["price_id"], rows[2]["price_id"]);
    assert_eq!(rows[2]["price_id"], rows[3]["price_id"]);
    let statement = usage(&ledger, &["statement", "--csv"]);
    assert!(
        statement.contains("for calls above 1000 tokens of the budget company"),
        "{statement}"
    );
}
