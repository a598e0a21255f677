//! Who may come to servers of tools at all: tokens and where they are given, pages, sessions that were ended.
//!
//! Not here: filters and rules (`super`).

use serde_json::{Value, json};

use super::{Caller, SECRET, config, initialize, server, url};
use crate::harness::{Gate, Response};

/// A gate whose callers bring keys, and which tells where tokens are given.
fn with_oauth(server: &str) -> Gate {
    let config = format!(
        "identity: {{ keys: {{ file: keys.jsonl }} }}\n\
         mcp:\n  secret: {{ inline: {SECRET} }}\n  servers: {{ one: {{ url: \"{server}\" }} }}\n  routes: [ {{ workload: agent }} ]\n\
         \x20 oauth: {{ resource: \"https://gate.example/mcp\", authorization_servers: \"https://login.example/realm\", scopes: [mcp, \"mcp:write\"] }}\n"
    );
    Gate::start_with_private(&config, &[("keys.jsonl", b"")])
}

fn get(gate: &Gate, path: &str, fields: &str) -> Response {
    gate.call(format!("GET {path} HTTP/1.1\r\nhost: g\r\n{fields}\r\n").as_bytes())
}

#[test]
fn a_client_without_a_token_is_led_to_who_gives_one() {
    let one = server("one");
    let gate = with_oauth(&url(&one));
    for (fields, fault) in [
        ("", ""),
        (
            "authorization: Bearer nobody-s\r\n",
            ", error=\"invalid_token\"",
        ),
    ] {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize()})
                .to_string();
        let told = gate.call(
            format!(
                "POST /mcp HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{fields}\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
        assert_eq!(told.status, 401, "{}", told.text());
        let challenge = told.header("www-authenticate").expect("a challenge");
        let metadata = "https://gate.example/.well-known/oauth-protected-resource/mcp";
        assert_eq!(
            challenge,
            format!("Bearer resource_metadata=\"{metadata}\"{fault}")
        );
    }
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ] {
        let told = get(&gate, path, "");
        assert_eq!(
            (told.status, told.header("access-control-allow-origin")),
            (200, Some("*"))
        );
        let expected = json!({
            "resource": "https://gate.example/mcp",
            "resource_name": "tollgate",
            "authorization_servers": ["https://login.example/realm"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp", "mcp:write"],
        });
        assert_eq!(told.json(), expected);
    }
    assert_eq!(
        get(&gate, "/.well-known/oauth-protected-resource/x", "").status,
        404
    );
    let without = Gate::start(
        &config(
            &format!("    one: {{ url: \"{}\" }}", url(&one)),
            "    - { workload: agent }",
        ),
        &[],
    );
    assert_eq!(
        get(&without, "/.well-known/oauth-protected-resource", "").status,
        404
    );
    assert_eq!(one.count(), 0, "nobody was let through");
}

#[test]
fn the_catalogue_is_listed_as_each_caller_sees_it() {
    let one = server("one");
    let dead = crate::harness::free_address();
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    dead: {{ url: \"http://{dead}/mcp\" }}",
        url(&one)
    );
    let routes = "    - { workload: all }\n    - { workload: few, tools: { deny: \"*__delete\" }, prompts: { deny: \"*\" } }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let list = |workload: &str, further: &[&str]| {
        let ended = std::process::Command::new(Gate::binary())
            .args([
                "mcp",
                "list",
                "--url",
                &format!("http://{}/mcp", gate.data),
                "-H",
                &format!("x-workload-app: {workload}"),
            ])
            .args(further)
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            ended.status.success(),
            text(&ended.stdout) + &text(&ended.stderr),
        )
    };
    let (is_good, text) = list("all", &[]);
    let text = text.replacen("2 tools, ", "", 1);
    let (tokens, text) = text.split_once(' ').expect("tokens");
    assert!(tokens.parse::<u64>().is_ok_and(|of| of > 10), "{tokens}");
    let expected = "tokens of a prompt\n  one__read\n  one__delete\n2 prompts\n  one__greet\n  one__secret\n2 resources\n  one+file:///a\n  one+file:///etc/passwd\n2 templates\n  one+memo://{topic}\n  one+db://{table}\nno answer from dead\n";
    assert_eq!((is_good, text), (true, expected));
    let (_, text) = list("few", &["--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        found["tools"],
        json!([{"name": "one__read", "inputSchema": {}}])
    );
    assert_eq!(
        (&found["prompts"], &found["unavailable"]),
        (&json!([]), &json!(["dead"]))
    );
    let (is_good, text) = list("nobody", &[]);
    assert!(!is_good && text.contains("initialize: "), "{text}");
}

