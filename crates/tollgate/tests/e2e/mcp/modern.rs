//! Clients and servers without sessions (2026-07-28): what each message says of itself, and the same filters, rules and limits.
//!
//! Not here: clients and servers of which only one has sessions (`bridge`).

use serde_json::{Value, json};

use super::{Caller, Told, config, server, url};
use crate::harness::answer::{self, chunk, events_head, whole};
use crate::harness::{Gate, Seen, Step, Upstream};

pub(super) const VERSION: &str = "2026-07-28";

/// The `_meta` of a request, of a client that can do this.
pub(super) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A message of a client without a session, with its headers.
pub(super) fn ask(caller: &Caller<'_>, method: &str, params: &Value) -> Told {
    let mut params = params.clone();
    if params["_meta"].is_null() {
        params["_meta"] = meta(&json!({}));
    }
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let headers = headers(method, &params);
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    caller.send("POST", &headers, message.to_string().as_bytes())
}

pub(super) fn headers(method: &str, params: &Value) -> Vec<String> {
    let mut headers = vec![
        format!("mcp-protocol-version: {VERSION}"),
        format!("mcp-method: {method}"),
    ];
    let named = params["name"].as_str().or(params["uri"].as_str());
    if let Some(named) = named.filter(|_| method != "completion/complete") {
        headers.push(format!("mcp-name: {named}"));
    }
    headers
}

pub(super) fn call(caller: &Caller<'_>, tool: &str) -> Told {
    ask(
        caller,
        "tools/call",
        &json!({"name": tool, "arguments": {}}),
    )
}

/// A server without sessions that has the tools `read` and `delete`, and answers calls with what it was sent.
pub(super) fn modern(name: &'static str) -> Upstream {
    Upstream::start(move |_, seen| vec![Step::Send(modern_reply(name, seen))])
}

