//! Routes billed by the gate's count, and accounts that agree.

use std::time::Duration;

use engine::EngineConfig;
use serde_json::json;

use super::{AuditedGate, number};
use crate::harness::answer::json as json_answer;
use crate::harness::{Connection, Step, Upstream};

const TOKENIZER: &str = "tokenizers: { m: cl100k }\nprices: { m: { input: 2, output: 8 } }\n\
     budgets: { all: { money: 100, per: month }, tokens: { tokens: 1M, per: month } }";

fn engine(inter_token: Duration) -> engine::EngineHandle {
    engine::spawn_thread(EngineConfig {
        models: vec!["m".to_owned()],
        ttft: Duration::ZERO,
        inter_token,
        ..EngineConfig::default()
    })
    .expect("an engine")
}

fn call(id: &str, stream: bool, cap: u32, fault: &str) -> Vec<u8> {
    let body = json!({"model": "m", "stream": stream, "max_tokens": cap,
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}]});
    let (id, fault) = (
        format!("x-request-id: {id}"),
        format!("x-fault: usage={fault}"),
    );
    let mut headers = vec!["x-workload-app: w", &id];
    if fault != "x-fault: usage=none" {
        headers.push(&fault);
    }
    crate::harness::post("/v1/chat/completions", &headers, &body.to_string())
}

/// What remains of a budget.
fn left(audited: &AuditedGate, budget: &str) -> f64 {
    let label = format!("budget=\"{budget}\"");
    audited.gate.metric("tollgate_budget_left", &[&label])
}

