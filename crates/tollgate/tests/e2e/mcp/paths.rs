//! Servers of tools at several paths: each caller has the servers of one route at each.
//!
//! Not here: what clients learn of tokens at them (`vectors/config/mcp_paths.txt`).

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