/// What a server without sessions answers; what is none of its requests it refuses.
pub(super) fn modern_reply(name: &str, seen: &Seen) -> Vec<u8> {
    if seen.body.is_empty() {
        return whole(405, "text/plain", b"");
    }
    let message = seen.json();
    let id = &message["id"];
    let refuse = |status, code: i32, says: &str| {
        let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": says}});
        answer::json(status, &body.to_string())
    };
    let params = &message["params"];
    let method = message["method"].as_str().expect("a method");
    let told = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    if told != Some(VERSION) || seen.header("mcp-protocol-version") != [VERSION] {
        return refuse(400, -32022, "which version?");
    }
    if seen.header("mcp-method") != [method] {
        return refuse(400, -32020, "which method?");
    }
    let named = params["name"].as_str().or(params["uri"].as_str());
    let is_named = ["tools/call", "prompts/get", "resources/read"].contains(&method);
    if is_named && seen.header("mcp-name") != [named.expect("a name")] {
        return refuse(400, -32020, "which name?");
    }
    let list = |member: &str, list: Value| json!({"resultType": "complete", member: list, "ttlMs": 60_000, "cacheScope": "public"});
    let result = match method {
        "server/discover" => {
            json!({"resultType": "complete", "supportedVersions": [VERSION], "ttlMs": 1000, "cacheScope": "public",
            "instructions": format!("use {name}"),
            "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}}})
        }
        "tools/list" => list(
            "tools",
            json!([{"name": "read", "inputSchema": {"type": "object", "properties": {
                "where": {"type": "string", "x-mcp-header": "Where"}}}}, {"name": "delete", "inputSchema": {}}]),
        ),
        "prompts/list" => list("prompts", json!([{"name": "greet"}, {"name": "secret"}])),
        "resources/list" => list(
            "resources",
            json!([{"uri": "file:///a", "name": "a"}, {"uri": "file:///etc/passwd", "name": "p"}]),
        ),
        "resources/templates/list" => list(
            "resourceTemplates",
            json!([{"uriTemplate": "memo://{topic}", "name": "m"}]),
        ),
        "resources/read" => {
            json!({"resultType": "complete", "contents": [], "named": named, "ttlMs": 5, "cacheScope": "public"})
        }
        "completion/complete" => {
            json!({"resultType": "complete", "completion": {"values": []}, "named": params["ref"]})
        }
        "tools/call" | "prompts/get" => {
            json!({"resultType": "complete", "content": [], "server": name, "tool": named,
            "meta": params["_meta"], "state": params["requestState"], "responses": params["inputResponses"]})
        }
        _ => return refuse(404, -32601, "what?"),
    };
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
    answer::json(200, &body.to_string())
}

/// How often it was asked anything but what it offers, which each worker asks for itself.
fn asked(server: &Upstream) -> usize {
    let seen = server.seen();
    let others = seen
        .iter()
        .filter(|seen| seen.header("mcp-method") != ["server/discover"]);
    others.count()
}

/// The messages in a stream of events.
pub(super) fn messages(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages = lines.filter_map(|line| serde_json::from_str(line).ok());
    messages.collect()
}

#[test]
fn a_server_whose_changes_are_refused_tells_no_instructions() {
    let (one, two) = (modern("one"), modern("two"));
    let servers = format!(
        "    one: {{ url: \"{}\", pin: refuse }}\n    two: {{ url: \"{}\", pin: warn }}",
        url(&one),
        url(&two)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let told = ask(&caller, "server/discover", &json!({}));
    assert_eq!(told.body["result"]["instructions"], "# two\n\nuse two");
}

#[test]
fn a_client_without_a_session_uses_servers_without_sessions() {
    let (one, two) = (modern("one"), modern("two"));
    let servers = format!(
        "    one: {{ url: \"{}\", tools: {{ deny: \"del*\" }} }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let told = ask(&caller, "server/discover", &json!({}));
    let result = &told.body["result"];
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(
        result["supportedVersions"],
        json!([VERSION, "2025-11-25", "2025-06-18"])
    );
    assert_eq!(
        result["capabilities"]["resources"],
        json!({"subscribe": true})
    );
    assert_eq!(
        result["instructions"],
        "# one\n\nuse one\n\n# two\n\nuse two"
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "tollgate"
    );
    assert!(
        told.session.is_none(),
        "nobody opens a session: {}",
        told.head
    );
    let told = ask(&caller, "tools/list", &json!({}));
    let names: Vec<&str> = told.body["result"]["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["one__read", "two__read", "two__delete"]);
    assert_eq!(
        (
            &told.body["result"]["resultType"],
            &told.body["result"]["cacheScope"]
        ),
        (&json!("complete"), &json!("public"))
    );
    let ttl = told.body["result"]["ttlMs"].as_u64().expect("a number");
    assert!(
        (1..=30_000).contains(&ttl),
        "no longer than the gate keeps it: {ttl}"
    );
    let told = call(&caller, "two__delete");
    assert_eq!(
        (&told.body["result"]["server"], &told.body["result"]["tool"]),
        (&json!("two"), &json!("delete"))
    );
    assert_eq!(
        told.body["result"]["meta"],
        meta(&json!({})),
        "it goes on as it was said"
    );
    assert_eq!(told.body["id"], 7);
    let seen = two.seen().pop().expect("a call");
    assert_eq!(
        (seen.header("mcp-name"), seen.header("mcp-method")),
        (vec!["delete".to_owned()], vec!["tools/call".to_owned()])
    );
    assert!(seen.header("mcp-session-id").is_empty());
    let told = ask(&caller, "resources/read", &json!({"uri": "one+file:///a"}));
    assert_eq!(
        (&told.body["result"]["named"], &told.body["result"]["ttlMs"]),
        (&json!("file:///a"), &json!(5))
    );
    let told = ask(
        &caller,
        "completion/complete",
        &json!({"ref": {"type": "ref/prompt", "name": "two__greet"}, "argument": {}}),
    );
    assert_eq!(told.body["result"]["named"]["name"], "greet");
    for (method, params) in [
        ("ping", json!({})),
        ("initialize", super::initialize()),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "one+file:///a"})),
        ("tasks/list", json!({})),
    ] {
        let told = ask(&caller, method, &params);
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (404, &json!(-32601)),
            "{method}: {}",
            told.body
        );
        assert_eq!(told.body["id"], 7);
    }
    assert_eq!(
        caller
            .send(
                "POST",
                &[
                    "mcp-protocol-version: 2026-07-28",
                    "mcp-method: notifications/cancelled"
                ],
                br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
            )
            .status,
        202
    );
    let answer = caller.send(
        "POST",
        &["mcp-protocol-version: 2026-07-28"],
        br#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    );
    assert_eq!(answer.status, 400, "{}", answer.body);
    let discovered = |of: &Upstream| {
        of.seen()
            .iter()
            .filter(|seen| seen.header("mcp-method") == ["server/discover"])
            .count()
    };
    let workers = 64;
    assert!(
        discovered(&one) <= workers && discovered(&one) >= 1,
        "once a worker at most"
    );
}

#[test]
fn what_a_message_says_of_itself_is_checked_against_its_headers() {
    let one = modern("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    assert_eq!(call(&caller, "one__read").status, 200);
    let before = asked(&one);
    let good = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: one__read",
    ];
    let message = |meta: Value| {
        json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "one__read", "_meta": meta}}).to_string()
    };
    let whole = message(meta(&json!({})));
    let without = |member: &str| {
        let mut of = meta(&json!({}));
        of.as_object_mut().expect("an object").remove(member);
        message(of)
    };
    let other = whole.replace(VERSION, "v999.0.0");
    for (headers, body, status, code) in [
        (
            &good[..],
            &*without("io.modelcontextprotocol/protocolVersion"),
            400,
            -32602,
        ),
        (
            &good[..],
            &*without("io.modelcontextprotocol/clientCapabilities"),
            400,
            -32602,
        ),
        (&good[1..], &whole, 400, -32020),
        (&[good[0], good[2]], &whole, 400, -32020),
        (&good[..2], &whole, 400, -32020),
        (
            &[good[0], good[1], "mcp-name: one__delete"],
            &whole,
            400,
            -32020,
        ),
        (
            &[good[0], "mcp-method: tools/list", good[2]],
            &whole,
            400,
            -32020,
        ),
        (
            &[good[0], "mcp-method: TOOLS/CALL", good[2]],
            &whole,
            400,
            -32020,
        ),
        (
            &["mcp-protocol-version: 2025-11-25", good[1], good[2]],
            &whole,
            400,
            -32020,
        ),
        (&[good[0], good[1], good[2], good[2]], &whole, 400, -32020),
        (
            &[good[0], good[1], "mcp-name: =?base64?b25lX19kZWxldGU=?="],
            &whole,
            400,
            -32020,
        ),
        (
            &[good[0], good[1], good[2], "mcp-param-a: =?base64?!?="],
            &whole,
            400,
            -32020,
        ),
        (
            &[
                good[0],
                good[1],
                good[2],
                "mcp-param-a: 1",
                "mcp-param-a: 2",
            ],
            &whole,
            400,
            -32020,
        ),
        (&good[..], &other, 400, -32020),
        (
            &["mcp-protocol-version: v999.0.0", good[1], good[2]],
            &other,
            400,
            -32022,
        ),
    ] {
        let told = caller.send("POST", headers, body.as_bytes());
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (status, &json!(code)),
            "{headers:?} {}",
            told.body
        );
        assert_eq!(told.body["id"], "x");
        if code == -32022 {
            let data = &told.body["error"]["data"];
            assert_eq!(
                (&data["requested"], &data["supported"][0]),
                (&json!("v999.0.0"), &json!(VERSION))
            );
        }
    }
    assert_eq!(asked(&one), before, "nobody's message went on");
    let told = caller.send(
        "POST",
        &[
            "mcp-protocol-version: 2026-07-28 ",
            "MCP-METHOD: tools/call",
            "Mcp-Name:  =?base64?b25lX19yZWFk?=",
            "mcp-param-where: here",
        ],
        whole.as_bytes(),
    );
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(
        one.seen().pop().expect("a call").header("mcp-param-where"),
        ["here"],
        "arguments' headers go on"
    );
    // A header of what the message has not says something else than the message.
    let list = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {"_meta": meta(&json!({}))}});
    for (further, status) in [
        (None, 200),
        (Some("mcp-name: one__read"), 400),
        (Some("mcp-param-where: here"), 400),
    ] {
        let mut headers = vec!["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"];
        headers.extend(further);
        let told = caller.send("POST", &headers, list.to_string().as_bytes());
        assert_eq!(told.status, status, "{further:?} {}", told.body);
    }
    let nobody = br#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#;
    let told = caller.send("POST", &[], nobody);
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (200, &json!(-32601)),
        "{}",
        told.body
    );
    let told = caller.send(
        "POST",
        &[
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: server/discover",
        ],
        nobody,
    );
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (400, &json!(-32602)),
        "{}",
        told.body
    );
}

