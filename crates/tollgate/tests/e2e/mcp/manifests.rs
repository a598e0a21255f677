//! An MCPRoute from a file: two servers, the official SDK as the client, what it may not call, and the key that a server is sent.
//!
//! Not here: what an MCPRoute comes to (`vectors/manifests`).

use serde_json::json;

use super::reply;
use crate::harness::{Gate, Sdk, Step, Upstream, answer, free_address};

#[test]
fn an_mcp_route_gives_the_official_sdk_what_it_selects_and_its_servers_their_keys() {
    let keyed = Upstream::start(|_, seen| {
        let tools = ["read", "delete"]
            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
        let listed = json!({ "tools": tools });
        let is_list = seen.body.windows(12).any(|part| part == b"\"tools/list\"");
        let answer = match is_list {
            true => {
                json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": listed }).to_string()
            }
            false => return vec![Step::Send(reply("keyed", seen))],
        };
        vec![Step::Send(answer::json(200, &answer))]
    });
    let port = free_address().port();
    let at = |name: &str, port: u16| {
        format!(
            "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: Backend\nmetadata: {{ name: {name} }}\n\
             spec: {{ endpoints: [ {{ ip: {{ address: 127.0.0.1, port: {port} }} }} ] }}\n"
        )
    };
    let objects = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{ name: door }}\n\
         spec:\n  gatewayClassName: models\n  addresses: [ {{ value: 127.0.0.1 }} ]\n\
         \x20 listeners: [ {{ name: http, protocol: HTTP, port: 8080 }} ]\n---\n{ROUTE}\n{}{}",
        at("keyed", keyed.address.port()),
        at("plain", port)
    );
    let gate = Gate::start_directory(&[("objects/a.yaml", objects.as_bytes())]);
    let input = json!({ "gate": format!("http://{}/mcp", gate.data), "port": port });
    let passed = Sdk::Python.run("routed_tools", &input);
    assert_eq!(passed, json!(["tools", "calls", "hidden", "denied"]));
    for seen in keyed.seen() {
        assert_eq!(seen.header("x-api-key"), ["canary-of-the-server"]);
        assert!(seen.header("authorization").is_empty());
        assert!(
            seen.head.starts_with("POST /tools ")
                || seen.head.starts_with("DELETE /tools ")
                || seen.head.starts_with("GET /tools ")
        );
    }
    let shown = [gate.log(), gate.admin("/config").text(), gate.metrics()].concat();
    assert!(!shown.contains("canary-of-the-server"), "a key is shown");
}

const ROUTE: &str = "
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: MCPRoute
metadata: { name: tools }
spec:
  parentRefs: [ { name: door, kind: Gateway, group: gateway.networking.k8s.io } ]
  path: /mcp
  backendRefs:
    - name: keyed
      kind: Backend
      group: gateway.envoyproxy.io
      path: /tools
      toolSelector: { include: [ read ] }
      securityPolicy: { apiKey: { inline: canary-of-the-server, header: X-Api-Key } }
    - name: plain
      kind: Backend
      group: gateway.envoyproxy.io
      toolSelector: { excludeRegex: [ '^sec' ] }
  securityPolicy:
    authorization:
      defaultAction: Deny
      rules:
        - target: { tools: [ { backend: keyed, tool: read } ] }
        - { cel: 'request.mcp.backend == \"plain\" && request.mcp.params.arguments.text.startsWith(\"a\")' }
";
