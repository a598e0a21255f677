//! The refusal for an exceeded budget, and how SDKs handle it.

use std::time::Duration;

use serde_json::json;

use super::{call, config, engine, left, status};
use crate::harness::{Gate, Sdk, post};

#[test]
fn an_exceeded_budget_is_402_without_retry_after() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let budgets = "a-month: { workload: a, tokens: 1000, per: month }";
    let gate = Gate::start(
        &config(&upstream, &dir.path().join("usage.db"), budgets),
        &[],
    );
    assert_eq!(
        status(&gate, "a", 10, "990,10"),
        200,
        "more than was reserved"
    );
    testing::eventually("it is settled", || left(&gate, "a-month") == 0.0);
    let refused = gate.call(&call("a", 1, "1,1"));
    assert_eq!(refused.status, 402, "{refused:?}");
    let error = &refused.json()["error"];
    assert_eq!(error["type"], "insufficient_quota");
    assert_eq!(error["code"], "insufficient_quota");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("a-month") && message.contains("-01T00:00:00Z"),
        "{message}"
    );
    for absent in ["retry-after", "retry-after-ms"] {
        assert_eq!(refused.header(absent), None);
    }
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    let body = r#"{"model":"m","max_tokens":1,"messages":[]}"#;
    let other = post("/v1/messages", &["x-workload-app: a"], body);
    let other = gate.call(&other);
    assert_eq!(
        (other.status, &other.json()["type"]),
        (402, &"error".into())
    );
    assert_eq!(
        other.json()["error"]["type"],
        "billing_error",
        "in Anthropic's words"
    );
    assert_eq!(status(&gate, "b", 10, "1,1"), 200, "nobody counts it");
    assert_eq!(
        upstream.seen().len(),
        2,
        "the refused call never went there"
    );
    let refusals = ["workload=\"a\"", "code=\"insufficient_quota\""];
    testing::eventually("it is counted", || {
        gate.metric("tollgate_refusals_total", &refusals) == 2.0
    });
    let budget = ["budget=\"a-month\""];
    assert_eq!(gate.metric("tollgate_budget_refused_total", &budget), 2.0);
    assert_eq!(
        gate.metric("http_local_rate_limit_rate_limited", &["workload=\"a\""]),
        0.0
    );
}

#[test]
fn no_sdk_retries_an_exceeded_budget() {
    let cases = [
        (Sdk::BOTH[0], 10, "request_exceeds_budget"),
        (Sdk::BOTH[1], 10, "request_exceeds_budget"),
        (Sdk::BOTH[0], 100, "insufficient_quota"),
        (Sdk::BOTH[1], 100, "insufficient_quota"),
    ];
    for (sdk, amount, code) in cases {
        let upstream = engine(Duration::ZERO);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let budgets = format!("company: {{ tokens: {amount}, per: day }}");
        let config = config(&upstream, &dir.path().join("usage.db"), &budgets);
        let mut gate = Gate::start(&config, &[]);
        let is_spent = code == "insufficient_quota";
        if is_spent {
            assert_eq!(status(&gate, "a", 10, "80,15"), 200);
            testing::eventually("it is settled", || left(&gate, "company") < 10.0);
        }
        let messages =
            json!([{ "role": "user", "content": "a question of more than ten tokens, far more" }]);
        let one = json!({
            "headers": { "x-workload-app": "a" },
            "body": { "model": "m", "max_tokens": 20, "messages": messages },
        });
        let input = json!({
            "base_url": format!("http://{}/v1", gate.data),
            "retries": 2,
            "calls": [one],
        });
        let ended = sdk.run("calls", &input);
        assert_eq!(ended[0]["status"], 402, "{sdk:?}: {ended}");
        assert_eq!(ended[0]["code"], code, "{sdk:?}: {ended}");
        // The program has ended, and so has the gate: no further call can come, and every record is written.
        gate.signal(libc::SIGTERM);
        gate.wait(testing::PATIENCE);
        let before = usize::from(is_spent);
        assert_eq!(gate.records(1).len(), before + 1, "{sdk:?} tried again");
        assert_eq!(upstream.seen().len(), before);
    }
}
