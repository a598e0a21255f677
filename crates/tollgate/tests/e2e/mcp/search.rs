//! Routes that show two tools in place of a large catalogue: what is found, and what a call of it becomes.
//!
//! Not here: which tools fit words best (`mcp::search`).

use std::process::Command;

use serde_json::{Value, json};

use super::modern::{ask, modern};
use super::{Caller, Told, config, reply, url};
use crate::harness::{Gate, Seen, Step, Upstream, answer};

const SEARCH: &str = "    - { workload: ide, list_tools: search, tools: { deny: \"*__delete_*\" }, tool_limits: [ { tools: \"*__read_7\", limits: [ { requests: 1, per: 366d } ] } ] }";

/// A server with a thousand tools, which answers calls with what it was sent.
fn large() -> Upstream {
    Upstream::start(|_, seen| vec![Step::Send(large_reply(seen))])
}

fn large_reply(seen: &Seen) -> Vec<u8> {
    let message = match seen.body.is_empty() {
        true => Value::Null,
        false => seen.json(),
    };
    let result = match message["method"].as_str() {
        Some("tools/list") => {
            let of = |n: usize| {
                let verb = ["read", "write", "delete", "list"][n / 250];
                json!({"name": format!("{verb}_{}", n % 250), "description": format!("Can {verb} records of the table {} in the warehouse.", n % 250),
                    "inputSchema": {"type": "object", "properties": {"table": {"type": "string", "description": "the table"}}}})
            };
            json!({"tools": (0..1000).map(of).collect::<Vec<Value>>()})
        }
        Some("tools/call") => json!({"content": [], "sent": message["params"]}),
        _ => return reply("one", seen),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    answer::json(200, &body.to_string())
}

fn found(told: &Told) -> Vec<String> {
    let text = told.body["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{}", told.body));
    let tools: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.collect()
}

fn find(words: &str) -> Value {
    json!({"name": "tollgate__find_tools", "arguments": {"query": words, "limit": 3}})
}

fn inner(name: &str, arguments: &Value) -> Value {
    json!({"name": "tollgate__call_tool", "arguments": {"name": name, "arguments": arguments}})
}

#[test]
fn two_tools_find_and_call_those_of_a_large_catalogue_under_its_filters_and_limits() {
    let one = large();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(
        &config(&servers, &format!("{SEARCH}\n    - {{ workload: all }}")),
        &[],
    );
    let ide = Caller::begun(&gate, "ide");
    assert_eq!(
        ide.tools().0,
        ["tollgate__find_tools", "tollgate__call_tool"]
    );
    let told = ide.request("tools/call", &find("read table 42"));
    assert_eq!(found(&told)[0], "one__read_42", "{}", told.body);
    let told = ide.request("tools/call", &find("delete"));
    assert_eq!(found(&told), [""; 0], "what is hidden is not found");
    let told = ide.request(
        "tools/call",
        &inner("one__read_42", &json!({"table": "t", "n": 1})),
    );
    let sent = &told.body["result"]["sent"];
    assert_eq!(
        (&sent["name"], &sent["arguments"]),
        (&json!("read_42"), &json!({"table": "t", "n": 1}))
    );
    let code = |told: &Told| told.body["error"]["data"]["code"].clone();
    for none in [
        "one__delete_1",
        "one__nothing",
        "tollgate__call_tool",
        "delete_1",
    ] {
        let told = ide.request("tools/call", &inner(none, &json!({})));
        assert_eq!(code(&told), "mcp_not_found", "{none}: {}", told.body);
    }
    let statuses = [(); 2].map(|()| {
        ide.request("tools/call", &inner("one__read_7", &json!({})))
            .status
    });
    assert_eq!(statuses, [200, 429]);
    let told = ide.request(
        "tools/call",
        &json!({"name": "tollgate__call_tool", "arguments": {}}),
    );
    assert_eq!(code(&told), "mcp_message_invalid", "{}", told.body);
    // Whoever is shown all has no such tools.
    let all = Caller::begun(&gate, "all");
    let told = all.request("tools/call", &find("read"));
    assert_eq!(code(&told), "mcp_not_found", "{}", told.body);
    let records = gate.records(12);
    let of = |method: &str, name: &str| {
        let mut of = records.iter();
        of.any(|r| r["mcp_method"] == method && r["mcp_name"] == name)
    };
    assert!(
        of("tools/call", "one__read_42") && of("tools/list", "tollgate__find_tools"),
        "{records:?}"
    );
}

#[test]
fn a_client_without_a_session_calls_what_it_found_with_the_headers_of_its_arguments() {
    let one = modern("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, SEARCH), &[]);
    let ide = Caller::new(&gate, "ide");
    let told = ask(&ide, "tools/list", &json!({}));
    let result = &told.body["result"];
    assert_eq!(
        (&result["tools"][1]["name"], &result["resultType"]),
        (&json!("tollgate__call_tool"), &json!("complete"))
    );
    let told = ask(&ide, "tools/call", &find("read"));
    assert_eq!(found(&told), ["one__read"]);
    assert_eq!(told.body["result"]["resultType"], "complete");
    let told = ask(
        &ide,
        "tools/call",
        &inner("one__read", &json!({"where": "here"})),
    );
    assert_eq!(told.body["result"]["tool"], "read", "{}", told.body);
    let sent = one.seen().pop().expect("a call");
    assert_eq!(sent.header("mcp-param-where"), ["here"]);
    assert_eq!(sent.header("mcp-name"), ["read"]);
}

#[test]
fn what_a_catalogue_costs_of_a_prompt_is_told_and_is_less_where_it_is_searched() {
    let one = large();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(
        &config(&servers, &format!("{SEARCH}\n    - {{ workload: all }}")),
        &[],
    );
    let tokens = |workload: &str| {
        let mut list = Command::new(Gate::binary());
        list.args(["mcp", "list", "--url", &format!("http://{}/mcp", gate.data)]);
        list.args(["-H", &format!("x-workload-app: {workload}")]);
        let out = list.output().expect("it runs").stdout;
        let out = String::from_utf8(out).expect("text");
        let first = out.lines().next().expect("a line").to_owned();
        let (_, rest) = first
            .split_once(" tools, ")
            .unwrap_or_else(|| panic!("{first}"));
        let number = rest.split(' ').next().expect("a number").replace(',', "");
        number.parse::<u64>().unwrap_or_else(|_| panic!("{first}"))
    };
    let (all, searched) = (tokens("all"), tokens("ide"));
    assert!(all > 40_000 && searched < 400, "{all} and {searched}");
}
