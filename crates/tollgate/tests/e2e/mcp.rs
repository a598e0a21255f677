//! Servers of tools behind one address: the official SDK's client and servers, and servers that are dead, slow or wrong.
//!
//! Invariant: what a filter hides is neither listed nor called; a session is good for its caller on its route alone.
//! Not here: messages, names and sealing (unit tests of `mcp`).

mod access;
mod apart;
mod at_once;
mod attacks;
mod bridge;
mod budgets;
mod commands;
mod drained;
mod exchanged;
mod filters;
mod floods;
mod manifests;
mod modern;
mod names;
mod openapi;
mod own_tokens;
mod pages;
mod paths;
mod sealed;
mod search;
mod still;
mod streams;
mod tasks;

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::answer::{self, events, whole};
use crate::harness::{Gate, Sdk, Seen, Step, Upstream, free_address};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The checks that the script must report, in each way to connect.
const SHOWN: [&str; 9] = [
    "initialize",
    "tools",
    "calls",
    "progress",
    "elicitation",
    "filters",
    "prompts",
    "resources",
    "fifty_at_once",
];

/// A configuration with these servers, and these routes.
/// Servers have long to answer: a test that has one hang says itself how long it waits.
fn config(servers: &str, routes: &str) -> String {
    format!(
        "backends: {{ none: {{ url: http://127.0.0.1:1/v1 }} }}\n\
         routes: [ {{ workload: models, backend: none }} ]\n\
         mcp:\n  secret: {{ inline: {SECRET} }}\n  within: 30s\n\
         \x20 servers:\n{servers}\n  routes:\n{routes}\n"
    )
}

/// A server that has the tools `read` and `delete`, and answers calls with what it was sent.
fn server(name: &'static str) -> Upstream {
    Upstream::start(move |_, seen| vec![Step::Send(reply(name, seen))])
}

fn reply(name: &str, seen: &Seen) -> Vec<u8> {
    if seen.head.starts_with("DELETE") || seen.body.is_empty() {
        return whole(200, "text/plain", b"");
    }
    let message = seen.json();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}},
                "serverInfo": {"name": name, "version": "1"}}});
            let body = body.to_string();
            return format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: of-{name}\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes();
        }
        Some("tools/list") => {
            json!({"tools": [{"name": "read", "inputSchema": {}}, {"name": "delete", "inputSchema": {}}]})
        }
        Some("prompts/list") => json!({"prompts": [{"name": "greet"}, {"name": "secret"}]}),
        Some("resources/list") => {
            json!({"resources": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///etc/passwd", "name": "p"}]})
        }
        Some("resources/templates/list") => json!({"resourceTemplates": [
            {"uriTemplate": "memo://{topic}", "name": "m"}, {"uriTemplate": "db://{table}", "name": "d"}]}),
        Some("prompts/get") => json!({"messages": [], "named": message["params"]["name"]}),
        Some("resources/subscribe" | "resources/unsubscribe") => json!({}),
        Some("resources/read") => json!({"contents": [], "named": message["params"]["uri"]}),
        Some("completion/complete") => {
            json!({"completion": {"values": []}, "named": message["params"]["ref"]})
        }
        Some("tools/call") => {
            json!({"content": [], "server": name, "tool": message["params"]["name"]})
        }
        _ => return whole(202, "text/plain", b""),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    answer::json(200, &body.to_string())
}

/// What came of a message: its status, the session that it opened, and its body.
struct Told {
    status: u16,
    session: Option<String>,
    head: String,
    body: Value,
}

/// One client, of a workload.
struct Caller<'g> {
    gate: &'g Gate,
    workload: &'static str,
    path: &'static str,
    session: Option<String>,
}

impl<'g> Caller<'g> {
    fn new(gate: &'g Gate, workload: &'static str) -> Self {
        Self {
            gate,
            workload,
            path: "/mcp",
            session: None,
        }
    }

