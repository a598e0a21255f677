//! Pools of a cluster: which Pods they are, who picks, what is said of each; and rules of which some targets are faulty.

use serde_json::{Value, json};

use super::{GATEWAY_GROUP, Live, base, gate, lowered, object, said};
use crate::live::status;

const INFERENCE: &str = "inference.networking.k8s.io/v1";

fn gateway() -> Value {
    object(
        GATEWAY_GROUP,
        "Gateway",
        "door",
        json!({ "gatewayClassName": "ours", "listeners": [{ "name": "http", "protocol": "HTTP", "port": 8080 }] }),
    )
}

fn pod(name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "a", "labels": { "app": "vllm" } },
        "status": { "podIP": ip, "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn pool(picker: Value) -> Value {
    object(
        INFERENCE,
        "InferencePool",
        "pool",
        json!({
            "selector": { "matchLabels": { "app": "vllm" } }, "targetPorts": [{ "number": 8000 }],
            "appProtocol": "http", "endpointPickerRef": picker,
        }),
    )
}

fn picker(mode: &str) -> Value {
    json!({ "group": "", "kind": "Service", "name": "epp", "port": { "number": 9002 }, "failureMode": mode })
}

fn service(name: &str, cluster_ip: &str) -> Value {
    let ports = json!([{ "name": "", "port": 9002, "appProtocol": "http2" }]);
    object(
        "v1",
        "Service",
        name,
        json!({ "ports": ports, "clusterIP": cluster_ip }),
    )
}

fn slice(of: &str, ip: &str, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": format!("{of}-1"), "namespace": "a", "labels": { "kubernetes.io/service-name": of } },
        "ports": [{ "name": "", "port": port }],
        "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }],
    })
}

fn to_pool(weight: u32) -> Value {
    json!({ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "pool", "weight": weight })
}

/// A route of calls to a path with these targets.
fn route(targets: Value) -> Value {
    let path = json!({ "type": "PathPrefix", "value": "/ask" });
    object(
        GATEWAY_GROUP,
        "HTTPRoute",
        "web",
        json!({
            "parentRefs": [{ "name": "door" }],
            "rules": [{ "matches": [{ "path": path }], "backendRefs": targets }],
        }),
    )
}

fn cluster(more: &[Value]) -> Vec<Value> {
    let mut objects = vec![base().remove(0), gateway()];
    objects.extend([pod("one", "10.0.0.1"), pod("two", "10.0.0.2")]);
    objects.extend(more.iter().cloned());
    objects
}

fn document(live: &Live) -> &Value {
    let loaded = live.loaded.as_ref();
    loaded
        .unwrap_or_else(|faults| panic!("{faults}"))
        .document
        .json()
}

#[test]
fn a_pool_is_its_pods_and_its_picker_is_asked_where_it_is() {
    let live = lowered(
        &cluster(&[
            route(json!([to_pool(1)])),
            pool(picker("FailOpen")),
            service("epp", "10.96.0.9"),
            slice("epp", "10.0.0.9", 9003),
        ]),
        None,
    );
    let backend = &document(&live)["backends"]["pool"];
    let urls = backend["endpoints"].as_array().expect("endpoints");
    let urls: Vec<&str> = urls.iter().filter_map(|of| of["url"].as_str()).collect();
    assert_eq!(urls, ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]);
    let said_of_picker = &backend["balancing"]["picker"];
    assert_eq!(said_of_picker["grpc"], "https://10.0.0.9:9003");
    assert_eq!(said_of_picker["on_failure"], "allow");
    assert_eq!(said_of_picker["trust"], "anyone");
    assert_eq!(
        said(&live, "InferencePool", "pool"),
        "Accepted true Accepted\nResolvedRefs true ResolvedRefs"
    );
    let wanted: Vec<String> = live
        .report
        .wanted
        .iter()
        .map(|id| format!("{} {}", id.kind, id.name))
        .collect();
    assert_eq!(wanted, ["EndpointSlice epp", "Pod app=vllm", "Service epp"]);
    // Without an endpoint it is asked where nobody answers.
    let live = lowered(
        &cluster(&[
            route(json!([to_pool(1)])),
            pool(picker("FailClose")),
            service("epp", "10.96.0.9"),
        ]),
        None,
    );
    let said_of_picker = &document(&live)["backends"]["pool"]["balancing"]["picker"];
    assert_eq!(said_of_picker["grpc"], "https://10.96.0.9:9002");
    assert_eq!(said_of_picker["on_failure"], "deny");
}

#[test]
fn a_pool_without_a_picker_is_chosen_from_by_the_gate() {
    let mut pool = pool(Value::Null);
    pool["spec"]
        .as_object_mut()
        .expect("members")
        .remove("endpointPickerRef");
    let live = lowered(&cluster(&[route(json!([to_pool(1)])), pool]), None);
    assert_eq!(
        document(&live)["backends"]["pool"]["balancing"],
        "prefix_cache"
    );
}

