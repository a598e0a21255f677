//! Servers of tools that are commands: a process for each session, and what of the gate it sees.
//!
//! Not here: what their tools are shown as (`super`).

use serde_json::{Value, json};
use testing::eventually;

use super::streams::Listening;
use super::{Caller, SECRET, initialize, server, url};
use crate::harness::Gate;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/mcp/commands.py");

fn config(further: &str) -> String {
    format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  within: 20s\n  servers:\n\
         \x20   c: {{ command: python3, args: [{SCRIPT:?}], environment: {{ GIVEN: \"${{GIVEN_TO_TOOLS}}\" }} }}\n{further}\
         \x20 routes: [ {{ workload: [ada, ben] }} ]\n"
    )
}

fn start(further: &str) -> Gate {
    let variables = [
        ("GIVEN_TO_TOOLS", "canary-given"),
        ("CANARY", "canary-of-the-gate"),
    ];
    Gate::start_env(&config(further), &[], &variables)
}

/// The events of an answer, as messages.
fn messages(body: &Value) -> Vec<Value> {
    let text = body.as_str().expect("events");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

fn call(caller: &Caller<'_>, tool: &str, arguments: &Value) -> Vec<Value> {
    let params = json!({"name": format!("c__{tool}"), "arguments": arguments, "_meta": {"progressToken": 5}});
    let told = caller.request("tools/call", &params);
    assert_eq!(told.status, 200, "{tool}: {}", told.body);
    messages(&told.body)
}

fn said(caller: &Caller<'_>, tool: &str, arguments: &Value) -> String {
    let answer = call(caller, tool, arguments).pop().expect("an answer");
    assert_eq!(answer["id"], 7, "{answer}");
    answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned()
}

#[test]
fn a_command_is_a_server_with_a_process_for_each_session_that_sees_what_it_is_given() {
    let gate = start("");
    let (ada, ben) = (Caller::begun(&gate, "ada"), Caller::begun(&gate, "ben"));
    assert_eq!(ada.tools().0.len(), 7);
    let text = "two\nlines, \"quoted\" é";
    assert_eq!(said(&ada, "echo", &json!({"text": text})), text);
    let of = |caller: &Caller<'_>| said(caller, "process", &json!({}));
    let (one, other) = (of(&ada), of(&ben));
    assert_ne!(one, other, "each session has its process");
    assert_eq!(of(&ada), one, "and keeps it");
    let variables: Value =
        serde_json::from_str(&said(&ada, "environment", &json!({}))).expect("JSON");
    assert_eq!(variables["GIVEN"], "canary-given");
    assert!(variables["PATH"].is_string());
    assert!(
        !variables.to_string().contains("canary-of-the-gate"),
        "{variables}"
    );
    let told = call(&ada, "progress", &json!({}));
    assert_eq!(
        told[0]["params"],
        json!({"progressToken": 5, "progress": 1}),
        "{told:?}"
    );
    let shown = String::from_utf8(gate.admin("/config").body).expect("text");
    assert!(
        shown.contains("GIVEN") && !shown.contains("canary"),
        "{shown}"
    );
    let first = Listening::begin(&ada, "");
    let second = ada.send("GET", &["accept: text/event-stream"], b"");
    assert_eq!(second.status, 405, "one stream is open: {}", second.body);
    drop(first);
    eventually("another one may be opened", || {
        let again = Listening::maybe(&ada, "");
        again.is_stream()
    });
    assert_eq!(ada.send("DELETE", &[], b"").status, 200);
    eventually("its process has ended", || {
        !std::path::Path::new(&format!("/proc/{one}")).exists()
    });
    assert_eq!(of(&ben), other);
}

#[test]
fn a_command_that_ends_or_says_a_line_without_end_costs_its_own_session_alone() {
    let one = server("one");
    let gate = start(&format!("    one: {{ url: \"{}\" }}\n", url(&one)));
    let ben = Caller::begun(&gate, "ben");
    for tool in ["die", "flood"] {
        let mut ada = Caller::begun(&gate, "ada");
        let told = call(&ada, tool, &json!({})).pop().expect("an error");
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&json!(7), &json!(-32603)),
            "{tool}: {told}"
        );
        let says = told["error"]["message"].as_str().expect("a text");
        assert_eq!(
            says.contains("a line of more than 16777216 bytes"),
            tool == "flood",
            "{says}"
        );
        let again = ada.request(
            "tools/call",
            &json!({"name": "c__echo", "arguments": {"text": "x"}}),
        );
        assert_eq!(again.status, 404, "its client begins anew: {}", again.body);
        ada.session = ada.request("initialize", &initialize()).session;
        assert_eq!(said(&ada, "echo", &json!({"text": "x"})), "x");
        assert_eq!(said(&ben, "echo", &json!({"text": "y"})), "y");
        assert_eq!(ben.call("one__read").status, 200);
    }
}

#[test]
fn a_command_that_cannot_be_started_is_told_of_and_the_others_are_there() {
    let gate = start("    none: { command: /nowhere/at/all }\n");
    let mut ada = Caller::new(&gate, "ada");
    let told = ada.request("initialize", &initialize());
    assert_eq!(
        told.body["result"]["_meta"]["tollgate/unavailable"],
        json!(["none"]),
        "{}",
        told.body
    );
    ada.session = told.session;
    assert_eq!(said(&ada, "echo", &json!({"text": "x"})), "x");
    assert!(
        gate.log().contains("cannot start a server of tools"),
        "{}",
        gate.log()
    );
}

#[test]
fn a_command_that_ends_at_its_start_is_told_of_with_what_it_said_last() {
    let further =
        "    sad: { command: python3, args: [-c, \"import sys; sys.exit('no API token')\"] }\n";
    let gate = start(further);
    let ada = Caller::begun(&gate, "ada");
    let names = ada.tools().0;
    assert!(
        names.iter().all(|name| name.starts_with("c__")),
        "{names:?}"
    );
    eventually("the log says why", || {
        let log = gate.log();
        let mut lines = log.lines();
        lines.any(|line| {
            line.contains("ended by itself")
                && line.contains("sad")
                && line.contains("no API token")
        })
    });
    let metrics = String::from_utf8(gate.admin("/metrics").body).expect("text");
    let of_it =
        |line: &&str| line.starts_with("tollgate_attempts_total") && line.contains("mcp:sad");
    let attempts: Vec<&str> = metrics.lines().filter(of_it).collect();
    assert!(
        attempts.iter().all(|line| !line.contains("2xx")),
        "{attempts:?}"
    );
}

#[test]
fn a_command_that_is_slow_to_begin_is_told_of() {
    let servers =
        "    slow: { command: sh, args: [-c, \"echo fetching a package >&2; exec sleep 60\"] }";
    let gate = Gate::start(&super::config(servers, "    - { workload: ada }"), &[]);
    let ada = Caller::new(&gate, "ada");
    let told = ada.request("initialize", &initialize());
    assert_eq!(told.body["error"]["data"]["code"], "upstream_timeout");
    eventually("the log says whose answer was missed", || {
        let log = gate.log();
        let mut lines = log.lines();
        lines.any(|line| {
            line.contains("gave no answer to its first message") && line.contains("server=\"slow\"")
        })
    });
}

#[test]
fn a_client_without_a_session_uses_a_command_in_a_process_that_is_kept_for_it() {
    let gate = start("");
    let (ada, ben) = (Caller::new(&gate, "ada"), Caller::new(&gate, "ben"));
    let process = |caller: &Caller<'_>| {
        let params = json!({"name": "c__process", "arguments": {}});
        let told = super::modern::ask(caller, "tools/call", &params);
        assert_eq!(told.status, 200, "{}", told.body);
        let answer = messages(&told.body).pop().expect("an answer");
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"]["content"][0]["text"].clone()
    };
    let first = process(&ada);
    for _ in 0..10 {
        assert_eq!(process(&ada), first);
    }
    assert_ne!(process(&ben), first);
}

/// The process of a session that nobody ended, of a server that is not configured any more.
#[test]
fn a_command_ends_with_the_last_configuration_that_has_it() {
    let gone = format!("\x20   gone: {{ command: python3, args: [{SCRIPT:?}] }}\n");
    let gate = start(&gone);
    let ada = Caller::begun(&gate, "ada");
    let told = ada.request(
        "tools/call",
        &json!({"name": "gone__process", "arguments": {}}),
    );
    let answer = messages(&told.body).pop().expect("an answer");
    let process = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned();
    let runs = || {
        std::path::Path::new("/proc")
            .join(&process)
            .join("cmdline")
            .exists()
    };
    assert!(runs(), "{process}");
    gate.reconfigure(&config(""));
    eventually("the process of the server that is gone has ended", || {
        !runs()
    });
    // A session is of a set of servers.
    let ada = Caller::begun(&gate, "ada");
    assert_eq!(said(&ada, "echo", &json!({"text": "still"})), "still");
}

/// One that goes on after its input has ended, and minds no signal that can be minded.
#[test]
fn a_command_that_does_not_end_by_itself_ends_with_the_gate() {
    let script = format!("trap '' HUP INT TERM; python3 {SCRIPT}; exec sleep 600");
    let config = format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  within: 20s\n  servers:\n\
         \x20   c: {{ command: sh, args: [\"-c\", {script:?}] }}\n  routes: [ {{ workload: ada }} ]\n"
    );
    let mut gate = Gate::start(&config, &[]);
    let ada = Caller::begun(&gate, "ada");
    let python = said(&ada, "process", &json!({}));
    let status = std::fs::read_to_string(format!("/proc/{python}/status")).expect("it runs");
    let shell = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let shell = format!("/proc/{}", shell.expect("a parent").trim());
    assert!(std::path::Path::new(&shell).exists());
    gate.signal(libc::SIGTERM);
    assert!(gate.ended().success());
    assert!(!std::path::Path::new(&shell).exists(), "{shell}");
}