    fn to(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    /// The same, with a session.
    fn begun(gate: &'g Gate, workload: &'static str) -> Self {
        Self::at(gate, workload, "/mcp")
    }

    /// The same, at another path.
    fn at(gate: &'g Gate, workload: &'static str, path: &'static str) -> Self {
        let mut caller = Self::new(gate, workload).to(path);
        let told = caller.request("initialize", &initialize());
        assert_eq!(told.status, 200, "{}", told.body);
        caller.session = told.session;
        assert!(caller.session.is_some(), "{}", told.head);
        caller
    }

    fn request(&self, method: &str, params: &Value) -> Told {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.send("POST", &[], message.to_string().as_bytes())
    }

    fn call(&self, tool: &str) -> Told {
        self.request("tools/call", &json!({"name": tool, "arguments": {}}))
    }

    fn tools(&self) -> (Vec<String>, Value) {
        let told = self.request("tools/list", &json!({}));
        assert_eq!(told.status, 200, "{}", told.body);
        let tools = told.body["result"]["tools"]
            .as_array()
            .expect("a list")
            .clone();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").into());
        (names.collect(), told.body["result"]["_meta"].clone())
    }

    fn send(&self, method: &str, fields: &[&str], body: &[u8]) -> Told {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nhost: g\r\nx-workload-app: {}\r\ncontent-length: {}\r\n",
            self.path,
            self.workload,
            body.len()
        );
        let own: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        if !own.contains("content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        if !own.contains("accept:") {
            head.push_str("accept: application/json, text/event-stream\r\n");
        }
        if let Some(session) = &self.session {
            head.push_str(&format!("mcp-session-id: {session}\r\n"));
        }
        head.push_str(&own);
        head.push_str("connection: close\r\n\r\n");
        let mut tcp = std::net::TcpStream::connect(self.gate.data).expect("the gate listens");
        tcp.set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .expect("a socket option");
        tcp.write_all(&[head.as_bytes(), body].concat())
            .expect("it is taken");
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut tcp, &mut bytes).expect("an answer");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let session = head
            .split("\r\n")
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        Told {
            status: head
                .get(9..12)
                .and_then(|s| s.parse().ok())
                .expect("a status"),
            session: session.map(str::to_owned),
            body: serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())),
            head: head.to_owned(),
        }
    }
}

fn initialize() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

fn url(server: &Upstream) -> String {
    format!("http://{}/mcp", server.address)
}