#[test]
fn clients_that_are_known_to_mix_versions_are_served_and_others_are_not() {
    let one = modern("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let message = |client: &str| {
        let mut of = meta(&json!({}));
        of["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "one__read", "_meta": of}}).to_string()
    };
    for (headers, is_served) in [
        (
            &[
                "mcp-protocol-version: 2025-11-25",
                "mcp-method: tools/call",
                "mcp-name: one__read",
            ][..],
            true,
        ),
        (&[], true),
        (
            &[
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: server/discover",
                "mcp-name: one__read",
            ],
            true,
        ),
        (
            &[
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                "mcp-name: one__delete",
            ],
            false,
        ),
    ] {
        let known = caller.send("POST", headers, message("claude-code").as_bytes());
        assert_eq!(
            known.status == 200,
            is_served,
            "{headers:?}: {}",
            known.body
        );
        let other = caller.send("POST", headers, message("an agent").as_bytes());
        assert_eq!(
            (other.status, &other.body["error"]["code"]),
            (400, &json!(-32020)),
            "{headers:?}: {}",
            other.body
        );
    }
    let legacy = server("two");
    let servers = format!("    two: {{ url: \"{}\" }}", url(&legacy));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let twice = "mcp-protocol-version: 2025-11-25, 2025-11-25";
    assert_eq!(
        caller
            .send("POST", &[twice, "user-agent: claude-code/2.1.3"], list)
            .status,
        200
    );
    assert_eq!(caller.send("POST", &[twice], list).status, 400);
    let discovered = ask(&caller, "server/discover", &json!({}));
    assert_eq!(discovered.status, 200, "{}", discovered.body);
    let begun = Caller::begun(&gate, "agent");
    assert_eq!(
        begun.tools().0.len(),
        2,
        "a handshake after that is a handshake"
    );
}

#[test]
fn filters_rules_and_limits_hold_without_a_session_and_lists_say_whose_they_are() {
    let one = modern("one");
    let servers = format!(
        "    one: {{ url: \"{}\", prompts: {{ deny: secret }}, resources: {{ deny: [\"file:///etc/*\", \"memo://*\"] }} }}",
        url(&one)
    );
    let routes = "    - { workload: few, tools: { deny: \"*__delete\" } }\n    - { workload: one, limits: [ { requests: 2, per: 366d } ] }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let few = Caller::new(&gate, "few");
    let told = ask(&few, "tools/list", &json!({}));
    assert_eq!(
        told.body["result"]["tools"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(
        told.body["result"]["cacheScope"], "private",
        "{}",
        told.body
    );
    let told = ask(&few, "resources/read", &json!({"uri": "one+file:///a"}));
    assert_eq!(
        told.body["result"]["cacheScope"], "private",
        "{}",
        told.body
    );
    for (method, params) in [
        ("tools/call", json!({"name": "one__delete"})),
        ("prompts/get", json!({"name": "one__secret"})),
        ("resources/read", json!({"uri": "one+file:///etc/passwd"})),
        (
            "resources/read",
            json!({"uri": "one+file:///x/../etc/passwd"}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "one__secret"}, "argument": {}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "one+memo://{topic}"}, "argument": {}}),
        ),
    ] {
        let before = asked(&one);
        let told = ask(&few, method, &params);
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (200, &json!(-32602)),
            "{method} {params}: {}",
            told.body
        );
        assert_eq!(asked(&one), before, "{method} {params}");
    }
    let limited = Caller::new(&gate, "one");
    assert_eq!(
        (
            call(&limited, "one__read").status,
            call(&limited, "one__read").status
        ),
        (200, 200)
    );
    let told = call(&limited, "one__read");
    assert_eq!(
        (told.status, &told.body["error"]["data"]["code"]),
        (429, &json!("rate_limit_exceeded"))
    );
    assert_eq!(
        told.body["error"]["code"], -31000,
        "of no range that is the protocol's"
    );
    let nobody = call(&Caller::new(&gate, "models"), "one__read");
    assert_eq!(
        (nobody.status, &nobody.body["error"]["data"]["code"]),
        (403, &json!("mcp_route_not_found"))
    );
    let records = gate.records(4);
    assert!(
        records
            .iter()
            .any(|r| r["mcp_method"] == "tools/call" && r["mcp_name"] == "one__read"),
        "{records:?}"
    );
}