#[test]
fn what_would_become_of_a_call_of_a_tool_is_explained_by_the_configuration_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gate.yaml");
    let text = config(
        "    one: { url: \"http://127.0.0.1:1/mcp\", tools: { deny: hidden } }",
        "    - { workload: agent, limits: [ { requests: 9, per: 1m } ], tool_limits: [ { tools: one__slow, limits: [ { requests: 2, per: 1h } ] } ] }",
    ) + "authority: { rules: [ { name: no-secrets, deny: \"path == 'one__secret'\" }, { name: rest, allow: \"true\" } ] }\n";
    std::fs::write(&file, text).expect("a file");
    let explain = |workload: &str, tool: &str| {
        let ended = std::process::Command::new(Gate::binary())
            .args(["explain", "-c"])
            .arg(&file)
            .args([
                "-H",
                &format!("x-workload-app: {workload}"),
                "--tool",
                tool,
                "--json",
            ])
            .output()
            .expect("it runs");
        let said = serde_json::from_slice::<Value>(&ended.stdout);
        said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ended.stderr)))
    };
    for (workload, tool, code) in [
        ("agent", "one__read", Value::Null),
        ("agent", "one__slow", Value::Null),
        ("agent", "one__hidden", json!("mcp_not_found")),
        ("agent", "two__read", json!("mcp_not_found")),
        ("agent", "read", json!("mcp_not_found")),
        ("agent", "one__secret", json!("not_authorized")),
        ("models", "one__read", json!("mcp_route_not_found")),
    ] {
        let said = explain(workload, tool);
        assert_eq!(
            (&said["code"], &said["workload"]),
            (&code, &json!(workload)),
            "{tool}: {said}"
        );
        if code.is_null() {
            assert_eq!(
                (&said["route"], &said["operation"]),
                (&json!("mcp:agent"), &json!("mcp"))
            );
            assert_eq!(said["backends"], json!(["mcp:one"]));
            assert_eq!(said["rule"], "rest", "{said}");
            let limits = said["limits"].to_string();
            assert_eq!(limits.contains("2 requests"), tool == "one__slow", "{said}");
        }
        let reason = said["reason"].as_str().unwrap_or_default();
        let expected = match tool {
            "one__hidden" => "hidden by `tools` of mcp.servers.one (deny: hidden)",
            "two__read" | "read" => "the servers of this route are one",
            _ => "",
        };
        assert!(reason.contains(expected), "{said}");
        if code == "mcp_not_found" {
            assert_eq!(said["status"], 200, "{said}");
        }
    }
}

