//! Budgets end to end: nested, persistent across restarts, never overspent.
//!
//! Invariant: what engines generate never exceeds the budget by more than the overruns of single
//! calls; a refused call never reaches the engine.
//! Not here: the arithmetic of one budget (`policy::budget`).

mod nested;
mod persistence;
mod prices;
mod refused;

use std::path::Path;
use std::time::Duration;

use crate::harness::answer::{counts, json};
use crate::harness::{Gate, Seen, Step, Upstream, post};

/// Answers after a delay and reports the usage that the call's `user` member names, as `prompt,completion`.
fn engine(after: Duration) -> Upstream {
    Upstream::start(move |_, seen| vec![Step::Sleep(after), Step::Send(json(200, &answer(seen)))])
}

fn answer(seen: &Seen) -> String {
    let call = seen.json();
    let (prompt, completion) = call["user"]
        .as_str()
        .and_then(|user| user.split_once(','))
        .expect("a call says what it uses");
    let number = |text: &str| text.parse().expect("a count");
    let counts = counts(number(prompt), number(completion));
    format!(r#"{{"id":"c","choices":[],"usage":{counts}}}"#)
}

/// Workloads `a`, `b` and `c` on a route that sends the model `m`, under these budgets.
fn config(upstream: &Upstream, ledger: &Path, budgets: &str) -> String {
    format!(
        "workers: 2\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: [a, b, c], backend: up, model: m }} ]\n\
         ledger: {{ path: {} }}\nbudgets: {{ {budgets} }}\n",
        upstream.address,
        ledger.display()
    )
}

/// A call of a workload that may generate `cap` tokens and is reported this usage.
fn call(workload: &str, cap: u64, usage: &str) -> Vec<u8> {
    let body = format!(r#"{{"model":"m","max_tokens":{cap},"user":"{usage}","messages":[]}}"#);
    post(
        "/v1/chat/completions",
        &[&format!("x-workload-app: {workload}")],
        &body,
    )
}

fn status(gate: &Gate, workload: &str, cap: u64, usage: &str) -> u16 {
    gate.call(&call(workload, cap, usage)).status
}

/// What remains of a budget.
fn left(gate: &Gate, budget: &str) -> f64 {
    gate.metric("tollgate_budget_left", &[&format!(r#"budget="{budget}""#)])
}

fn stop(mut gate: Gate) {
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
}
