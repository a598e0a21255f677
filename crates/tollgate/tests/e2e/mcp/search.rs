//! Routes that show two tools in place of a large catalogue: what is found, and what a call of it becomes.
//!
//! Not here: which tools fit words best (`mcp::search`).

use std::process::Command;

use serde_json::{Value, json};

use super::modern::{ask, modern};
use super::{Caller, Told, config, reply, url};
use crate::harness::{Gate, Seen, Step, Upstream, answer, free_address};

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
        let says = format!("there is no tool {none}; tollgate__find_tools finds tools by words");
        assert_eq!(wrong(&told), says, "what is hidden is not hinted at");
    }
    let statuses = [(); 2].map(|()| {
        ide.request("tools/call", &inner("one__read_7", &json!({})))
            .status
    });
    assert_eq!(statuses, [200, 429]);
    // Whoever is shown all has no such tools.
    let all = Caller::begun(&gate, "all");
    let told = all.request("tools/call", &find("read"));
    assert_eq!(code(&told), "mcp_not_found", "{}", told.body);
    let records = gate.records(11);
    let of = |method: &str, name: &str| {
        let mut of = records.iter();
        of.any(|r| r["mcp_method"] == method && r["mcp_name"] == name)
    };
    assert!(
        of("tools/call", "one__read_42") && of("tools/list", "tollgate__find_tools"),
        "{records:?}"
    );
    let unknown = records.iter().filter(|r| r["code"] == "mcp_not_found");
    assert_eq!(unknown.count(), 5, "{records:?}");
}

/// What a model is told that wrote a call wrong.
fn wrong(told: &Told) -> String {
    let result = &told.body["result"];
    assert_eq!(
        (told.status, &result["isError"]),
        (200, &json!(true)),
        "{}",
        told.body
    );
    let says = result["content"][0]["text"].as_str();
    says.expect("a text").to_owned()
}

#[test]
fn what_a_model_writes_wrong_is_a_result_that_says_how_it_should_be() {
    let one = large();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, SEARCH), &[]);
    let (with, without) = (Caller::begun(&gate, "ide"), Caller::new(&gate, "ide"));
    let call = json!("tollgate__call_tool");
    let find = json!("tollgate__find_tools");
    for (name, arguments, says) in [
        (&find, json!({}), "`query` must be a text"),
        (&find, json!({"query": 5}), "`query` must be a text"),
        (
            &find,
            json!({"query": "a", "limit": "3"}),
            "`limit` must be a whole number",
        ),
        (&find, json!({"query": "a", "limit": 50}), "from 1 to 20"),
        (&call, json!({}), "`name` must be the name of a tool"),
        (
            &call,
            json!({"name": 7}),
            "`name` must be the name of a tool",
        ),
        (
            &call,
            json!({"name": "one__read_1", "arguments": "{}"}),
            "not a text with one in it",
        ),
        (
            &call,
            json!({"name": "one__read_1", "arguments": [1]}),
            "must be an object",
        ),
        (
            &call,
            json!({"name": "read_1"}),
            "did you mean one__read_1?",
        ),
        (
            &call,
            json!({"name": "one.Read-1"}),
            "did you mean one__read_1?",
        ),
        (
            &call,
            json!({"name": "two__read_1"}),
            "did you mean one__read_1?",
        ),
    ] {
        let params = json!({"name": name, "arguments": arguments});
        for told in [
            with.request("tools/call", &params),
            ask(&without, "tools/call", &params),
        ] {
            let told = wrong(&told);
            assert!(told.contains(says), "{params}: {told}");
        }
    }
    // What is no call at all is a fault of the client's.
    let told = with.request("tools/call", &json!({"name": call, "arguments": "{}"}));
    assert_eq!(told.body["error"]["code"], -32602, "{}", told.body);
}

#[test]
fn a_server_that_is_away_is_named_beside_what_is_found() {
    let (one, dead) = (large(), free_address());
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    dead: {{ url: \"http://{dead}/mcp\" }}",
        url(&one)
    );
    let gate = Gate::start(&config(&servers, SEARCH), &[]);
    let ide = Caller::new(&gate, "ide");
    for (words, first) in [("read table 42", "[{"), ("zebra", "None of 750 tools")] {
        let told = ask(&ide, "tools/call", &find(words));
        let result = &told.body["result"];
        let text = |nth: usize| result["content"][nth]["text"].as_str().expect("a text");
        assert!(text(0).starts_with(first), "{result}");
        assert!(
            text(1).starts_with("dead does not answer at the moment"),
            "{result}"
        );
        assert_eq!(result["_meta"]["tollgate/unavailable"], json!(["dead"]));
    }
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
    let list = |of: &[String]| {
        let mut list = Command::new(Gate::binary());
        let out = list.args(["mcp", "list"]).args(of).output();
        let out = out.expect("it runs").stdout;
        String::from_utf8(out).expect("text")
    };
    let tokens = |workload: &str| {
        // The gate has them at one path alone, which need not be said.
        let of = ["--url".to_owned(), format!("http://{}", gate.data)];
        let who = ["-H".to_owned(), format!("x-workload-app: {workload}")];
        let out = list(&[of, who].concat());
        let first = out.lines().next().expect("a line").to_owned();
        let (_, rest) = first
            .split_once(" tools, ")
            .unwrap_or_else(|| panic!("{first}"));
        let number = rest.split(' ').next().expect("a number").replace(',', "");
        number.parse::<u64>().unwrap_or_else(|_| panic!("{first}"))
    };
    let (all, searched) = (tokens("all"), tokens("ide"));
    assert!(all > 40_000 && searched < 400, "{all} and {searched}");
    let ide = Caller::begun(&gate, "ide");
    found(&ide.request("tools/call", &find("read")));
    let of = |workload: &str| {
        let of = ["--admin".to_owned(), format!("http://{}", gate.admin)];
        list(&[of, ["--workload".to_owned(), workload.to_owned()]].concat())
    };
    let counts = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| line.contains(" tokens of a prompt"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        counts(&of("all")),
        [format!("1000 tools, {all} tokens of a prompt")]
    );
    let shown = of("ide");
    let two = format!("2 tools, {searched} tokens of a prompt\n  tollgate__find_tools");
    assert!(shown.starts_with(&two), "{shown}");
    assert!(
        counts(&shown)[1].starts_with("750 tools, 3"),
        "{:?}",
        counts(&shown)
    );
}