#[test]
fn the_official_sdk_works_with_two_servers_behind_one_address() {
    let ports = [free_address().port(), free_address().port()];
    let dead = free_address();
    let servers = format!(
        "    events: {{ url: \"http://127.0.0.1:{}/mcp\" }}\n\
         \x20   plain: {{ url: \"http://127.0.0.1:{}/mcp\", tools: {{ deny: [secret] }} }}\n\
         \x20   dead: {{ url: \"http://{dead}/mcp\" }}",
        ports[0], ports[1]
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let input = json!({
        "gate": format!("http://{}/mcp", gate.data),
        "ports": {"events": ports[0], "plain": ports[1]},
    });
    let shown = [SHOWN, SHOWN].concat();
    assert_eq!(Sdk::Python.run("tools", &input), json!(shown));
    let records = gate.records(2 * 60);
    let of = |name: &str| records.iter().filter(|r| r["mcp_method"] == name).count();
    assert_eq!((of("initialize"), of("server/discover")), (1, 1));
    assert!(
        records.iter().all(|r| r["operation"] == "mcp"),
        "{records:?}"
    );
    let named = records.iter().filter(|r| r["mcp_name"] == "events__echo");
    assert_eq!(named.count(), 2 * 51);
    assert!(
        gate.metric(
            "tollgate_exchanges_total",
            &["operation=\"mcp\"", "backend=\"mcp:events\""]
        ) >= 100.0,
        "{}",
        gate.metrics()
    );
}

#[test]
fn a_dead_server_and_one_that_hangs_hurt_nobody_and_are_told_of() {
    let good = server("good");
    let hangs = Upstream::start(|_, _| vec![Step::silence()]);
    let nonsense = Upstream::start(|_, _| vec![Step::Send(answer::json(200, "{\"no\":"))]);
    let servers = format!(
        "    good: {{ url: \"{}\" }}\n    hangs: {{ url: \"{}\" }}\n    nonsense: {{ url: \"{}\" }}\n    dead: {{ url: \"http://{}/mcp\" }}",
        url(&good),
        url(&hangs),
        url(&nonsense),
        free_address()
    );
    let config = config(&servers, "    - { workload: agent }");
    let gate = Gate::start(&config.replace("within: 30s", "within: 5s"), &[]);
    let mut caller = Caller::new(&gate, "agent");
    let told = caller.request("initialize", &initialize());
    assert_eq!(told.status, 200, "{}", told.body);
    let silent = json!(["dead", "hangs", "nonsense"]);
    assert_eq!(told.body["result"]["_meta"]["tollgate/unavailable"], silent);
    caller.session = told.session;
    let (tools, meta) = caller.tools();
    assert_eq!(tools, ["good__read", "good__delete"]);
    assert_eq!(meta["tollgate/unavailable"], silent);
    let told = caller.call("good__read");
    assert_eq!(told.body["result"]["tool"], "read");
    assert_eq!(told.body["id"], 7);
    for of in ["dead", "hangs", "nonsense"] {
        let told = caller.call(&format!("{of}__read"));
        assert_eq!(told.body["error"]["code"], -32602, "{}", told.body);
    }
}

#[test]
fn a_session_whose_client_left_before_it_knew_of_it_is_ended_at_its_servers() {
    let good = server("good");
    let hangs = Upstream::start(|_, _| vec![Step::silence()]);
    let servers = format!(
        "    good: {{ url: \"{}\" }}\n    hangs: {{ url: \"{}\" }}",
        url(&good),
        url(&hangs)
    );
    let config = config(&servers, "    - { workload: agent }");
    let gate = Gate::start(&config.replace("within: 30s", "within: 10m"), &[]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize()});
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: g\r\nx-workload-app: agent\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut client = std::net::TcpStream::connect(gate.data).expect("the gate listens");
    client
        .write_all((head + &body).as_bytes())
        .expect("it is taken");
    testing::eventually("one server has opened a session", || {
        let of = ["backend=\"mcp:good\"", "result=\"2xx\""];
        gate.metric("tollgate_attempts_total", &of) >= 1.0
    });
    drop(client);
    testing::eventually("the session is ended", || {
        let seen = good.seen();
        let mut ends = seen.iter().filter(|seen| seen.head.starts_with("DELETE "));
        ends.any(|seen| seen.header("mcp-session-id") == ["of-good"])
    });
}