#[test]
fn a_pool_without_a_ready_pod_waits_for_one_and_is_no_fault() {
    let mut going = pod("one", "10.0.0.1");
    going["status"]["conditions"][0]["status"] = json!("False");
    let mut pool = pool(json!(null));
    pool["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("endpointPickerRef");
    let mut objects = vec![base().remove(0), gateway(), going];
    objects.extend([route(json!([to_pool(1)])), pool]);
    let live = lowered(&objects, None);
    let document = document(&live);
    assert_eq!(document["routes"][0]["backend"], "unready-http");
    assert_eq!(document["backends"]["unready-http"]["unready"], true);
    let of_route = said(&live, "HTTPRoute", "web");
    assert!(!of_route.contains("false"), "{of_route}");
}

#[test]
fn a_pool_whose_picker_is_not_there_gets_no_calls_and_says_so() {
    let live = lowered(
        &cluster(&[route(json!([to_pool(1)])), pool(picker("FailOpen"))]),
        None,
    );
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["backend"], "closed-http");
    let of_pool = said(&live, "InferencePool", "pool");
    assert!(of_pool.starts_with("Accepted true Accepted\n"), "{of_pool}");
    assert!(
        of_pool.contains("ResolvedRefs false InvalidExtensionRef"),
        "{of_pool}"
    );
    let of_route = said(&live, "HTTPRoute", "web");
    assert!(of_route.starts_with("Accepted true Accepted"), "{of_route}");
    assert!(
        of_route.contains("ResolvedRefs false BackendNotFound"),
        "{of_route}"
    );
}

#[test]
fn the_share_of_a_faulty_target_is_refused_and_the_others_have_theirs() {
    let to_web = json!({ "name": "web", "port": 9002, "weight": 1 });
    let to_none = json!({ "name": "none", "port": 9002, "weight": 3 });
    let web = [service("web", "10.96.0.1"), slice("web", "10.0.0.3", 3000)];
    let of = |targets: Value| {
        let mut more = vec![route(targets)];
        more.extend(web.iter().cloned());
        lowered(&cluster(&more), None)
    };
    let live = of(json!([to_none, to_web]));
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["backend"], json!(["web", "closed-http"]));
    assert_eq!(routes[0]["weights"], json!([1, 3]));
    let of_route = said(&live, "HTTPRoute", "web");
    assert!(
        of_route.contains("ResolvedRefs false BackendNotFound spec.rules[0].backendRefs[0]"),
        "{of_route}"
    );
    // One that gets no calls anyhow changes nothing.
    let mut idle = to_none.clone();
    idle["weight"] = json!(0);
    let live = of(json!([idle, to_web]));
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["backend"], "web");
    // With none that is sound the rule is closed as before.
    let live = of(json!([to_none]));
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["backend"], "closed-http");
}

#[test]
fn pools_share_a_rule_by_weight_and_each_has_its_own_picker() {
    let mut other = pool(picker("FailOpen"));
    other["metadata"]["name"] = json!("other");
    let mut to_other = to_pool(30);
    to_other["name"] = json!("other");
    let live = lowered(
        &cluster(&[
            route(json!([to_pool(70), to_other])),
            pool(picker("FailClose")),
            other,
            service("epp", "None"),
            slice("epp", "10.0.0.9", 9003),
        ]),
        None,
    );
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes[0]["backend"], json!(["pool", "other"]));
    assert_eq!(routes[0]["weights"], json!([70, 30]));
}

#[test]
fn a_pool_has_an_entry_for_the_gateway_and_loses_it_with_its_last_route() {
    let objects = cluster(&[
        route(json!([to_pool(1)])),
        pool(picker("FailOpen")),
        service("epp", "10.96.0.9"),
    ]);
    let of = |live: &Live, object: &Value| {
        let mut verdicts = live.report.verdicts.iter();
        let verdict = verdicts.find(|of| of.id.kind == "InferencePool");
        status(verdict.expect("it is judged"), object, &gate(), "now")
    };
    let mut pool = pool(picker("FailOpen"));
    let theirs = json!({
        "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "a", "name": "theirs" },
        "controllerName": "theirs", "conditions": [],
    });
    pool["status"] = json!({ "parents": [theirs] });
    let live = lowered(&objects, None);
    let written = of(&live, &pool).expect("something is to be said");
    let parents = written["parents"].as_array().expect("parents");
    assert_eq!(parents.len(), 2);
    assert_eq!(parents[0], theirs);
    assert_eq!(parents[1]["parentRef"]["kind"], "Gateway");
    assert_eq!(parents[1]["controllerName"], gate().controller.as_str());
    let conditions = parents[1]["conditions"].as_array().expect("conditions");
    let kinds: Vec<&str> = conditions
        .iter()
        .filter_map(|of| of["type"].as_str())
        .collect();
    assert_eq!(kinds, ["Accepted", "ResolvedRefs"]);
    pool["status"] = written;
    assert_eq!(of(&live, &pool), None, "it is said already");
    let without: Vec<Value> = objects
        .iter()
        .filter(|of| of["kind"] != "HTTPRoute")
        .cloned()
        .collect();
    let written = of(&lowered(&without, None), &pool).expect("the entry is taken back");
    assert_eq!(written["parents"], json!([theirs]));
}
