//! Servers of tools that hang, flood or never end an answer, and clients that meet in their ids.
//!
//! Not here: answers that are wrong (`super`), commands (`commands`).

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use testing::eventually;

use super::{Caller, config, reply, server, url};
use crate::harness::answer::{chunk, events_head, json as answer_json};
use crate::harness::{Gate, Seen, Signal, Step, Upstream};

/// The tool that a request calls, where it calls one.
fn tool(seen: &Seen) -> String {
    let message = if seen.body.is_empty() {
        Value::Null
    } else {
        seen.json()
    };
    message["params"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn clients_whose_calls_have_the_same_ids_are_each_told_their_own_answers() {
    let one = Upstream::start(|_, seen| {
        if tool(seen).is_empty() {
            return vec![Step::Send(reply("one", seen))];
        }
        let message = seen.json();
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"asked": message["params"]["arguments"]}});
        vec![Step::Send(answer_json(200, &body.to_string()))]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: [ada, ben] }"), &[]);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let gate = &gate;
            scope.spawn(move || {
                let caller = Caller::begun(gate, if client % 2 == 0 { "ada" } else { "ben" });
                for call in 0..40 {
                    let arguments = json!({"client": client, "call": call});
                    let told = caller.request(
                        "tools/call",
                        &json!({"name": "one__read", "arguments": arguments}),
                    );
                    assert_eq!(told.body["result"]["asked"], arguments, "{}", told.body);
                }
            });
        }
    });
}

#[test]
fn an_answer_of_a_hundred_megabytes_costs_its_own_call_alone_and_no_memory_of_that_size() {
    let big = Upstream::start(|_, seen| {
        match &*tool(seen) {
        "whole" => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 104857600\r\n\r\n".to_vec()),
            Step::Repeat(vec![b' '; 1 << 20], 100),
        ],
        "event" => vec![
            Step::Send(events_head()),
            Step::Send(chunk(b"data: ")),
            Step::Repeat(chunk(&vec![b'x'; 1 << 20]), 100),
        ],
        _ => vec![Step::Send(reply("big", seen))],
    }
    });
    let good = server("good");
    let servers = format!(
        "    big: {{ url: \"{}\" }}\n    good: {{ url: \"{}\" }}",
        url(&big),
        url(&good)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let before = gate.peak_kib();
    for name in ["whole", "event"] {
        let told = caller.call(&format!("big__{name}"));
        let said = told.body.to_string();
        assert!(
            said.contains("-32603"),
            "{name}: {}",
            said.chars().take(500).collect::<String>()
        );
        assert_eq!(caller.call("good__read").status, 200, "the others go on");
    }
    let grown = gate.peak_kib() - before;
    assert!(grown < 100 << 10, "{grown} KiB more");
}

/// A call that is sent, and of which nothing is read.
fn begun(caller: &Caller<'_>, tool: &str) -> TcpStream {
    let params = json!({"name": tool});
    let message =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let session = caller.session.as_deref().expect("a session");
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: g\r\nx-workload-app: agent\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut tcp = TcpStream::connect(caller.gate.data).expect("the gate listens");
    tcp.write_all(request.as_bytes()).expect("it is taken");
    tcp
}

#[test]
fn answers_that_fill_the_room_for_them_are_refused_and_small_ones_pass() {
    let big = Upstream::start(|_, seen| {
        match &*tool(seen) {
        "stall" => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16000000\r\n\r\n".to_vec()),
            Step::Repeat(vec![b' '; 1 << 20], 15),
            Step::silence(),
        ],
        _ => vec![Step::Send(reply("big", seen))],
    }
    });
    let servers = format!("    big: {{ url: \"{}\" }}", url(&big));
    let gate = Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, "    - { workload: agent }")),
        &[],
    );
    let caller = Caller::begun(&gate, "agent");
    let stalled: Vec<TcpStream> = (0..12).map(|_| begun(&caller, "big__stall")).collect();
    let refused = || {
        let records = gate.records(1);
        records
            .iter()
            .filter(|record| record["code"] == "overloaded")
            .count()
    };
    // Eight of fifteen MiB have room in 128.
    eventually("the others are refused", || refused() == 4);
    drop(stalled);
    eventually("there is room again", || {
        caller.call("big__read").status == 200
    });
    let again = begun(&caller, "big__stall");
    eventually("it is asked", || {
        big.seen()
            .iter()
            .filter(|seen| tool(seen) == "stall")
            .count()
            == 13
    });
    assert_eq!(refused(), 4);
    drop(again);
}

#[test]
fn a_server_that_hangs_in_a_call_holds_nobody_up_and_hears_when_its_client_leaves() {
    let gone = Signal::default();
    let told = gone.clone();
    let slow = Upstream::start(move |_, seen| match &*tool(seen) {
        "hang" => vec![Step::Hang(told.clone())],
        _ => vec![Step::Send(reply("slow", seen))],
    });
    let servers = format!("    slow: {{ url: \"{}\" }}", url(&slow));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let leaving = begun(&caller, "slow__hang");
    eventually("the server has the call", || {
        slow.seen().iter().any(|seen| tool(seen) == "hang")
    });
    for _ in 0..5 {
        assert_eq!(caller.call("slow__read").status, 200);
    }
    drop(leaving);
    assert!(gone.wait(), "the server's connection is closed");
    eventually("the call is recorded", || {
        gate.records(1)
            .iter()
            .any(|record| record["outcome"] == "aborted" && record["mcp_name"] == "slow__hang")
    });
}

