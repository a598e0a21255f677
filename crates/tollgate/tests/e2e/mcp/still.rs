//! Streams whose caller may not hear them any more: rules, filters and routes that a reload brings count for those that are open.
//!
//! Not here: what is heard otherwise (`streams`), single messages (`access`, `filters`).

use serde_json::json;
use testing::eventually;

use super::modern::{VERSION, meta, modern_reply};
use super::streams::Listening;
use super::{Caller, config, reply, url};
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Signal, Step, Upstream};

const ROUTE: &str = "    - { workload: agent }";

fn event(method: &str, params: &serde_json::Value) -> Vec<u8> {
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    chunk(format!("data: {message}\n\n").as_bytes())
}

/// A server that tells of a log and two resources, once it is let.
fn telling(told: Signal) -> Upstream {
    Upstream::start(move |_, seen| {
        if !seen.head.starts_with("GET ") {
            return vec![Step::Send(reply("one", seen))];
        }
        let updated = |uri: &str| event("notifications/resources/updated", &json!({"uri": uri}));
        let log = event("notifications/message", &json!({"data": "secret log"}));
        let changed = event("notifications/tools/list_changed", &json!({}));
        vec![
            Step::Send(events_head()),
            Step::Until(told.clone()),
            Step::Send([log, updated("file:///a"), updated("file:///b"), changed].concat()),
            Step::silence(),
        ]
    })
}

fn reload(gate: &Gate, config: &str) {
    gate.reconfigure(config);
    eventually("the reload", || {
        gate.log().matches("configuration taken").count() == 1
    });
    // A scrape is queued to every worker behind the message with the new configuration.
    gate.metrics();
}

#[test]
fn a_standing_stream_ends_where_its_caller_would_be_refused_by_now() {
    let refusing = "authority: { rules: [ { name: none, deny: \"workload == 'agent'\" }, { name: rest, allow: \"true\" } ] }\n";
    for (routes, more) in [(ROUTE, refusing), ("    - { workload: other }", "")] {
        let go = Signal::default();
        let one = telling(go.clone());
        let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
        let gate = Gate::start(&config(&servers, ROUTE), &[]);
        let caller = Caller::begun(&gate, "agent");
        let mut listening = Listening::begin(&caller, "");
        reload(&gate, &(config(&servers, routes) + more));
        go.give();
        let heard = listening.rest();
        assert!(
            !heard.contains("secret log") && !heard.contains("file:///"),
            "{heard}"
        );
    }
}

#[test]
fn rules_that_a_reload_brings_see_the_path_of_a_stream() {
    let go = Signal::default();
    let one = telling(go.clone());
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let text = config(&servers, "    - { workload: agent, path: /tools/one }");
    let gate = Gate::start(&text, &[]);
    let caller = Caller::at(&gate, "agent", "/tools/one");
    let mut listening = Listening::begin(&caller, "");
    let rules = "authority: { rules: [ { name: one, allow: \"path == '/tools/one' || path == 'one+file:///b'\" } ] }\n";
    reload(&gate, &(text + rules));
    go.give();
    let heard = listening.until("list_changed");
    assert!(
        heard.contains("file:///b") && !heard.contains("file:///a"),
        "{heard}"
    );
}

#[test]
fn what_a_reload_filters_is_heard_no_more_on_a_stream_from_before_it() {
    let go = Signal::default();
    let one = telling(go.clone());
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, ROUTE), &[]);
    let caller = Caller::begun(&gate, "agent");
    let mut listening = Listening::begin(&caller, "");
    let filtered = servers.replace(" }", ", resources: { deny: \"file:///a\" } }");
    reload(&gate, &config(&filtered, ROUTE));
    go.give();
    let heard = listening.until("list_changed");
    assert!(
        heard.contains("file:///b") && !heard.contains("file:///a"),
        "{heard}"
    );
}

#[test]
fn a_stream_of_a_client_without_a_session_ends_likewise() {
    let go = Signal::default();
    let told = go.clone();
    let one = Upstream::start(move |_, seen| {
        if seen.body.is_empty() || seen.json()["method"] != "subscriptions/listen" {
            return vec![Step::Send(modern_reply("one", seen))];
        }
        let id = &seen.json()["id"];
        let tagged = json!({"io.modelcontextprotocol/subscriptionId": id});
        let agreed = event(
            "notifications/subscriptions/acknowledged",
            &json!({"notifications": seen.json()["params"]["notifications"], "_meta": tagged}),
        );
        let changed = event(
            "notifications/tools/list_changed",
            &json!({"_meta": tagged}),
        );
        vec![
            Step::Send([events_head(), agreed].concat()),
            Step::Until(told.clone()),
            Step::Send(changed),
            Step::silence(),
        ]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, ROUTE), &[]);
    let caller = Caller::new(&gate, "agent");
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {
        "_meta": meta(&json!({})), "notifications": {"toolsListChanged": true}}});
    let fields = format!("mcp-protocol-version: {VERSION}\r\nmcp-method: subscriptions/listen\r\n");
    let mut listening = Listening::posted(&caller, &fields, &message);
    listening.until("acknowledged");
    reload(&gate, &config(&servers, "    - { workload: other }"));
    go.give();
    let heard = listening.rest();
    assert!(!heard.contains("list_changed"), "{heard}");
}
