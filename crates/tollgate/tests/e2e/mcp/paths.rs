//! Servers of tools at several paths: each caller has the servers of one route at each.
//!
//! Not here: what clients learn of tokens at them (`vectors/config/mcp_paths.txt`).

use serde_json::{Value, json};

use super::own_tokens::bringing;
use super::{Caller, SECRET, config, initialize, server, url};
use crate::harness::{Gate, post};
use crate::identity_sources::issuer::{ISSUER, claims, jwks, signed};

/// What tokens for a path are for.
fn resource(path: &str) -> String {
    format!("https://gate.example{path}")
}

#[test]
fn a_token_for_one_path_is_taken_there_alone() {
    let one = server("one");
    let text = format!(
        "identity:\n  - jwt: {{ issuer: \"{ISSUER}\", audience: [gate, \"{}\", \"{}\"], workload: agent, jwks: {{ file: keys.json }} }}\n",
        resource("/mcp"),
        resource("/tools/one"),
    );
    let routes = "    - { workload: agent }\n    - { name: second, workload: agent, path: /tools/one }\n  \
                  oauth: { resource: \"https://gate.example/mcp\", authorization_servers: \"https://login.example\" }";
    let text = text + &config(&format!("    one: {{ url: \"{}\" }}", url(&one)), routes);
    let gate = Gate::start(&text, &[("keys.json", jwks(&["ed25519"]).as_bytes())]);
    let (mcp, second, both) = (
        json!(resource("/mcp")),
        json!(resource("/tools/one")),
        json!([resource("/tools/one"), resource("/mcp")]),
    );
    for (audience, [at_mcp, at_second]) in [
        (&mcp, [200, 401]),
        (&second, [401, 200]),
        (&json!([resource("/tools/one"), "elsewhere"]), [401, 200]),
        (&both, [200, 200]),
        (&json!("gate"), [200, 200]),
        (&json!(["gate", resource("/mcp")]), [200, 401]),
        (&json!(resource("/other")), [401, 401]),
    ] {
        let mut claims = claims();
        claims["aud"] = audience.clone();
        let line = format!("authorization: Bearer {}", signed(&claims, "ed25519"));
        for (path, status) in [("/mcp", at_mcp), ("/tools/one", at_second)] {
            let caller = Caller::new(&gate, "agent").to(path);
            // Of clients with a session and of those without.
            let begun =
                json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": initialize()});
            let begun = caller.send("POST", &[&line], begun.to_string().as_bytes());
            let listed = bringing(&caller, &[&line], "tools/list", &json!({}));
            for told in [begun, listed] {
                assert_eq!(told.status, status, "{audience} {path}: {}", told.body);
                let led = format!(
                    "resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource{path}\""
                );
                assert_eq!(told.head.contains(&led), status == 401, "{}", told.head);
            }
        }
    }
    let records = gate.records(7 * 4);
    let says = "its token is for another path of `mcp`, by its `aud`";
    let told = records.iter().filter(|of| of["reason"] == says);
    assert_eq!(told.count(), 4 * 2);
}

#[test]
fn rules_see_the_path_that_a_message_was_sent_to() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes =
        "    - { workload: agent }\n    - { name: second, workload: agent, path: /tools/one }";
    let rules = "authority: { rules: [ { name: second, allow: \"path == '/tools/one' || path == 'one__read'\" } ] }\n";
    let text = config(&servers, routes) + rules;
    let gate = Gate::start(&text, &[]);
    let told = Caller::new(&gate, "agent").request("initialize", &initialize());
    assert_eq!(told.body["error"]["data"]["code"], "not_authorized");
    let agent = Caller::at(&gate, "agent", "/tools/one");
    assert_eq!(agent.tools().0, ["one__read"]);
    assert_eq!(agent.call("one__read").status, 200);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gate.yaml");
    let body = dir.path().join("body.json");
    std::fs::write(&file, text).expect("a file");
    let begun = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": initialize()});
    std::fs::write(&body, begun.to_string()).expect("a file");
    for (path, is_let_in) in [("/mcp", false), ("/tools/one", true)] {
        let ended = std::process::Command::new(Gate::binary())
            .args([
                "explain",
                "-H",
                "x-workload-app: agent",
                "--path",
                path,
                "-c",
            ])
            .arg(&file)
            .arg("--body")
            .arg(&body)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        let said = said + &String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.success(), is_let_in, "{path}: {said}");
    }
}