#[test]
fn a_session_is_good_for_its_caller_on_its_route_and_for_nobody_else() {
    let (one, other) = (server("one"), server("other"));
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    other: {{ url: \"{}\" }}",
        url(&one),
        url(&other)
    );
    let routes =
        "    - { name: a, workload: [ada, ben], servers: one }\n    - { name: b, workload: eve }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let ada = Caller::begun(&gate, "ada");
    assert_eq!(ada.call("one__read").status, 200);
    let session = ada.session.clone().expect("a session");
    for (workload, session) in [
        ("ben", session.clone()),
        ("eve", session.clone()),
        ("ada", session[..session.len() - 1].to_owned()),
        ("ada", format!("{session}A")),
        ("ada", "x".repeat(session.len())),
        ("ada", "1868a90c".to_owned()),
    ] {
        let thief = Caller {
            gate: &gate,
            workload,
            path: "/mcp",
            session: Some(session),
        };
        let told = thief.call("one__read");
        assert_eq!(told.status, 404, "{workload}: {}", told.body);
        assert_eq!(told.body["error"]["data"]["code"], "mcp_session_not_found");
        assert_eq!(told.body["id"], 7, "the error carries its request's id");
    }
    let none = Caller::new(&gate, "ada").call("one__read");
    assert_eq!(none.status, 400, "{}", none.body);
    let nobody = Caller::new(&gate, "models").request("initialize", &initialize());
    assert_eq!(
        (nobody.status, &nobody.body["error"]["data"]["code"]),
        (403, &json!("mcp_route_not_found"))
    );
    let unknown = Caller::new(&gate, "nobody").request("initialize", &initialize());
    assert_eq!(unknown.status, 404, "{}", unknown.body);
    let calls = one
        .seen()
        .iter()
        .filter(|seen| seen.head.starts_with("POST"))
        .count();
    assert_eq!(calls, 2, "no thief's call went on");
    let sent = one.seen().pop().expect("a call");
    assert_eq!(sent.header("mcp-session-id"), ["of-one"]);
    assert_eq!(sent.header("mcp-protocol-version"), ["2025-06-18"]);
    assert_eq!(ada.send("DELETE", &[], b"").status, 200);
    let ended = one.seen().pop().expect("an end");
    assert!(ended.head.starts_with("DELETE /mcp "), "{}", ended.head);
    assert_eq!(ended.header("mcp-session-id"), ["of-one"]);
}

#[test]
fn a_session_of_a_server_that_began_anew_is_answered_with_404_so_that_its_client_begins_anew() {
    let restarted = Upstream::start(|_, seen| {
        let is_call = !seen.body.is_empty() && seen.json()["method"] == "tools/call";
        let gone = whole(404, "application/json", b"{\"error\":\"no session\"}");
        vec![Step::Send(if is_call { gone } else { reply("one", seen) })]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&restarted));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let told = Caller::begun(&gate, "agent").call("one__read");
    assert_eq!(told.status, 404, "{}", told.body);
    assert_eq!(told.body["error"]["data"]["code"], "mcp_session_not_found");
}

#[test]
fn a_tool_that_is_filtered_is_neither_listed_nor_called() {
    let one = server("one");
    let servers = format!(
        "    one: {{ url: \"{}\", tools: {{ deny: \"del*\" }} }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&one)
    );
    let routes = "    - { workload: all }\n    - { workload: few, tools: { allow: [\"*__read\"], deny: [\"two__*\"] } }";
    // Each worker asks for lists itself.
    let config = "workers: 1\n".to_owned() + &config(&servers, routes);
    let gate = Gate::start(&config, &[]);
    let (all, few) = (Caller::begun(&gate, "all"), Caller::begun(&gate, "few"));
    assert_eq!(all.tools().0, ["one__read", "two__read", "two__delete"]);
    assert_eq!(few.tools().0, ["one__read"]);
    for (caller, tool, is_called) in [
        (&all, "one__read", true),
        (&all, "two__delete", true),
        (&all, "one__delete", false),
        (&few, "one__read", true),
        (&few, "one__delete", false),
        (&few, "two__read", false),
        (&few, "two__delete", false),
        (&few, "read", false),
        (&few, "one__", false),
    ] {
        let before = one.count();
        let told = caller.call(tool);
        assert_eq!(told.status, 200);
        assert_eq!(
            told.body["result"].is_object(),
            is_called,
            "{tool}: {}",
            told.body
        );
        assert_eq!(one.count() - before, usize::from(is_called), "{tool}");
        if !is_called {
            assert_eq!(told.body["error"]["code"], -32602, "{tool}");
        }
    }
    // A server might read the other of two names.
    let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__read","Name":"delete"}}"#;
    let (before, told) = (one.count(), few.send("POST", &[], twice));
    assert_eq!((told.status, one.count()), (400, before), "{}", told.body);
}

/// What comes of using each of these, of what a server has and of names that somebody may try in their place.
fn uses(caller: &Caller<'_>, of: &Upstream, denied: &[(&str, Value)]) {
    for (method, params) in denied {
        let before = of.count();
        let told = caller.request(method, params);
        assert!(
            told.body["error"].is_object(),
            "{method} {params}: {}",
            told.body
        );
        assert_eq!(of.count(), before, "{method} {params} goes no further");
    }
}

#[test]
fn what_is_filtered_is_hidden_from_every_list_and_refused_in_every_use_however_it_is_written() {
    let one = server("one");
    let servers = format!(
        "    one: {{ url: \"{}\", prompts: {{ deny: secret }}, resources: {{ deny: [\"file:///etc/*\", \"db://{{table}}\"] }} }}",
        url(&one)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let listed = |method: &str, list: &str, name: &str| {
        let told = caller.request(method, &json!({}));
        let items = told.body["result"][list]
            .as_array()
            .expect("a list")
            .clone();
        items
            .iter()
            .map(|of| of[name].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("prompts/list", "prompts", "name"), ["one__greet"]);
    assert_eq!(
        listed("resources/list", "resources", "uri"),
        ["one+file:///a"]
    );
    let templates = listed(
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    );
    assert_eq!(templates, ["one+memo://{topic}"]);
    let complete = |of: Value| json!({"ref": of, "argument": {"name": "a", "value": ""}});
    let prompt = |name: &str| complete(json!({"type": "ref/prompt", "name": name}));
    let template = |uri: &str| complete(json!({"type": "ref/resource", "uri": uri}));
    for (method, params) in [
        ("prompts/get", json!({"name": "one__greet"})),
        ("resources/read", json!({"uri": "one+file:///a"})),
        ("resources/read", json!({"uri": "one+memo://a%20b"})),
        ("completion/complete", prompt("one__greet")),
        ("completion/complete", template("one+memo://{topic}")),
    ] {
        let told = caller.request(method, &params);
        assert!(
            told.body["result"].is_object(),
            "{method} {params}: {}",
            told.body
        );
    }
    let mut denied = vec![
        ("prompts/get", json!({"name": "one__secret"})),
        ("prompts/get", json!({"name": "one__", "Name": "secret"})),
        ("completion/complete", prompt("one__secret")),
        ("completion/complete", template("one+db://{table}")),
        ("completion/complete", template("one+db://users")),
        (
            "completion/complete",
            complete(
                json!({"type": "ref/prompt", "name": "one__greet", "uri": "x", "NAME": "secret"}),
            ),
        ),
    ];
    for uri in [
        "file:///etc/passwd",
        "file:///etc/%70asswd",
        "file:///%65tc/passwd",
        "file:///%2565tc/passwd",
        "FILE:///etc/passwd",
        "file:///a/../etc/passwd",
        "file:///./etc/passwd",
        "file:///a/%2e%2e/etc/passwd",
        "file:///a\\..\\etc\\passwd",
        "db://users",
        "DB://users",
        "d%62://users",
    ] {
        let params = json!({"uri": format!("one+{uri}")});
        denied.push(("resources/read", params.clone()));
        denied.push(("resources/subscribe", params.clone()));
        denied.push(("resources/unsubscribe", params));
    }
    uses(&caller, &one, &denied);
}

#[test]
fn rules_see_what_a_message_uses_in_lists_in_use_and_in_completion() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let rules = "authority:\n  rules:\n  - name: no-secrets\n    deny: >-\n      method == 'prompts/get' && path.endsWith('__secret')\n      || method == 'tools/call' && path == 'one__delete'\n      || method == 'resources/read' && path.startsWith('one+file:///etc/')\n  - { name: rest, allow: \"true\" }\n";
    let gate = Gate::start(
        &(config(&servers, "    - { workload: agent }") + rules),
        &[],
    );
    let caller = Caller::begun(&gate, "agent");
    assert_eq!(caller.tools().0, ["one__read"]);
    let prompts = caller.request("prompts/list", &json!({}));
    assert_eq!(
        prompts.body["result"]["prompts"],
        json!([{"name": "one__greet"}])
    );
    let secret = json!({"ref": {"type": "ref/prompt", "name": "one__secret"}, "argument": {"name": "a", "value": ""}});
    uses(
        &caller,
        &one,
        &[
            ("tools/call", json!({"name": "one__delete"})),
            ("prompts/get", json!({"name": "one__secret"})),
            ("completion/complete", secret),
            ("resources/read", json!({"uri": "one+file:///etc/passwd"})),
            (
                "resources/read",
                json!({"uri": "one+file:///x/../etc/passwd"}),
            ),
        ],
    );
    assert_eq!(caller.call("one__read").status, 200);
}

#[test]
fn limits_of_some_tools_hold_for_those_beside_the_route_s_own() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: agent, limits: [ { requests: 9, per: 366d } ], tool_limits: [ { tools: \"*__delete\", limits: [ { requests: 2, per: 366d } ] } ] }";
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let with_ledger = format!("ledger: {{ path: {} }}\n", ledger.display());
    let gate = Gate::start(&(config(&servers, routes) + &with_ledger), &[]);
    let caller = Caller::begun(&gate, "agent");
    let statuses: Vec<u16> = (0..3).map(|_| caller.call("one__delete").status).collect();
    assert_eq!(statuses, [200, 200, 429]);
    let statuses: Vec<u16> = (0..7).map(|_| caller.call("one__read").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429]);
    drop(caller);
    crate::ledger::stop(gate);
    // A call that a limit refuses, whether the tool's or the route's, has no row: it never ran.
    let rows = crate::ledger::rows(&ledger);
    let of = |tool: &str| rows.values().filter(|row| row["mcp_name"] == tool).count();
    assert_eq!((of("one__delete"), of("one__read")), (2, 6), "{rows:?}");
    assert!(
        rows.values().all(|row| row["outcome"] == "completed"),
        "{rows:?}"
    );
}

#[test]
fn bad_messages_are_errors_of_their_own_and_nothing_of_them_goes_on() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let before = one.count();
    for (body, code) in [
        (&b"[]"[..], -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (b"{", -32700),
        (b"\xff", -32700),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":"x","result":{}}"#, -32600),
    ] {
        let told = caller.send("POST", &[], body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (400, &json!(code)),
            "{shown}: {}",
            told.body
        );
    }
    for (fields, status) in [
        (&["content-type: text/plain"][..], 415),
        (&["content-encoding: compress"], 415),
        (&["mcp-protocol-version: 2024-11-05"], 400),
        (&["mcp-protocol-version: 2026-07-28"], 400),
        (&["origin: https://evil.example"], 403),
    ] {
        let told = caller.send(
            "POST",
            fields,
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        );
        assert_eq!(told.status, status, "{fields:?}: {}", told.body);
    }
    for method in ["tasks/get", "resources/list/x", "server/discover"] {
        let told = caller.request(method, &json!({"uri": "one+a:b"}));
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (200, &json!(-32601)),
            "{method}: {}",
            told.body
        );
    }
    assert_eq!(one.count(), before, "none of it went on");
    let get = caller.send("GET", &["accept: text/event-stream"], b"");
    assert_eq!(
        get.status, 405,
        "its server has no such stream: {}",
        get.head
    );
    assert!(get.head.contains("allow: POST, DELETE"), "{}", get.head);
}

#[test]
fn ids_of_every_kind_codings_and_charsets_pass() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    for id in [
        "0",
        "-1",
        "1.5",
        "18446744073709551615",
        "\"\"",
        "\"a\\\"b\"",
        "\"\\u00e9\"",
    ] {
        for method in ["ping", "tools/list", "tools/call"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"name":"one__read"}},"id":{id}}}"#
            );
            let told = caller.send("POST", &[], body.as_bytes());
            assert_eq!(told.status, 200, "{id}: {}", told.body);
            let sent: Value = serde_json::from_str(id).expect("JSON");
            assert_eq!(told.body["id"], sent, "{method}: {}", told.body);
            assert!(told.body["result"].is_object(), "{id}: {}", told.body);
        }
    }
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__read"}}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(body).expect("memory");
    let told = caller.send(
        "POST",
        &["content-encoding: gzip"],
        &gzip.finish().expect("memory"),
    );
    assert_eq!(
        (told.status, &told.body["result"]["tool"]),
        (200, &json!("read")),
        "{}",
        told.body
    );
    let told = caller.send("POST", &["content-encoding: gzip"], body);
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (400, &json!(-32700))
    );
    let told = caller.send(
        "POST",
        &["content-type: application/json; charset=UTF-8"],
        body,
    );
    assert_eq!(told.status, 200, "{}", told.body);
}