#[test]
fn a_list_that_is_too_long_or_never_ends_leaves_its_server_out() {
    let endless = Upstream::start(|_, seen| {
        let is_list = !seen.body.is_empty() && seen.json()["method"] == "tools/list";
        if !is_list {
            return vec![Step::Send(reply("endless", seen))];
        }
        let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {
            "tools": [{"name": "t", "inputSchema": {}}], "nextCursor": "again"}});
        vec![Step::Send(answer_json(200, &body.to_string()))]
    });
    let good = server("good");
    let servers = format!(
        "    endless: {{ url: \"{}\" }}\n    good: {{ url: \"{}\" }}",
        url(&endless),
        url(&good)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let (tools, meta) = caller.tools();
    assert_eq!(tools, ["good__read", "good__delete"]);
    assert_eq!(meta["tollgate/unavailable"], json!(["endless"]));
    assert!(endless.count() <= 110, "{} questions", endless.count());
}

#[test]
fn names_that_are_almost_a_hidden_one_reach_no_server() {
    let one = server("one");
    let servers = format!(
        "    one: {{ url: \"{}\", tools: {{ allow: read }} }}\n    one-b: {{ url: \"{}\", tools: {{ allow: read }} }}",
        url(&one),
        url(&one)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let before = one.count();
    for name in [
        "one__delete",
        "one__Read",
        "one__READ",
        "one__read ",
        " one__read",
        "one__read\0",
        "one__read\u{200b}",
        "one__re\u{0430}d",
        "one__\u{ff52}ead",
        "one__one__read",
        "one____read",
        "One__read",
        "one-b__delete",
        "one-b_read",
        "one.read",
        "one/read",
        "one+read",
        "read",
        "__read",
        "one__",
        "",
        "*",
        "one__*",
        "one__read;delete",
        "..__read",
        "one__%72ead",
    ] {
        let told = caller.call(name);
        assert_eq!(
            told.body["error"]["code"], -32602,
            "{name:?}: {}",
            told.body
        );
    }
    for body in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__read"},"params":{"name":"one__delete"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__read","n\u0061me":"one__delete"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"ping","params":{"name":"one__delete"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","PARAMS":{"name":"one__delete"},"params":{"name":"one__read"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call","params":{"name":"one__read"}}"#,
    ] {
        let told = caller.send("POST", &[], body.as_bytes());
        assert_eq!(told.status, 400, "{body}: {}", told.body);
    }
    assert_eq!(one.count(), before, "none of it went on");
}

#[test]
fn names_that_no_list_has_fill_no_record() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let text = config(&servers, "    - { workload: agent }") + "workers: 1\n";
    let gate = Gate::start(&text, &[]);
    let caller = Caller::begun(&gate, "agent");
    let (tools, _) = caller.tools();
    assert!(tools.contains(&"one__read".to_owned()), "{tools:?}");
    let mut named = Vec::new();
    for tool in ["one__read", "one__made-up-17", "nobody__read"] {
        caller.call(tool);
        let is_call = |records: &[Value]| {
            let calls = records.iter().filter(|r| r["mcp_method"] == "tools/call");
            calls
                .map(|r| (r["mcp_name"].clone(), r["reason"].clone()))
                .collect::<Vec<_>>()
        };
        eventually("the record of the call", || {
            is_call(&gate.records(1)).len() > named.len()
        });
        named = is_call(&gate.records(1));
    }
    let names: Vec<_> = named.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["one__read", "one__(unlisted)", "(unlisted)"]);
    assert!(named[0].1.is_null(), "{named:?}");
    for ((_, reason), tool) in named[1..].iter().zip(["one__made-up-17", "nobody__read"]) {
        assert_eq!(reason, &format!("no list has {tool}"));
    }
}

#[test]
fn names_that_are_almost_one_that_is_denied_limited_or_budgeted_reach_no_server() {
    let (denies, limits, budgets, open) = (
        server("denies"),
        server("limits"),
        server("budgets"),
        server("open"),
    );
    let servers = format!(
        "    denies: {{ url: \"{}\", tools: {{ deny: delete }} }}\n    limits: {{ url: \"{}\" }}\n    budgets: {{ url: \"{}\" }}\n    open: {{ url: \"{}\" }}",
        url(&denies),
        url(&limits),
        url(&budgets),
        url(&open)
    );
    let routes = "    - { workload: denied, servers: denies }\n    - { workload: limited, servers: limits, tool_limits: [ { tools: limits__delete, limits: [ { requests: 1, per: 366d } ] } ] }\n    - { workload: budgeted, servers: budgets }\n    - { workload: open, servers: open }";
    let directory = tempfile::tempdir().expect("a directory");
    let rest = format!(
        "ledger: {{ path: {} }}\nbudgets:\n  one: {{ workload: budgeted, calls: 1, tool: budgets__delete, per: month }}\n",
        directory.path().join("usage.db").display()
    );
    let gate = Gate::start(&(config(&servers, routes) + &rest), &[]);
    for (workload, of, name) in [
        ("denied", &denies, "denies"),
        ("limited", &limits, "limits"),
        ("budgeted", &budgets, "budgets"),
    ] {
        let caller = Caller::begun(&gate, workload);
        // Whether a worker has the list or not.
        for spelling in ["delete ", "Delete", "delete\0", "delet\u{435}"] {
            let told = caller.call(&format!("{name}__{spelling}"));
            assert_eq!(told.body["error"]["code"], -32602, "{}", told.body);
        }
        assert_eq!(caller.call(&format!("{name}__read")).status, 200);
        let calls = of.seen();
        let calls: Vec<String> = calls.iter().map(tool).filter(|of| !of.is_empty()).collect();
        assert_eq!(calls, ["read"]);
    }
    // Where nothing is written of a name, a server may have tools that it does not list.
    let caller = Caller::begun(&gate, "open");
    assert_eq!(caller.call("open__hidden").body["result"]["tool"], "hidden");
}
