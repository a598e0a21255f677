//! Messages of one caller that come at once, and servers that take their time: one session for all, and a name for whoever is late.
//!
//! Not here: what is kept of a session otherwise (`bridge`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testing::eventually;

use super::modern::{ask, call};
use super::{Caller, Told, config, initialize, reply, server, url};
use crate::harness::{Gate, Signal, Step, Upstream};
use serde_json::json;

/// As many as come at once.
const MANY: usize = 12;

#[test]
fn messages_that_come_at_once_for_a_caller_without_a_session_open_one() {
    let (go, begun) = (Signal::default(), Arc::<AtomicUsize>::default());
    let (wait, count) = (go.clone(), Arc::clone(&begun));
    let one = Upstream::start(move |_, seen| {
        let is_begin = !seen.body.is_empty() && seen.json()["method"] == "initialize";
        let answer = Step::Send(reply("one", seen));
        if !is_begin {
            return vec![answer];
        }
        count.fetch_add(1, Ordering::SeqCst);
        vec![Step::Until(wait.clone()), answer]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let config = config(&servers, "    - { workload: [agent, other] }");
    let config = config.replace("within: 30s", "within: 10m");
    let gate = Gate::start(&format!("workers: 2\n{config}"), &[]);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..MANY)
            .map(|_| scope.spawn(|| call(&Caller::new(&gate, "agent"), "one__read")))
            .collect();
        eventually("all have come", || {
            gate.metric("tollgate_open_exchanges", &[]) >= MANY as f64
        });
        eventually("one has asked", || begun.load(Ordering::SeqCst) > 0);
        go.give();
        let told = callers.into_iter().map(|caller| caller.join());
        told.map(|told| told.expect("an answer")).collect()
    });
    for told in &told {
        assert_eq!(told.status, 200, "{}", told.body);
    }
    assert_eq!(begun.load(Ordering::SeqCst), 1, "sessions");
    // Another caller has another one.
    assert_eq!(call(&Caller::new(&gate, "other"), "one__read").status, 200);
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}

/// What comes of opening a server is so for all who wait for it: they do not fail one after the other.
#[test]
fn messages_that_wait_for_a_server_that_fails_fail_with_it() {
    let (go, asked) = (Signal::default(), Arc::<AtomicUsize>::default());
    let (wait, count) = (go.clone(), Arc::clone(&asked));
    let bad = Upstream::start(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let none = crate::harness::answer::json(503, "{}");
        vec![Step::Until(wait.clone()), Step::Send(none)]
    });
    let good = server("good");
    let servers = format!(
        "    bad: {{ url: \"{}\" }}\n    good: {{ url: \"{}\" }}",
        url(&bad),
        url(&good)
    );
    let config =
        config(&servers, "    - { workload: agent }").replace("within: 30s", "within: 10m");
    let gate = Gate::start(&format!("workers: 1\n{config}"), &[]);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..MANY)
            .map(|_| scope.spawn(|| ask(&Caller::new(&gate, "agent"), "tools/list", &json!({}))))
            .collect();
        eventually("all have come", || {
            gate.metric("tollgate_open_exchanges", &[]) >= MANY as f64
        });
        eventually("one has asked", || asked.load(Ordering::SeqCst) > 0);
        go.give();
        let told = callers.into_iter().map(|caller| caller.join());
        told.map(|told| told.expect("an answer")).collect()
    });
    for told in &told {
        let result = &told.body["result"];
        assert_eq!(
            result["_meta"]["tollgate/unavailable"],
            json!(["bad"]),
            "{}",
            told.body
        );
        assert_eq!(result["tools"].as_array().map(Vec::len), Some(2));
    }
    // Twice for those that wait: whether it needs a session, and to begin one. Who comes behind that asks again.
    let asked = asked.load(Ordering::SeqCst);
    assert!(asked <= MANY, "{asked}");
}

#[test]
fn a_server_that_is_late_is_named_by_an_attempt_each_time_or_by_the_log() {
    let silent = Upstream::start(|_, _| vec![Step::silence()]);
    // It begins its list, and says no more.
    let halting = Upstream::start(|_, seen| {
        let is_list = !seen.body.is_empty() && seen.json()["method"] == "tools/list";
        if !is_list {
            return vec![Step::Send(reply("halting", seen))];
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
        vec![Step::Send(head.into()), Step::silence()]
    });
    let good = server("good");
    let servers = format!(
        "    silent: {{ url: \"{}\" }}\n    halting: {{ url: \"{}\" }}\n    good: {{ url: \"{}\" }}",
        url(&silent),
        url(&halting),
        url(&good)
    );
    let config = config(&servers, "    - { workload: agent }");
    let gate = Gate::start(&config.replace("within: 30s", "within: 100ms"), &[]);
    let attempts = |result: &str| {
        let result = format!("result=\"{result}\"");
        let labels = ["backend=\"mcp:silent\"", &*result];
        gate.metric("tollgate_attempts_total", &labels)
    };
    let caller = Caller::new(&gate, "agent");
    for times in 1..=8_u32 {
        let told = caller.request("initialize", &initialize());
        assert_eq!(told.status, 200, "{}", told.body);
        assert_eq!(attempts("upstream_timeout"), f64::from(times));
    }
    let told = ask(&caller, "tools/list", &json!({}));
    let missing = &told.body["result"]["_meta"]["tollgate/unavailable"];
    assert_eq!(missing, &json!(["halting", "silent"]), "{}", told.body);
    eventually("the log names it", || {
        let log = gate.log();
        let mut lines = log.lines();
        lines.any(|line| {
            line.contains("its answer has no end in time") && line.contains("mcp:halting")
        })
    });
}