#[test]
fn where_the_gates_count_is_billed_misreported_usage_is_ignored() {
    let engine = engine(Duration::ZERO);
    let backends = format!("up: {{ url: http://{}/v1 }}", engine.addr());
    let by = ", match: { model: m }, billed_by: counted, forward_headers: [x-fault]";
    let audited = AuditedGate::start(&backends, "up", by, TOKENIZER);
    for stream in [false, true] {
        for fault in ["none", "x10", "zero", "missing"] {
            let answer = audited
                .gate
                .call(&call(&format!("{fault}-{stream}"), stream, 30, fault));
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
    audited.gate.records(8);
    let (money, tokens) = (left(&audited, "all"), left(&audited, "tokens"));
    let rows = audited.end(8);
    for honest in [&rows["none-false"], &rows["none-true"]] {
        let reported = number(honest, "completion_reported");
        let counted = number(honest, "completion_counted");
        assert!(counted.abs_diff(reported) <= 4, "{honest}");
    }
    let mut sums = [0, 0];
    for row in rows.values() {
        assert_eq!(row["prompt_source"], "counted", "{row}");
        assert_eq!(row["completion_source"], "counted", "{row}");
        assert_eq!(row["prompt_tokens"], row["prompt_counted"], "{row}");
        assert_eq!(row["prompt_tokens"], rows["none-false"]["prompt_tokens"]);
        // An answer may end before its cap; whatever usage is reported, it has no more tokens than the cap.
        let output = number(row, "completion_tokens");
        assert!((1..=34).contains(&output), "{row}");
        let prompt = number(row, "prompt_tokens");
        assert_eq!(
            number(row, "cost_pico"),
            prompt * 2_000_000 + output * 8_000_000,
            "{row}"
        );
        sums[0] += prompt + output;
        sums[1] += number(row, "cost_pico");
    }
    assert!(
        number(&rows["x10-true"], "prompt_reported")
            >= 10 * number(&rows["x10-true"], "prompt_tokens") - 10
    );
    #[expect(clippy::cast_precision_loss, reason = "sums of tests are small")]
    let (spent, cost) = (sums[0] as f64, sums[1] as f64 / 1e12);
    assert!(
        (1_000_000.0 - tokens - spent).abs() < 0.5,
        "{tokens} left, {spent}"
    );
    assert!((100.0 - money - cost).abs() < 1e-6, "{money} left, {cost}");
    engine.stop();
}

#[test]
fn an_error_that_reports_usage_is_charged_where_reports_are_billed_alone() {
    let usage = r#"{"error":{"message":"m"},"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020}}"#;
    let upstream = Upstream::start(move |_, _| vec![Step::Send(json_answer(500, usage))]);
    let backends = format!("up: {{ url: http://{}/v1 }}", upstream.address);
    for (by, charged) in [("reported", 1020), ("counted", 0)] {
        let route = format!(", match: {{ model: m }}, billed_by: {by}");
        let audited = AuditedGate::start(&backends, "up", &route, TOKENIZER);
        let answer = audited.gate.call(&call("failed", false, 20, "none"));
        assert_eq!(answer.status, 500, "{}", answer.text());
        let rows = audited.end(1);
        let row = &rows["failed"];
        let tokens = |name: &str| row[name].as_u64().unwrap_or(0);
        let both = tokens("prompt_tokens") + tokens("completion_tokens");
        assert_eq!(both, charged, "{by}: {row}");
    }
}

#[test]
fn limits_budgets_metrics_log_and_ledger_agree_however_exchanges_end() {
    let engine = engine(Duration::from_millis(5));
    let backends = format!("up: {{ url: http://{}/v1 }}", engine.addr());
    for by in ["reported", "counted"] {
        let route = format!(", match: {{ model: m }}, billed_by: {by}, forward_headers: [x-fault]");
        let audited = AuditedGate::start(&backends, "up", &route, TOKENIZER);
        let mut calls = 0;
        for stream in [false, true] {
            for fault in ["none", "missing", "negative", "x10"] {
                calls += 1;
                let id = format!("whole-{fault}-{stream}");
                let answer = audited.gate.call(&call(&id, stream, 20, fault));
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        }
        // The client disconnects during the answer, at different places, and before any byte of it.
        for events in [0, 1, 2, 5, 9] {
            calls += 1;
            let mut leaving = Connection::open(audited.gate.data);
            leaving.send(&call(&format!("left-{events}"), events > 0, 400, "none"));
            if events == 0 {
                testing::eventually("it runs", || engine.stats().running == 1);
            }
            while String::from_utf8_lossy(leaving.unread())
                .matches("data:")
                .count()
                < events
            {
                assert!(leaving.more(), "events come");
            }
            drop(leaving);
            testing::eventually("it is cancelled", || engine.stats().running == 0);
        }
        audited.gate.records(calls);
        let (money, tokens) = (left(&audited, "all"), left(&audited, "tokens"));
        let rows = audited.end(calls);
        let sources: std::collections::BTreeSet<&str> = rows
            .values()
            .filter_map(|row| row["completion_source"].as_str())
            .collect();
        assert!(
            sources.contains("counted") && sources.contains("estimated"),
            "{sources:?}"
        );
        assert_eq!(
            sources.contains("reported"),
            by == "reported",
            "{sources:?}"
        );
        let sum = |column: &str| -> u64 { rows.values().map(|row| number(row, column)).sum() };
        let all = sum("prompt_tokens") + sum("completion_tokens");
        #[expect(clippy::cast_precision_loss, reason = "sums of tests are small")]
        let (spent, cost) = (all as f64, sum("cost_pico") as f64 / 1e12);
        assert!(
            (1_000_000.0 - tokens - spent).abs() < 0.5,
            "{by}: {tokens} left, {spent}"
        );
        assert!(
            (100.0 - money - cost).abs() < 1e-6,
            "{by}: {money} left, {cost}"
        );
    }
    engine.stop();
}

#[test]
fn a_route_billed_by_the_gates_count_needs_a_tokenizer_for_its_models() {
    let check = |route: &str, tokenizers: &str| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("tollgate.yaml");
        let config = format!(
            "backends: {{ up: {{ url: http://127.0.0.1:9/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up, billed_by: counted{route} }} ]\n{tokenizers}\n"
        );
        std::fs::write(&file, config).expect("a file");
        let file = file.display().to_string();
        let ended = crate::harness::tollgate(dir.path(), &["check", "-c", &file], &[]);
        (ended.code, ended.err + &ended.out)
    };
    for (route, tokenizers) in [
        ("", ""),
        ("", "tokenizers: { m: cl100k }"),
        (", match: { model: [m, n] }", "tokenizers: { m: cl100k }"),
        (", match: { model: \"m*\" }", "tokenizers: { m: cl100k }"),
        (", model: n", "tokenizers: { m: cl100k }"),
    ] {
        let (code, says) = check(route, tokenizers);
        assert_ne!(code, Some(0), "{route} {tokenizers}");
        assert!(
            says.contains("billed_by") && says.contains("no tokenizer is for"),
            "{says}"
        );
    }
    for (route, tokenizers) in [
        (", match: { model: m }", "tokenizers: { m: cl100k }"),
        (
            ", match: { model: \"mist*\" }",
            "tokenizers: { \"m*\": cl100k }",
        ),
        (", model: m", "tokenizers: { m: cl100k }"),
        ("", "tokenizers: { \"*\": cl100k }"),
    ] {
        let (code, says) = check(route, tokenizers);
        assert_eq!(code, Some(0), "{route} {tokenizers}: {says}");
    }
}
