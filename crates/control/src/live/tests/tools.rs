//! Routes to servers of tools in a cluster.

use serde_json::{Value, json};

use super::*;

fn tools(name: &str, more: &Value) -> Value {
    let server = |name: &str| json!({ "name": name, "kind": "Backend", "group": "gateway.envoyproxy.io", "path": "/mcp" });
    let mut spec = json!({
        "parentRefs": [{ "name": "door", "kind": "Gateway", "group": "gateway.networking.k8s.io" }],
        "path": "/mcp",
        "backendRefs": [server("first")],
    });
    let members = spec.as_object_mut().expect("a map");
    members.extend(more.as_object().expect("a map").clone());
    object(AI_GROUP, "MCPRoute", name, spec)
}

/// Workloads and servers of each route to tools.
fn served(live: &Live) -> Vec<String> {
    let loaded = live.loaded.as_ref();
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let document = loaded.document.json();
    let routes = document["mcp"]["routes"].as_array();
    let route = |of: &Value| format!("{} {}", of["workload"], of["servers"]);
    routes.into_iter().flatten().map(route).collect()
}

#[test]
fn a_route_to_tools_is_attached_and_counted_and_a_faulty_one_gives_its_callers_nothing() {
    let of_tenant = json!({ "headers": [{ "name": "x-tenant", "value": "t", "type": "Exact" }] });
    let mut all = base();
    all.push(tools("all", &json!({})));
    all.push(tools("tenant", &of_tenant));
    let live = lowered(&all, None);
    assert_eq!(served(&live), [r#""t" "first""#, r#""default" "first""#]);
    assert_eq!(said(&live, "MCPRoute", "all"), "Accepted true Accepted");
    let mut verdicts = live.report.verdicts.iter();
    let door = verdicts
        .find(|of| of.id.kind == "Gateway")
        .expect("it is judged");
    assert_eq!(door.listeners[0].attached, 4);
    // Without its server the tenant has no other route's.
    let at = all.len() - 1;
    all[at]["spec"]["backendRefs"][0]["name"] = json!("nobody");
    let live = lowered(&all, None);
    assert_eq!(served(&live), [r#""default" "first""#]);
    let tenant = said(&live, "MCPRoute", "tenant");
    assert!(
        tenant.starts_with("Accepted false BackendNotFound spec.backendRefs[0]"),
        "{tenant}"
    );
    assert_eq!(said(&live, "MCPRoute", "all"), "Accepted true Accepted");
    assert_eq!(ways(&live), pairs(&[("m", "first"), ("n", "second")]));
}

#[test]
fn a_policy_that_names_a_route_to_tools_closes_it_and_takes_it_from_nobody() {
    let of_tenant = json!({ "headers": [{ "name": "x-tenant", "value": "t", "type": "Exact" }] });
    for (kind, says) in [
        (
            "BackendTrafficPolicy",
            json!({ "retry": { "numRetries": 1 } }),
        ),
        (
            "SecurityPolicy",
            json!({ "cors": { "allowOrigins": ["https://x.example"] } }),
        ),
    ] {
        let mut policy = json!({
            "targetRefs": [{ "group": "aigateway.envoyproxy.io", "kind": "MCPRoute", "name": "tenant" }],
        });
        let members = policy.as_object_mut().expect("a map");
        members.extend(says.as_object().expect("a map").clone());
        let mut all = base();
        all.extend([
            tools("all", &json!({})),
            tools("tenant", &of_tenant),
            object(ENVOY_GROUP, kind, "limit", policy),
        ]);
        let live = lowered(&all, None);
        assert_eq!(served(&live), [r#""default" "first""#], "{kind}");
        let said = said(&live, kind, "limit");
        let why = "names an MCPRoute, and what holds for its calls is said of the Gateway";
        assert!(said.contains(why), "{said}");
        assert_eq!(ways(&live), pairs(&[("m", "first"), ("n", "second")]));
    }
}

/// A policy for a policy is for nothing: to take away what it names would let in whom that keeps out.
#[test]
fn a_policy_that_names_another_policy_takes_nothing_away() {
    let rule = json!({ "limit": { "requests": 1, "unit": "Hour" } });
    let limit = json!({
        "targetRefs": targets("Gateway", "door"),
        "rateLimit": { "type": "Global", "global": { "rules": [rule] } },
    });
    let other = json!({
        "targetRefs": [{ "group": "gateway.envoyproxy.io", "kind": "BackendTrafficPolicy", "name": "limit" }],
        "retry": { "numRetries": 1 },
    });
    let mut all = base();
    all.extend([
        object(ENVOY_GROUP, "BackendTrafficPolicy", "limit", limit),
        object(ENVOY_GROUP, "BackendTrafficPolicy", "other", other),
    ]);
    let live = lowered(&all, None);
    let limited = [("m", "first limited"), ("n", "second limited")];
    assert_eq!(ways(&live), pairs(&limited));
    assert!(said(&live, "BackendTrafficPolicy", "other").starts_with("Accepted false"));
}

#[test]
fn an_expression_that_cannot_be_compiled_closes_its_route_alone() {
    let selector = json!({ "backendRefs": [{
        "name": "first", "kind": "Backend", "group": "gateway.envoyproxy.io", "toolSelector": { "includeRegex": ["("] },
    }] });
    let mut all = base();
    all.push(tools("tools", &selector));
    let trial = |loaded: Loaded| {
        let place = "mcp.servers.first.tools.allow[0].when (line 9)";
        match loaded.document.json()["mcp"].is_null() {
            true => Ok(()),
            false => Err(format!("{place}: line 1, column 14: it is none")),
        }
    };
    let live = lowered_by(&all, None, true, &trial);
    assert!(served(&live).is_empty());
    assert_eq!(ways(&live), pairs(&[("m", "first"), ("n", "second")]));
    let tools = said(&live, "MCPRoute", "tools");
    assert!(
        tools.starts_with(
            "Accepted false UnsupportedValue spec.backendRefs[0].toolSelector.includeRegex[0]"
        ),
        "{tools}"
    );
}
