//! What is asked, by its seed.

use clap::ValueEnum;
use serde_json::Value;

use super::workload::{Asked, Asker};
use super::{Workload, request};

fn calls(workload: Workload, seed: u64, n: usize) -> Vec<Asked> {
    let mut asker = Asker::new(workload, seed);
    (0..n).map(|_| asker.next()).collect()
}

#[test]
fn the_same_seed_asks_the_same_and_another_seed_something_else() {
    for workload in [Workload::Mixed, Workload::Agents, Workload::Limits] {
        let first = calls(workload, 7, 60);
        assert_eq!(first, calls(workload, 7, 60), "{workload:?}");
        assert_ne!(first, calls(workload, 8, 60), "{workload:?}");
    }
}

#[test]
fn every_workload_is_known_by_its_name() {
    for workload in Workload::value_variants() {
        let named = Workload::from_str(workload.as_str(), false);
        assert_eq!(named.as_ref(), Ok(workload));
    }
}

#[test]
fn a_mixed_workload_has_every_caller_and_conversations_of_agents_grow() {
    let mixed = calls(Workload::Mixed, 1, 100);
    for caller in [
        "toolbench-agent",
        "swe-rebench-ide",
        "terminal-bench-ci",
        "unknown-guest",
    ] {
        assert!(mixed.iter().any(|call| call.caller == caller), "{caller}");
    }
    let agents = calls(Workload::Agents, 1, 200);
    let messages = agents.iter().map(|call| {
        let body: Value = serde_json::from_str(&call.body).expect("a body is JSON");
        body["messages"].as_array().map_or(0, Vec::len)
    });
    let longest = messages.max().unwrap_or_default();
    assert!((20..=25).contains(&longest), "{longest} messages");
}

#[test]
fn a_request_says_who_asks_and_how_long_its_body_is() {
    let asked = &calls(Workload::Limits, 1, 1)[0];
    let gate = "127.0.0.1:1975".parse().expect("an address");
    let request = request(gate, asked);
    let request = String::from_utf8(request).expect("a request is text");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
    assert_eq!(body, asked.body);
    for line in [
        "host: 127.0.0.1:1975".to_owned(),
        format!("x-workload-app: {}", asked.caller),
        format!("content-length: {}", body.len()),
    ] {
        assert!(head.lines().any(|has| has == line), "no {line} in {head}");
    }
}