#[test]
fn a_caller_has_the_servers_of_one_route_at_each_path_and_none_elsewhere() {
    let (desk, shop) = (server("desk"), server("shop"));
    let config = format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  servers:\n    desk: {{ url: \"{}\" }}\n    shop: {{ url: \"{}\" }}\n  routes:\n\
         \x20   - {{ name: desk, workload: agent, path: /tools/desk, servers: desk }}\n\
         \x20   - {{ name: shop, workload: [agent, other], path: /tools/shop, servers: shop, tools: {{ allow: shop__read }} }}\n\
         \x20   - {{ name: usual, workload: other, servers: desk }}\n",
        url(&desk),
        url(&shop)
    );
    let gate = Gate::start(&config, &[]);
    let tools = |workload, path| Caller::at(&gate, workload, path).tools().0;
    let (of_desk, of_shop) = (["desk__read", "desk__delete"], ["shop__read"]);
    assert_eq!(tools("agent", "/tools/desk"), of_desk);
    assert_eq!(tools("agent", "/tools/shop"), of_shop);
    assert_eq!(tools("other", "/tools/shop"), of_shop);
    assert_eq!(tools("other", "/mcp"), of_desk);
    // Nobody has what another path has.
    for (workload, path) in [("agent", "/mcp"), ("other", "/tools/desk")] {
        let told = Caller::new(&gate, workload)
            .to(path)
            .request("initialize", &super::initialize());
        assert_eq!(told.status, 403, "{workload} {path}: {}", told.body);
    }
    let mut agent = Caller::at(&gate, "agent", "/tools/desk");
    let called = agent.call("desk__read");
    assert_eq!(called.body["result"]["server"], "desk");
    // A session of one path is none at another.
    agent.path = "/tools/shop";
    assert_eq!(agent.call("shop__read").status, 404);
    assert_eq!(gate.call(&post("/tools", &[], "{}")).status, 404);
}

#[test]
fn a_call_of_a_tool_is_explained_at_each_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gate.yaml");
    let routes = |paths: [&str; 2]| {
        let of = |name: &str, path: &str| {
            format!("    - {{ name: {name}, workload: agent, path: {path}, servers: {name} }}\n")
        };
        format!(
            "mcp:\n  secret: {{ inline: {SECRET} }}\n  servers:\n    desk: {{ url: \"http://127.0.0.1:1/mcp\" }}\n    \
             shop: {{ url: \"http://127.0.0.1:1/mcp\" }}\n  routes:\n{}{}",
            of("desk", paths[0]),
            of("shop", paths[1])
        )
    };
    let explained = |words: &[&str]| {
        let ended = std::process::Command::new(Gate::binary())
            .args(["explain", "-H", "x-workload-app: agent", "-c"])
            .arg(&file)
            .args(words)
            .arg("--json")
            .output()
            .expect("it runs");
        let said = serde_json::from_slice::<Value>(&ended.stdout);
        said.map_err(|_| String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let tool = |tool: &str, path: &[&str]| {
        let words = [&["--tool", tool], path].concat();
        explained(&words).map(|said| said["code"].clone())
    };
    std::fs::write(&file, routes(["/tools/desk", "/tools/shop"])).expect("a file");
    let (desk, shop) = (["--path", "/tools/desk"], ["--path", "/tools/shop"]);
    assert_eq!(tool("desk__read", &desk), Ok(Value::Null));
    assert_eq!(tool("shop__read", &shop), Ok(Value::Null));
    assert_eq!(tool("shop__read", &desk), Ok("mcp_not_found".into()));
    let says = |why: Result<Value, String>| why.expect_err("it is not known where");
    let why = says(tool("desk__read", &[]));
    assert!(
        why.contains("servers of tools are at /tools/desk, /tools/shop: say which with --path"),
        "{why}"
    );
    let why = says(tool("desk__read", &["--path", "/mcp"]));
    assert!(
        why.contains("there are no servers of tools at /mcp; they are at /tools/desk"),
        "{why}"
    );
    // The usual path is meant where it is one of them.
    std::fs::write(&file, routes(["/mcp", "/tools/shop"])).expect("a file");
    assert_eq!(tool("desk__read", &[]), Ok(Value::Null));
    assert_eq!(tool("shop__read", &shop), Ok(Value::Null));
}
