//! Servers of tools that say more than anybody reads: on the streams of calls, and on the one that stands beside them.
//!
//! Not here: single answers that are too long (`attacks`).

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use testing::eventually;

use super::{Caller, config, reply, server, url};
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Seen, Step, Upstream};

/// Events of a kibibyte, and how many of them come together.
const TOGETHER: usize = 64;

fn events(method: &str) -> Vec<u8> {
    let data = "x".repeat(1024);
    let said =
        json!({"jsonrpc": "2.0", "method": method, "params": {"level": "info", "data": data}});
    chunk(format!("data: {said}\n\n").repeat(TOGETHER).as_bytes())
}

fn called(seen: &Seen) -> Value {
    if seen.body.is_empty() {
        return Value::Null;
    }
    let message = seen.json();
    json!([message["method"], message["params"]["name"]])
}

/// A server that floods the stream of the call `flood`, with so many mebibytes, and the one of its session without an end.
fn flooding(mebibytes: usize, beside: &'static str) -> Upstream {
    Upstream::start(move |_, seen| {
        if seen.head.starts_with("GET ") {
            return vec![
                Step::Send(events_head()),
                Step::Repeat(events(beside), usize::MAX),
            ];
        }
        if called(seen)[1] != "flood" {
            return vec![Step::Send(reply("flood", seen))];
        }
        let answer = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {"content": []}});
        vec![
            Step::Send(events_head()),
            Step::Repeat(events("notifications/message"), mebibytes * 1024 / TOGETHER),
            Step::Send(chunk(format!("data: {answer}\n\n").as_bytes())),
            Step::Send(chunk(b"")),
        ]
    })
}

/// A request of which nothing is read.
fn unread(caller: &Caller<'_>, method: &str, body: &str) -> TcpStream {
    let session = caller.session.as_deref().expect("a session");
    let request = format!(
        "{method} /mcp HTTP/1.1\r\nhost: g\r\nx-workload-app: agent\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut tcp = TcpStream::connect(caller.gate.data).expect("the gate listens");
    tcp.write_all(request.as_bytes()).expect("it is taken");
    tcp
}

#[test]
fn a_server_that_floods_its_streams_costs_bounded_memory_and_the_others_go_on() {
    let (flood, good) = (flooding(1024, "notifications/message"), server("good"));
    let servers = format!(
        "    flood: {{ url: \"{}\" }}\n    good: {{ url: \"{}\" }}",
        url(&flood),
        url(&good)
    );
    let gate = Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, "    - { workload: agent }")),
        &[],
    );
    let callers: Vec<Caller<'_>> = (0..8).map(|_| Caller::begun(&gate, "agent")).collect();
    let before = gate.peak_kib();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "flood__flood"}});
    let call = call.to_string();
    let streams: Vec<[TcpStream; 2]> = callers
        .iter()
        .map(|of| [unread(of, "POST", &call), unread(of, "GET", "")])
        .collect();
    eventually("they are flooded", || flood.repeated() > 16 * 2);
    for caller in &callers {
        for _ in 0..10 {
            assert_eq!(caller.call("good__read").body["result"]["tool"], "read");
        }
    }
    let grown = gate.peak_kib() - before;
    assert!(grown < 64 << 10, "{grown} KiB more");
    drop(streams);
}

#[test]
fn a_client_that_reads_is_told_all_of_a_flood_and_its_answer() {
    let flood = flooding(16, "notifications/message");
    let servers = format!("    flood: {{ url: \"{}\" }}", url(&flood));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let told = caller.call("flood__flood");
    let told = told.body.as_str().expect("events");
    assert_eq!(told.matches("notifications/message").count(), 16 * 1024);
    assert_eq!(told.matches("\"result\"").count(), 1);
}

#[test]
fn changes_that_a_server_tells_of_without_an_end_have_it_asked_no_more_than_its_clients_ask() {
    let flood = flooding(1, "notifications/tools/list_changed");
    let servers = format!("    flood: {{ url: \"{}\" }}", url(&flood));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let stands = unread(&caller, "GET", "");
    eventually("it is told of changes", || flood.repeated() > 8);
    for _ in 0..20 {
        assert_eq!(caller.tools().0, ["flood__read", "flood__delete"]);
        assert_eq!(caller.call("flood__read").body["result"]["tool"], "read");
    }
    let lists = flood.seen();
    let lists = lists.iter().filter(|seen| called(seen)[0] == "tools/list");
    // Each list that a client asks for, and each worker's look before a call.
    assert!(lists.count() <= 40);
    drop(stands);
}
