//! Lists that servers give in pages: all of them, in the server's own order.
//!
//! Not here: lists without an end (`attacks`), how pages become a list (unit tests of `mcp`).

use serde_json::json;

use super::{Caller, config, reply, url};
use crate::harness::{Gate, Step, Upstream, answer};

#[test]
fn every_page_of_a_server_is_asked_for_and_its_order_stays() {
    let one = Upstream::start(|_, seen| {
        let is_list = !seen.body.is_empty() && seen.json()["method"] == "tools/list";
        if !is_list {
            return vec![Step::Send(reply("one", seen))];
        }
        let message = seen.json();
        let (names, next) = match message["params"]["cursor"].as_str() {
            None => (["z", "b"], json!({"nextCursor": "p\"2"})),
            Some("p\"2") => (["y", "a"], json!({"nextCursor": "3"})),
            Some("3") => (["x", "c"], json!({})),
            Some(other) => panic!("nobody gave the cursor {other}"),
        };
        let mut result = next;
        let tools = names.map(|name| json!({"name": name, "inputSchema": {}}));
        result["tools"] = json!(tools);
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        vec![Step::Send(answer::json(200, &body.to_string()))]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: ada }"), &[]);
    let expected = ["one__z", "one__b", "one__y", "one__a", "one__x", "one__c"];
    for _ in 0..2 {
        assert_eq!(Caller::begun(&gate, "ada").tools().0, expected);
    }
}
