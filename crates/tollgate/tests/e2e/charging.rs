//! What ran is charged, once: calls without an answer, calls that would run twice, and whose count
//! is billed.
//!
//! Invariant: limits, the ledger's row, the metrics and the access log tell the same number.
//! Not here: usage that was reported (`usage`), clients that leave in the middle (`upstream_faults`).

mod broken_responses;
mod reconnects;
mod unanswered;
mod retry_after;
mod billed_count;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Gate, post};
use crate::ledger::{rows, stop};

/// Tokens of the limit's bucket.
const TOKENS: u64 = 10_000_000;

/// A gate with a ledger and a token limit, whose accounts are held against each other at the end.
struct Charged {
    gate: Gate,
    began: Instant,
    ledger: PathBuf,
    _dir: TempDir,
}

impl Charged {
    /// `backends` are the members of the document's `backends`, `names` those that the route tries.
    fn start(backends: &str, names: &str, route: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let config = format!(
            "workers: 1\nbackends: {{ {backends} }}\n\
             routes: [ {{ workload: w, backend: {names}, limits: [ {{ tokens: {TOKENS}, per: 366d }} ]{route} }} ]\n\
             ledger: {{ path: {} }}\n{more}\n",
            ledger.display()
        );
        let gate = Gate::start(&config, &[]);
        Self {
            gate,
            began: Instant::now(),
            ledger,
            _dir: dir,
        }
    }

    fn one(address: SocketAddr, backend: &str) -> Self {
        let backends = format!("up: {{ url: http://{address}/v1{backend} }}");
        Self::start(&backends, "up", "", "")
    }

    /// Tokens that limits were charged.
    fn spent(&self) -> u64 {
        let over = format!(r#"{{"model":"m","max_tokens":{}}}"#, 2 * TOKENS);
        let refused = self.gate.call(&named("over", &over));
        assert_eq!(refused.code(), "request_exceeds_limit");
        let left = refused.header("x-ratelimit-remaining-tokens");
        TOKENS - left.expect("it is told").parse::<u64>().expect("a number")
    }

    /// Ends the gate. Every account must tell the same sums; gives the rows by request id.
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
        // It fills meanwhile, a token in about three seconds.
        let filled = 1 + self.began.elapsed().as_secs() * TOKENS / (366 * 86_400);
        assert!(
            (all.saturating_sub(1 + filled)..=all).contains(&spent),
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

/// A body of at least so many bytes, which caps its output.
fn body(stream: bool, cap: u64, bytes: usize) -> String {
    let text = "word ".repeat(bytes / 5);
    format!(
        r#"{{"model":"m","stream":{stream},"max_tokens":{cap},"messages":[{{"role":"user","content":"{text}"}}]}}"#
    )
}

/// A row's number; nothing where it is null.
fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or(0)
}
