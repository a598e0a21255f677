//! Streams that are listened to while the gate drains: they end as the protocol has it, and no drain waits for them.
//!
//! Not here: drains of calls to models (`drain`), what is told on such streams (`bridge`, `streams`).

use serde_json::{Value, json};

use super::bridge::{Stream, listen};
use super::modern::{messages, modern_reply};
use super::streams::Listening;
use super::{Caller, config, server, url};
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Step, Upstream};

/// Longer than any test waits.
const FOREVER: &str = "1h";

/// A server without sessions whose streams begin, and which agrees to what it is asked where it is to.
fn listened_to(agrees: bool) -> Upstream {
    Upstream::start(move |_, seen| {
        let message = match seen.body.is_empty() {
            true => json!({}),
            false => seen.json(),
        };
        if message["method"] != "subscriptions/listen" {
            return vec![Step::Send(modern_reply("new", seen))];
        }
        let agreed = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}, "notifications": message["params"]["notifications"]}});
        let agreed = chunk(format!("data: {agreed}\n\n").as_bytes());
        let mut steps = vec![Step::Send(events_head())];
        if agrees {
            steps.push(Step::Send(agreed));
        }
        steps.push(Step::silence());
        steps
    })
}

/// What was told on a stream to its end.
fn told(stream: &mut Stream) -> Vec<Value> {
    let text = stream.until("\r\n0\r\n\r\n");
    let (_, events) = text.split_once("\r\n\r\n").expect("a head");
    messages(events)
}

#[test]
fn streams_that_listen_end_with_their_result_when_the_gate_drains_and_no_drain_waits_for_them() {
    let (agreeing, silent, old) = (listened_to(true), listened_to(false), server("old"));
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    two: {{ url: \"{}\" }}\n    old: {{ url: \"{}\" }}",
        url(&agreeing),
        url(&silent),
        url(&old)
    );
    let routes = "    - { workload: ada, servers: one }\n    - { workload: ben, servers: [one, two] }\n    - { workload: cem, servers: [one, old] }";
    let config = config(&servers, routes).replace("within: 30s", &format!("within: {FOREVER}"));
    let mut gate = Gate::start(&format!("drain: {{ grace: {FOREVER} }}\n{config}"), &[]);
    let (headers, message) = listen(&json!({"toolsListChanged": true}));
    let mut acknowledged = Stream::begin(&Caller::new(&gate, "ada"), &headers, &message);
    acknowledged.until("acknowledged");
    // One of its servers has not agreed, and is waited for.
    let mut waiting = Stream::begin(&Caller::new(&gate, "ben"), &headers, &message);
    testing::eventually("it is asked", || {
        let seen = silent.seen();
        let mut bodies = seen.iter().filter(|seen| !seen.body.is_empty());
        bodies.any(|seen| seen.json()["method"] == "subscriptions/listen")
    });
    let mut standing = Listening::begin(&Caller::begun(&gate, "cem"), "");
    gate.signal(libc::SIGTERM);
    for (stream, what) in [(&mut acknowledged, "one"), (&mut waiting, "two")] {
        let told = told(stream);
        let methods: Vec<&Value> = told.iter().map(|message| &message["method"]).collect();
        let first = "notifications/subscriptions/acknowledged";
        assert_eq!(methods, [&json!(first), &Value::Null], "{what}: {told:?}");
        let params = &told[0]["params"];
        assert_eq!(params["notifications"], json!({"toolsListChanged": true}));
        let last = &told[1];
        assert_eq!(
            (&last["id"], &last["result"]["resultType"]),
            (&message["id"], &json!("complete")),
            "{what}: {last}"
        );
        assert_eq!(
            last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], message["id"],
            "{what}"
        );
    }
    standing.until("\r\n0\r\n\r\n");
    assert_eq!(gate.ended().code(), Some(0), "nothing is waited for");
    let listened = gate.records(4);
    let listened = listened.iter().filter(|record| {
        let method = record["mcp_method"].as_str();
        matches!(method, Some("subscriptions/listen")) && record["outcome"] == "completed"
    });
    assert_eq!(listened.count(), 2);
}
