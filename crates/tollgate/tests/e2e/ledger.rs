//! The ledger of a running gate: one row for each admitted exchange, however it ended.
//!
//! Not here: every way in which a file can be damaged (tests of `ledger`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Gate, Step, Upstream, chat, free_address, tollgate};

mod damaged;
mod killed;
mod outcomes;
mod postgres;
mod prices;
mod removed;
mod strict;

/// An upstream that answers each chat call with this usage, after a while.
fn engine(prompt: u64, completion: u64, after: Duration) -> Upstream {
    Upstream::start(move |_, _| vec![Step::Sleep(after), Step::Send(answer(prompt, completion))])
}

fn answer(prompt: u64, completion: u64) -> Vec<u8> {
    let total = prompt + completion;
    let body = format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total}}}}}"#
    );
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn config(upstream: SocketAddr, ledger: &Path, billing: &str) -> String {
    format!(
        "backends: {{ up: {{ url: http://{upstream}/v1 }} }}\n\
         routes: [ {{ workload: w, match: {{ model: m }}, backend: up, billing: {billing} }}, \
         {{ workload: w, match: {{ model: loose }}, backend: up }} ]\n\
         ledger: {{ path: {} }}\n",
        ledger.display()
    )
}

fn call(id: &str, model: &str) -> Vec<u8> {
    let id = format!("x-request-id: {id}");
    crate::harness::post(
        "/v1/chat/completions",
        &["x-workload-app: w", &id],
        &chat(model, false),
    )
}

/// Runs `tollgate usage` on this ledger, which has to succeed; returns its output.
pub(crate) fn usage(ledger: &Path, args: &[&str]) -> String {
    let dir = ledger.parent().expect("a directory");
    let path = ledger.display().to_string();
    let args = [&["usage", "--ledger", &path][..], args].concat();
    let ended = tollgate(dir, &args, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out
}

/// Every row by request id; asserts that no request id is duplicated.
pub(crate) fn rows(ledger: &Path) -> HashMap<String, Value> {
    let mut rows = HashMap::new();
    for line in usage(ledger, &["export", "--form", "jsonl"]).lines() {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let id = row["request_id"].as_str().expect("an id").to_owned();
        let twice = rows.insert(id, row);
        assert!(twice.is_none(), "two rows: {twice:?}");
    }
    rows
}

/// Runs `tollgate run` on this configuration, which has to be refused; returns its error output.
fn refused(config: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (data, admin) = (free_address(), free_address());
    let head = format!("listen: {{ data: \"{data}\", admin: \"{admin}\" }}\n");
    std::fs::write(dir.path().join("gate.yaml"), head + config).expect("a file");
    let ended = tollgate(dir.path(), &["run", "-c", "gate.yaml"], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended.err
}

pub(crate) fn stop(mut gate: Gate) {
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
}
