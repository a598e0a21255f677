//! Servers of tools at several paths: each caller has the servers of one route at each.
//!
//! Not here: what clients learn of tokens at them (`vectors/config/mcp_paths.txt`).

use serde_json::Value;

use super::{Caller, SECRET, server, url};
use crate::harness::{Gate, post};

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
