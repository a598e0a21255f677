//! What ran is charged once: unanswered calls, retried calls, and routes that bill the gate's own count.
//!
//! Invariant: limits, ledger rows, metrics and access log agree.
//! Not here: reported usage (`usage`), clients that disconnect during an answer (`upstream_faults`).

mod billed_count;
mod broken_responses;
mod reconnects;
mod retry_after;
mod unanswered;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Gate, post};
use crate::ledger::{rows, stop};

/// Tokens of the limit's bucket, which takes in one in half a minute: a tenth of them in a year.
const TOKENS: u64 = 10_000_000;
/// What it takes in at most while a test runs.
const REFILL: u64 = 5;

/// A gate with a ledger and a token limit; `end` checks that all its accounts agree.
struct AuditedGate {
    gate: Gate,
    ledger: PathBuf,
    _dir: TempDir,
}

impl AuditedGate {
    /// `backends` are the members of the document's `backends`, `names` those that the route tries.
    fn start(backends: &str, names: &str, route: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let config = format!(
            "workers: 1\nbackends: {{ {backends} }}\n\
             routes: [ {{ workload: w, backend: {names}, limits: [ {{ tokens: {}, per: 366d, burst: {TOKENS} }} ]{route} }} ]\n\
             ledger: {{ path: {} }}\n{more}\n",
            TOKENS / 10,
            ledger.display()
        );
        let gate = Gate::start(&config, &[]);
        Self {
            gate,
            ledger,
            _dir: dir,
        }
    }

    fn one(address: SocketAddr, backend: &str) -> Self {
        let backends = format!("up: {{ url: http://{address}/v1{backend} }}");
        Self::start(&backends, "up", "", "")
    }

    /// Tokens that were charged to the limit.
    fn spent(&self) -> u64 {
        let over = format!(r#"{{"model":"m","max_tokens":{}}}"#, 2 * TOKENS);
        let refused = self.gate.call(&named("over", &over));
        assert_eq!(refused.code(), "request_exceeds_limit");
        let left = refused.header("x-ratelimit-remaining-tokens");
        TOKENS
            - left
                .expect("the header is set")
                .parse::<u64>()
                .expect("a number")
    }

    /// Ends the gate and asserts that every account has the same sums; returns the rows by request id.
    fn end(self, exchanges: usize) -> HashMap<String, Value> {
        let lines = self.gate.records(exchanges);
        let spent = self.spent();
        let metric = |kind: &str| {
            let kind = format!("gen_ai_token_type=\"{kind}\"");
            self.gate
                .metric("gen_ai_client_token_usage_token_sum", &[&kind])
        };
        let metrics = [metric("input"), metric("output")];
        stop(self.gate);
        let rows = rows(&self.ledger);
        let sum = |column: &str| -> u64 { rows.values().map(|row| number(row, column)).sum() };
        let sums = [sum("prompt_tokens"), sum("completion_tokens")];
        for (sum, metric) in sums.into_iter().zip(metrics) {
            #[expect(clippy::cast_precision_loss, reason = "sums of tests are small")]
            let sum = sum as f64;
            assert!((sum - metric).abs() < 0.5, "{sums:?}, {metrics:?}");
        }
        let all = sums[0] + sums[1];
        assert!(
            (all.saturating_sub(REFILL)..=all).contains(&spent),
            "{all}, {spent}"
        );
        for line in lines.iter().filter(|line| line["outcome"] != "refused") {
            let row = &rows[line["request_id"].as_str().expect("an id")];
            for member in [
                "prompt_tokens",
                "completion_tokens",
                "attempts",
                "outcome",
                "estimate_reason",
                "unconfirmed_attempts",
                "unconfirmed_tokens",
            ] {
                assert_eq!(line[member], row[member], "{member}: {line}, {row}");
            }
        }
        rows
    }
}

/// A chat call with this id.
fn named(id: &str, body: &str) -> Vec<u8> {
    let id = format!("x-request-id: {id}");
    post("/v1/chat/completions", &["x-workload-app: w", &id], body)
}

/// A chat body of at least `bytes` bytes with an output cap.
fn body(stream: bool, cap: u64, bytes: usize) -> String {
    let text = "word ".repeat(bytes / 5);
    format!(
        r#"{{"model":"m","stream":{stream},"max_tokens":{cap},"messages":[{{"role":"user","content":"{text}"}}]}}"#
    )
}

/// A number of a row; 0 where it is null.
fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or(0)
}