#[test]
fn what_a_coded_message_decodes_to_counts_among_the_bodies_that_are_kept() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let mut config = config(&servers, "    - { workload: agent }");
    config.push_str("bounds: { body: 1MiB, bodies: 1MiB }\n");
    let gate = Gate::start(&config, &[]);
    let caller = Caller::begun(&gate, "agent");
    let coded = |bytes: usize| {
        // What expands a hundredfold is refused.
        let text: String = (0..bytes / 8).map(|nth| format!("{nth:07} ")).collect();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"one__read","arguments":{{"text":"{text}"}}}}}}"#
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(body.as_bytes()).expect("memory");
        caller.send(
            "POST",
            &["content-encoding: gzip"],
            &gzip.finish().expect("memory"),
        )
    };
    let told = coded(900_000);
    assert_eq!(told.status, 200, "{}", told.body);
    // With the window of the decoder it is more than one body has room for.
    let told = coded(1_030_000);
    assert_eq!(told.status, 503, "{}", told.body);
    let told = coded(900_000);
    assert_eq!(told.status, 200, "all was given back: {}", told.body);
}

#[test]
fn what_a_server_answers_wrongly_is_an_error_and_its_other_calls_go_on() {
    let says =
        |id: &Value, result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let one = Upstream::start(move |_, seen| {
        let message = if seen.body.is_empty() {
            json!({})
        } else {
            seen.json()
        };
        let id = &message["id"];
        let named = message["params"]["name"].as_str().unwrap_or_default();
        let event = |text: &str| format!("event: message\ndata: {text}\n\n");
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
        let bytes = match named {
            "other_id" => answer::json(200, &says(&json!(8), "{}")),
            "text" => whole(200, "text/html", b"<p>no</p>"),
            "broken" => answer::json(200, "{\"jsonrpc\":"),
            "status" => answer::json(500, "{}"),
            "challenge" => whole(401, "text/plain", b""),
            "error" => answer::json(
                200,
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"mine"}}}}"#),
            ),
            "stream" => events(
                [event(progress), event(&says(id, "{\"ok\":1}"))]
                    .concat()
                    .as_bytes(),
            ),
            "cut" => events(event(progress).as_bytes()),
            "stream_other_id" => events(
                [event(progress), event(&says(&json!(8), "{\"theirs\":1}"))]
                    .concat()
                    .as_bytes(),
            ),
            _ => reply("one", seen),
        };
        vec![Step::Send(bytes)]
    });
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: servers-key }} }}",
        url(&one)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    for (tool, status, code) in [
        ("other_id", 502, -32603),
        ("text", 502, -32603),
        ("broken", 502, -32603),
        ("status", 502, -32603),
        ("challenge", 502, -32603),
        ("error", 200, -1),
    ] {
        let told = caller.call(&format!("one__{tool}"));
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (status, &json!(code)),
            "{tool}: {}",
            told.body
        );
        assert_eq!(told.body["id"], 7, "{tool}");
        assert!(
            !told.head.to_lowercase().contains("www-authenticate"),
            "{tool}"
        );
    }
    let stream = |tool: &str| {
        let told = caller.call(&format!("one__{tool}"));
        assert_eq!(told.status, 200, "{tool}");
        assert!(
            told.head.contains("content-type: text/event-stream"),
            "{}",
            told.head
        );
        told.body.as_str().expect("events").to_owned()
    };
    let whole = stream("stream");
    assert!(
        whole.contains("notifications/progress") && whole.contains(r#""result":{"ok":1}"#),
        "{whole}"
    );
    for tool in ["cut", "stream_other_id"] {
        let broken = stream(tool);
        assert!(
            broken.contains(r#""id":7,"error":{"code":-32603"#),
            "{broken}"
        );
        assert!(!broken.contains("theirs"), "{broken}");
    }
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "one__stream"}});
    let told = caller.send(
        "POST",
        &["accept: application/json"],
        message.to_string().as_bytes(),
    );
    assert_eq!(
        told.body["result"],
        json!({"ok": 1}),
        "a client that takes no events is given the answer alone"
    );
    let told = caller.send(
        "POST",
        &["authorization: Bearer clients-key", "cookie: a=b"],
        message.to_string().as_bytes(),
    );
    assert_eq!(told.status, 200);
    let sent = one.seen().pop().expect("a call");
    assert_eq!(sent.header("authorization"), ["Bearer servers-key"]);
    for kept in ["clients-key", "cookie", "x-workload-app"] {
        assert!(
            !sent.head.contains(kept),
            "{kept} stays here: {}",
            sent.head
        );
    }
}