#[test]
fn a_condition_on_arguments_is_explained_by_the_arguments_of_the_message() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gate.yaml");
    let text = config(
        "    one: { url: \"http://127.0.0.1:1/mcp\", tools: { allow: [ read, { name: write, when: 'workload == \"agent\" && arguments.path.startsWith(\"/srv/\")' } ] } }",
        "    - { workload: agent }",
    ) + "ledger: { path: usage.db }\nbudgets: { searches: { calls: 3, tool: one__read, per: day } }\n";
    std::fs::write(&file, text).expect("a file");
    let explain = |more: &[&str]| {
        let ended = std::process::Command::new(Gate::binary())
            .args(["explain", "-H", "x-workload-app: agent", "-c"])
            .arg(&file)
            .args(more)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&ended.stdout).replace("\n           ", " ");
        (ended.status.success(), said)
    };
    let message = dir.path().join("message.json");
    let named = message.to_str().expect("a path");
    let of = |arguments: &str| {
        let says = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"one__write","arguments":{arguments}}}}}"#
        );
        std::fs::write(&message, says).expect("a file");
        explain(&["--path", "/mcp", "--body", named])
    };
    let place = "mcp.servers.one.tools.allow[1].when";
    let (is_good, said) = of(r#"{"path":"/srv/x"}"#);
    assert!(
        is_good && said.starts_with("verdict    the call would go upstream\n"),
        "{said}"
    );
    for (arguments, came) in [
        (r#"{"path":"/etc/x"}"#, "does not hold"),
        (
            r#"{"path":"/srv/x","path":"/etc/x"}"#,
            "a name stands twice",
        ),
    ] {
        let (is_good, said) = of(arguments);
        assert!(
            !is_good && said.contains("refused: 403 not_authorized"),
            "{said}"
        );
        assert!(said.contains(place) && said.contains(came), "{said}");
    }
    let (is_good, said) = explain(&["--tool", "one__write"]);
    let verdict = "the call would go upstream, if its arguments meet the condition";
    assert!(is_good && said.contains(verdict), "{said}");
    assert!(!said.contains("searches"), "it counts another tool: {said}");
    let (_, said) = explain(&["--tool", "one__read"]);
    assert!(
        !said.contains("meet the condition") && said.contains("searches: 3 calls"),
        "{said}"
    );
}

#[test]
fn the_gates_own_tools_and_tokens_of_callers_are_explained() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gate.yaml");
    let text = config(
        "    one: { url: \"http://127.0.0.1:1/mcp\", credential: { inline: gates }, tools: { deny: hidden } }\n    two: { url: \"http://127.0.0.1:1/mcp\" }",
        "    - { workload: agent, list_tools: search, own_tokens: { one: x-one-token, two: x-two-token } }\n    - { workload: other }",
    );
    std::fs::write(&file, text).expect("a file");
    let explain = |workload: &str, more: &[&str]| {
        let workload = format!("x-workload-app: {workload}");
        let ended = std::process::Command::new(Gate::binary())
            .args(["explain", "--json", "-H", &workload, "-c"])
            .arg(&file)
            .args(more)
            .output()
            .expect("it runs");
        let said = serde_json::from_slice::<Value>(&ended.stdout);
        said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ended.stderr)))
    };
    let of = |said: &Value, member: &str| said[member].as_str().unwrap_or_default().to_owned();
    let said = explain("agent", &["--tool", "tollgate__find_tools"]);
    assert!(
        said["code"].is_null() && of(&said, "own_tool").contains("finds tools"),
        "{said}"
    );
    let said = explain("agent", &["--tool", "tollgate__call_tool"]);
    assert!(
        of(&said, "own_tool").contains("--tool NAME explains"),
        "{said}"
    );
    // On a route that lists all tools there are no such two.
    let said = explain("other", &["--tool", "tollgate__call_tool"]);
    assert_eq!(said["code"], "mcp_not_found", "{said}");
    let message = dir.path().join("message.json");
    let named = message.to_str().expect("a path");
    let called = |name: &str| {
        let params =
            json!({"name": "tollgate__call_tool", "arguments": {"name": name, "arguments": {}}});
        let says = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        std::fs::write(&message, says.to_string()).expect("a file");
        explain("agent", &["--path", "/mcp", "--body", named])
    };
    let said = called("one__read");
    assert!(
        said["code"].is_null() && of(&said, "own_tool").contains("a call of one__read"),
        "{said}"
    );
    assert_eq!(said["backends"], json!(["mcp:one"]));
    assert_eq!(called("one__hidden")["code"], "mcp_not_found");
    for (tool, header, credential) in [
        (
            "one__read",
            "x-other: a",
            "one is sent the gate's, as the call has no header x-one-token",
        ),
        (
            "one__read",
            "x-one-token: a",
            "the caller's own token, which the header x-one-token brings",
        ),
        ("two__read", "x-other: a", "two is sent none"),
    ] {
        let said = explain("agent", &["-H", header, "--tool", tool]);
        assert!(of(&said, "own_tool").contains("not listed"), "{said}");
        assert!(of(&said, "credential").contains(credential), "{said}");
    }
}

#[test]
fn a_session_that_its_client_ended_is_none_any_more_also_after_a_reload() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let (ended, other) = (Caller::begun(&gate, "agent"), Caller::begun(&gate, "agent"));
    assert_eq!(ended.send("DELETE", &[], b"").status, 200);
    let is_over = || {
        for method in ["ping", "tools/list"] {
            assert_eq!(ended.request(method, &json!({})).status, 404, "{method}");
            assert_eq!(other.request(method, &json!({})).status, 200, "{method}");
        }
        let again = ended.send("DELETE", &[], b"");
        assert_eq!(again.status, 404, "{}", again.body);
    };
    is_over();
    gate.reconfigure(&config(
        &servers,
        "    - { workload: agent }\n    - { workload: further }",
    ));
    testing::eventually("the gate has the other configuration", || {
        let told = Caller::new(&gate, "further").request("initialize", &initialize());
        told.body["result"] != Value::Null
    });
    is_over();
}

#[test]
fn a_page_of_the_gate_s_own_address_may_ask_and_no_other_page() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start_listening(
        ", hosts: [g, \"127.0.0.1\"]",
        &config(&servers, "    - { workload: agent }"),
        &[],
    );
    let caller = Caller::begun(&gate, "agent");
    let ask = |origin: &str| {
        caller
            .send(
                "POST",
                &[&format!("origin: {origin}")],
                br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            )
            .status
    };
    assert_eq!(ask("http://g"), 200);
    for origin in [
        "http://evil.example",
        "http://g.evil.example",
        "http://g:81",
        "null",
        "file://g",
        "http://G",
    ] {
        assert_eq!(ask(origin), 403, "{origin}");
    }
}
