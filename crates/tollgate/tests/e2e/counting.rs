//! The gate's own token count beside the engine's: two independent tokenizers.
//!
//! Not here: how answers are read (unit tests of `tollgate`), golden renderings (`tokens`).

use std::collections::HashMap;
use std::time::Duration;

use engine::{EngineConfig, EngineHandle, spawn_thread};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Connection, Gate, Response, post};
use crate::ledger::{rows, stop};

mod conversations;
mod drift;
mod files;
mod overload;
mod usage_faults;

/// A byte-level BPE of 700 tokens.
const TOKENIZER: &[u8] = include_bytes!("../../../../vectors/tokens/tiny_tokenizer.json");

/// An engine without delays.
fn engine(config: EngineConfig) -> EngineHandle {
    spawn_thread(EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        ..config
    })
    .expect("an engine")
}

/// A gate with a ledger in front of it.
struct CountingGate {
    gate: Gate,
    dir: TempDir,
    calls: Connection,
}

impl CountingGate {
    /// `counting` is the part of the configuration for tokenizers and counting bounds. The engine is asked for nothing
    /// but the calls of a test.
    fn start(engine: std::net::SocketAddr, counting: &str, files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let config = format!(
            "backends: {{ up: {{ url: http://{engine}/v1, tokens: off }} }}\n\
             routes: [ {{ workload: w, backend: up, forward_headers: [x-fault, x-engine-tokens] }} ]\n\
             ledger: {{ path: {} }}\n{counting}\n",
            ledger.display()
        );
        let gate = Gate::start(&config, files);
        let calls = Connection::open(gate.data);
        Self { gate, dir, calls }
    }

    fn call(&mut self, id: &str, path: &str, headers: &[&str], body: &str) -> Response {
        let id = format!("x-request-id: {id}");
        let headers = [&["x-workload-app: w", id.as_str()], headers].concat();
        self.calls.call(&post(path, &headers, body))
    }

    /// A chat call, which has to succeed.
    fn chat(&mut self, id: &str, headers: &[&str], body: &Value) {
        let answer = self.call(id, "/v1/chat/completions", headers, &body.to_string());
        assert_eq!(answer.status, 200, "{body} {}", answer.text());
    }

    /// Ends the gate and returns the rows by request id.
    fn end(self) -> HashMap<String, Value> {
        let ledger = self.dir.path().join("usage.db");
        drop(self.calls);
        stop(self.gate);
        rows(&ledger)
    }
}

/// A number of a row.
fn number(row: &Value, column: &str) -> u64 {
    let value = row[column].as_u64();
    value.unwrap_or_else(|| panic!("{column} in {row}"))
}