#[test]
fn limits_of_requests_hold_for_calls_and_not_for_pings() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: agent, limits: [ { requests: 3, per: 366d } ] }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let caller = Caller::begun(&gate, "agent");
    for _ in 0..5 {
        assert_eq!(caller.request("ping", &json!({})).status, 200);
    }
    assert_eq!(caller.tools().0.len(), 2);
    assert_eq!(caller.call("one__read").status, 200);
    let told = caller.call("one__read");
    assert_eq!(told.status, 429, "{}", told.body);
    assert_eq!(told.body["error"]["data"]["code"], "rate_limit_exceeded");
    assert_eq!(told.body["id"], 7);
    assert!(told.head.contains("retry-after: "), "{}", told.head);
    let records = gate.records(9);
    let refused: Vec<&Value> = records
        .iter()
        .filter(|r| r["outcome"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1, "{records:?}");
    assert_eq!(
        (&refused[0]["mcp_name"], &refused[0]["status"]),
        (&json!("one__read"), &json!(429))
    );
}

#[test]
fn what_nobody_has_counts_before_any_server_is_asked_for_it() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: agent, limits: [ { requests: 3, per: 366d } ] }";
    let text =
        config(&servers, routes).replace("  within: 30s\n", "  within: 30s\n  prefix: never\n");
    let gate = Gate::start(&text, &[]);
    let caller = Caller::begun(&gate, "agent");
    for _ in 0..2 {
        let told = caller.call("nothing");
        assert_eq!(told.body["error"]["data"]["code"], "mcp_not_found");
    }
    let asked = one.seen().len();
    let resource = json!({"uri": "file:///nothing"});
    for told in [
        caller.call("nothing"),
        caller.request("resources/read", &resource),
        modern::ask(&Caller::new(&gate, "agent"), "resources/read", &resource),
        modern::ask(&Caller::new(&gate, "agent"), "prompts/list", &json!({})),
    ] {
        assert_eq!(told.status, 429, "{}", told.body);
    }
    assert_eq!(one.seen().len(), asked);
}