#[test]
fn what_a_server_wants_to_hear_again_is_sealed_and_good_for_its_caller_and_request_alone() {
    let one = Upstream::start(|_, seen| {
        let message = if seen.body.is_empty() {
            json!({})
        } else {
            seen.json()
        };
        if message["method"] == "tools/call" && message["params"]["requestState"].is_null() {
            let result = json!({"resultType": "input_required", "requestState": "step 2", "inputRequests": {
                "who": {"method": "elicitation/create", "params": {"message": "Who?"}}}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            return vec![
                Step::Send(events_head()),
                Step::Send(chunk(format!("data: {body}\n\n").as_bytes())),
                Step::Send(chunk(b"")),
            ];
        }
        vec![Step::Send(modern_reply("one", seen))]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: [ada, ben] }"), &[]);
    let (ada, ben) = (Caller::new(&gate, "ada"), Caller::new(&gate, "ben"));
    let told = call(&ada, "one__read");
    let answer = messages(told.body.as_str().expect("events")).remove(0);
    assert_eq!(
        answer["result"]["inputRequests"]["who"]["method"],
        "elicitation/create"
    );
    let state = answer["result"]["requestState"]
        .as_str()
        .expect("a state")
        .to_owned();
    assert!(!state.contains("step"), "{state}");
    let retry = |caller: &Caller<'_>, tool: &str, state: &str| {
        ask(
            caller,
            "tools/call",
            &json!({"name": tool, "requestState": state, "inputResponses": {"who": {"action": "accept"}}}),
        )
    };
    let told = retry(&ada, "one__read", &state);
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(
        (
            &told.body["result"]["state"],
            &told.body["result"]["responses"]["who"]["action"]
        ),
        (&json!("step 2"), &json!("accept"))
    );
    let before = asked(&one);
    let (start, end) = state.split_at(state.len() / 2);
    let other = if end.starts_with('A') { "B" } else { "A" };
    let changed = format!("{start}{other}{}", &end[1..]);
    for (caller, tool, state) in [
        (&ben, "one__read", &*state),
        (&ada, "one__delete", &state),
        (&ada, "one__read", "step 2"),
        (&ada, "one__read", ""),
        (&ada, "one__read", &changed),
    ] {
        let told = retry(caller, tool, state);
        assert_eq!(
            (told.status, &told.body["error"]["data"]["code"]),
            (400, &json!("mcp_state_invalid")),
            "{tool} {state}: {}",
            told.body
        );
        assert_eq!(told.body["error"]["code"], -32602);
    }
    assert_eq!(asked(&one), before, "no thief's state went on");
}

#[test]
fn an_error_of_a_server_keeps_its_status_and_a_server_that_does_not_answer_is_said_so() {
    let one = Upstream::start(|_, seen| {
        if !seen.body.is_empty() && seen.json()["method"] == "tools/call" {
            let error = json!({"code": -32021, "message": "no", "data": {"requiredCapabilities": {"sampling": {}}}});
            let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error});
            return vec![Step::Send(answer::json(400, &body.to_string()))];
        }
        vec![Step::Send(modern_reply("one", seen))]
    });
    let dead = crate::harness::free_address();
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    dead: {{ url: \"http://{dead}/mcp\" }}",
        url(&one)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let told = call(&caller, "one__read");
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (400, &json!(-32021)),
        "{}",
        told.body
    );
    assert_eq!(
        told.body["error"]["data"]["requiredCapabilities"],
        json!({"sampling": {}})
    );
    let told = call(&caller, "dead__read");
    assert_eq!(
        (told.status, &told.body["error"]["code"]),
        (502, &json!(-32603)),
        "{}",
        told.body
    );
    let told = ask(&caller, "tools/list", &json!({}));
    assert_eq!(
        told.body["result"]["_meta"]["tollgate/unavailable"],
        json!(["dead"]),
        "{}",
        told.body
    );
    assert_eq!(
        (
            &told.body["result"]["ttlMs"],
            &told.body["result"]["cacheScope"]
        ),
        (&json!(0), &json!("private"))
    );
    let told = ask(&caller, "server/discover", &json!({}));
    assert_eq!(
        told.body["result"]["_meta"]["tollgate/unavailable"],
        json!(["dead"]),
        "{}",
        told.body
    );
}