#[test]
fn servers_of_an_editor_s_file_are_served_and_a_change_of_it_is_taken() {
    let (one, two) = (server("one"), server("two"));
    let entry = |of: &Upstream| json!({"type": "http", "url": url(of), "headers": {"Authorization": "Bearer its-key"}});
    let before = json!({"mcpServers": {"one": entry(&one)}}).to_string();
    let gate = Gate::start_with_servers("identity: { default: default }\n", &before);
    let caller = Caller::begun(&gate, "default");
    assert_eq!(caller.tools().0, ["one__read", "one__delete"]);
    let sent = one.seen().pop().expect("a call");
    assert_eq!(sent.header("authorization"), ["Bearer its-key"]);
    let shown = String::from_utf8(gate.admin("/config").body).expect("text");
    assert!(
        shown.contains("one") && !shown.contains("its-key"),
        "{shown}"
    );
    let secret = shown
        .find("\"secret\"")
        .map(|at| &shown[at..])
        .expect("a secret");
    let masked = secret
        .split_once('}')
        .is_some_and(|(secret, _)| secret.contains("***"));
    assert!(masked, "{secret}");
    let after = json!({"mcpServers": {"one": entry(&one), "two": entry(&two)}}).to_string();
    std::fs::write(gate.path("mcp.json"), after).expect("a file");
    // Each worker takes it at its own moment.
    testing::eventually("the second server is served", || {
        let mut fresh = Caller::new(&gate, "default");
        fresh.session = fresh.request("initialize", &initialize()).session;
        let told = fresh.request("tools/list", &json!({}));
        let tools = told.body["result"]["tools"].as_array().map(Vec::len);
        tools == Some(4)
    });
    testing::eventually("a session of other servers is none", || {
        caller.call("one__read").status == 404
    });
}

#[test]
fn a_gate_without_servers_of_tools_knows_no_such_path() {
    let config = "backends: { none: { url: http://127.0.0.1:1/v1 } }\nroutes: [ { workload: agent, backend: none } ]\n";
    let gate = Gate::start(config, &[]);
    let told = Caller::new(&gate, "agent").request("initialize", &initialize());
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (404, &json!("unknown_url"))
    );
}
