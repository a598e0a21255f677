//! Objects of a cluster: a faulty one fails alone and closed, and what is said of each.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use config::Sources;
use serde_json::{Value, json};

use super::verdict::Listener;
use super::*;

/// A world in which everything is there that objects must not reach.
struct World;

impl Sources for World {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Ok(b"canary-of-a-file".to_vec())
    }

    fn var(&self, _: &str) -> Option<String> {
        Some("canary-of-a-variable-of-the-gates-machine".to_owned())
    }
}

const GATEWAY_GROUP: &str = "gateway.networking.k8s.io/v1";
const AI_GROUP: &str = "aigateway.envoyproxy.io/v1beta1";
const ENVOY_GROUP: &str = "gateway.envoyproxy.io/v1alpha1";

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": { "name": name, "namespace": "a", "generation": 3 },
        "spec": spec,
    })
}

fn route(name: &str, model: &str, backend: &str) -> Value {
    object(
        AI_GROUP,
        "AIGatewayRoute",
        name,
        json!({
            "parentRefs": [{ "name": "door", "kind": "Gateway", "group": "gateway.networking.k8s.io" }],
            "rules": [{
                "matches": [{ "headers": [{ "name": "x-ai-eg-model", "value": model }] }],
                "backendRefs": [{ "name": backend, "weight": 1 }],
                "modelsOwnedBy": "Envoy AI Gateway",
            }],
        }),
    )
}

fn targets(kind: &str, name: &str) -> Value {
    let group = match kind {
        "AIServiceBackend" | "AIGatewayRoute" => "aigateway.envoyproxy.io",
        "Backend" => "gateway.envoyproxy.io",
        _ => "gateway.networking.k8s.io",
    };
    json!([{ "group": group, "kind": kind, "name": name }])
}

/// Two services of which each has a route of its own, and the first a key.
fn base() -> Vec<Value> {
    let service = |name: &str| {
        let to = json!({ "name": name, "kind": "Backend", "group": "gateway.envoyproxy.io" });
        object(
            AI_GROUP,
            "AIServiceBackend",
            name,
            json!({ "schema": { "name": "OpenAI" }, "backendRef": to }),
        )
    };
    let backend = |name: &str, port: u16| {
        let at = json!({ "ip": { "address": "127.0.0.1", "port": port } });
        object(
            ENVOY_GROUP,
            "Backend",
            name,
            json!({ "type": "Endpoints", "endpoints": [at] }),
        )
    };
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key", "namespace": "a" },
        "data": { "apiKey": "JHtIT01FfQ==" },
    });
    secret["metadata"]["annotations"] = json!({
        "substitution.aigw.run/env/apiKey": "HOME", "substitution.aigw.run/file/apiKey": "/etc/passwd", "tollgate/file.apiKey": "/etc/passwd",
    });
    vec![
        json!({
            "apiVersion": GATEWAY_GROUP, "kind": "GatewayClass", "metadata": { "name": "ours" },
            "spec": { "controllerName": "tollgate/gateway" },
        }),
        object(
            GATEWAY_GROUP,
            "Gateway",
            "door",
            json!({
                "gatewayClassName": "ours", "addresses": [{ "value": "127.0.0.1" }],
                "listeners": [{ "name": "http", "protocol": "HTTP", "port": 8080, "allowedRoutes": { "namespaces": { "from": "Same" } } }],
            }),
        ),
        route("one", "m", "first"),
        route("two", "n", "second"),
        service("first"),
        service("second"),
        backend("first", 1),
        backend("second", 2),
        object(
            AI_GROUP,
            "BackendSecurityPolicy",
            "key",
            json!({
                "targetRefs": targets("AIServiceBackend", "first"), "type": "APIKey", "apiKey": { "secretRef": { "name": "key" } },
            }),
        ),
        secret,
    ]
}

fn id(object: &Value) -> Id {
    let text = |value: &Value, unless: &str| value.as_str().unwrap_or(unless).to_owned();
    Id {
        kind: text(&object["kind"], ""),
        namespace: text(&object["metadata"]["namespace"], "default"),
        name: text(&object["metadata"]["name"], ""),
    }
}

/// A host that cannot use a certain key.
fn trial(loaded: Loaded) -> Result<(), String> {
    let mut given = loaded.given.iter();
    let is_bad = given.any(|given| given.content.expose() == b"unusable");
    let place = "backends.first.credential";
    if is_bad {
        Err(format!("{place}: it is of no use"))
    } else {
        Ok(())
    }
}

fn lowered(objects: &[Value], running: Option<&str>) -> Live {
    lowered_where(objects, running, true)
}

fn lowered_where(objects: &[Value], running: Option<&str>, reaches_machine: bool) -> Live {
    lowered_by(objects, running, reaches_machine, &trial)
}

fn lowered_by(
    objects: &[Value],
    running: Option<&str>,
    reaches_machine: bool,
    trial: &Trial<'_>,
) -> Live {
    let none = BTreeMap::new();
    let choice = Choice {
        reaches_machine,
        trial: Some(trial),
        running,
        ..choice(&none)
    };
    lowered_as(objects, &choice)
}

/// Of a gate that is told where it listens, and by which addresses clients reach it.
fn lowered_at(objects: &[Value], addresses: &[String]) -> Live {
    let none = BTreeMap::new();
    let choice = Choice {
        bind: Some(std::net::IpAddr::from([127, 0, 0, 9])),
        addresses,
        ..choice(&none)
    };
    lowered_as(objects, &choice)
}

fn choice(unread: &BTreeMap<Id, String>) -> Choice<'_> {
    Choice {
        controller: "tollgate/gateway",
        gateway: None,
        reaches_machine: true,
        own: None,
        unread,
        bind: None,
        addresses: &[],
        zone: None,
        trial: None,
        running: None,
    }
}

fn lowered_as(objects: &[Value], choice: &Choice<'_>) -> Live {
    let texts: Vec<(Id, String)> = objects.iter().map(|of| (id(of), of.to_string())).collect();
    let texts: Vec<(Id, &str)> = texts
        .iter()
        .map(|(id, text)| (id.clone(), text.as_str()))
        .collect();
    live(&texts, choice, &World)
}

/// Where calls of each model go, by the document.
fn ways(live: &Live) -> BTreeMap<String, String> {
    let loaded = live
        .loaded
        .as_ref()
        .unwrap_or_else(|faults| panic!("{faults}"));
    let document = loaded.document.json();
    let routes = document["routes"].as_array().expect("routes");
    let way = |route: &Value| {
        let takes = route["match"]["model"]
            .as_str()
            .or(route["match"]["path"].as_str());
        let to = match route["limits"].as_array() {
            Some(_) => format!("{} limited", route["backend"].as_str().unwrap_or("?")),
            None => route["backend"].as_str().unwrap_or("?").to_owned(),
        };
        (takes.unwrap_or("*").to_owned(), to)
    };
    routes.iter().map(way).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect()
}

/// What is said of an object, each condition on a line.
fn said(live: &Live, kind: &str, name: &str) -> String {
    let mut verdicts = live.report.verdicts.iter();
    let verdict = verdicts.find(|verdict| verdict.id.kind == kind && verdict.id.name == name);
    let conditions = verdict.map_or(&[][..], |verdict| &verdict.conditions);
    let line = |of: &Condition| format!("{} {} {} {}", of.kind, of.is_true, of.reason, of.message);
    conditions
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
        .replace(" \n", "\n")
        .trim_end()
        .to_owned()
}

#[test]
fn objects_of_a_cluster_are_a_gate_and_read_nothing_of_its_machine() {
    let live = lowered(&base(), None);
    assert_eq!(ways(&live), pairs(&[("m", "first"), ("n", "second")]));
    let loaded = live.loaded.as_ref().expect("it loads");
    assert_eq!(loaded.warnings, []);
    let [given] = loaded.given.as_slice() else {
        panic!("one Secret");
    };
    assert_eq!(given.content.expose(), b"${HOME}");
    let wanted: Vec<&str> = live
        .report
        .wanted
        .iter()
        .map(|id| id.name.as_str())
        .collect();
    assert_eq!(wanted, ["key"]);
    for kind in [
        "AIGatewayRoute",
        "AIServiceBackend",
        "Backend",
        "BackendSecurityPolicy",
    ] {
        let verdicts = live
            .report
            .verdicts
            .iter()
            .filter(|verdict| verdict.id.kind == kind);
        let all: Vec<String> = verdicts.map(|of| said(&live, kind, &of.id.name)).collect();
        assert!(
            !all.is_empty() && all.iter().all(|said| said == "Accepted true Accepted"),
            "{all:?}"
        );
    }
    assert_eq!(
        said(&live, "Gateway", "door"),
        "Accepted true Accepted\nProgrammed true Programmed\nResolvedRefs true ResolvedRefs"
    );
    let door = live
        .report
        .verdicts
        .iter()
        .find(|verdict| verdict.id.name == "door");
    assert_eq!(
        door.map(|verdict| (verdict.listeners[0].attached, verdict.generation)),
        Some((2, 3))
    );
}

/// What is done, the objects then, where calls of each model go, and what is said of which object.
type Case = (
    &'static str,
    Vec<Value>,
    &'static [(&'static str, &'static str)],
    (&'static str, &'static str),
    &'static str,
);

/// Each object, changed so that it cannot be honoured: which ways are closed, and what is said of it.
#[test]
fn no_object_sends_calls_to_the_gates_own_machine_unless_it_is_said() {
    let of_machine = [
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "fe80::1",
        "localhost",
        "LocalHost.",
        "a.localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
    ];
    let elsewhere = ["10.0.0.1", "2001:db8::1", "engine.team.svc.cluster.local"];
    for host in of_machine.into_iter().chain(elsewhere) {
        let mut objects = base();
        for object in &mut objects {
            if object["kind"] == "Backend" && object["metadata"]["name"] == "first" {
                let is_ip = host.parse::<std::net::IpAddr>().is_ok();
                object["spec"]["endpoints"] = match is_ip {
                    true => json!([{ "ip": { "address": host, "port": 1 } }]),
                    false => json!([{ "fqdn": { "hostname": host, "port": 1 } }]),
                };
            } else if object["kind"] == "Backend" {
                object["spec"]["endpoints"] =
                    json!([{ "ip": { "address": "10.0.0.2", "port": 1 } }]);
            }
        }
        let live = lowered_where(&objects, None, false);
        let to = if elsewhere.contains(&host) {
            "first"
        } else {
            "closed"
        };
        assert_eq!(ways(&live), pairs(&[("m", to), ("n", "second")]), "{host}");
    }
}

#[test]
fn of_two_routes_that_take_a_call_the_older_one_has_it() {
    for (first, second, has) in [
        ("2026-01-01T00:00:00Z", "2026-11-01T00:00:00Z", "first"),
        ("2026-11-01T00:00:00Z", "2026-01-01T00:00:00Z", "second"),
    ] {
        let mut objects = base();
        for object in &mut objects {
            match object["metadata"]["name"].as_str() {
                Some("one") => object["metadata"]["creationTimestamp"] = json!(first),
                Some("two") => {
                    *object = route("two", "m", "second");
                    object["metadata"]["creationTimestamp"] = json!(second);
                }
                _ => {}
            }
        }
        let live = lowered(&objects, None);
        let loaded = live.loaded.as_ref().expect("it loads");
        let document = loaded.document.json();
        let routes = document["routes"].as_array().expect("routes");
        assert_eq!(routes[0]["backend"], has, "{routes:?}");
    }
}

#[test]
fn a_faulty_object_closes_what_it_was_to_open_and_nothing_else() {
    let limit = |spec: Value| object(ENVOY_GROUP, "BackendTrafficPolicy", "limit", spec);
    let bad_limit = json!({ "rateLimit": { "type": "Global", "global": { "rules": [{ "limit": { "requests": 1, "unit": "Year" } }] } } });
    let policy = |kind: &str, name: &str, spec: &Value| {
        let mut spec = spec.clone();
        spec["targetRefs"] = targets(kind, name);
        spec
    };
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut objects = base();
        change(&mut objects);
        objects
    };
    let at = |objects: &mut Vec<Value>, kind: &str, name: &str| {
        let place = objects
            .iter()
            .position(|of| of["kind"] == kind && of["metadata"]["name"] == name);
        place.expect("it is there")
    };
    let cases: Vec<Case> = vec![
        (
            "a route to what is not there",
            with(&|all| all.push(route("three", "o", "third"))),
            &[("m", "first"), ("n", "second"), ("o", "closed")],
            ("AIGatewayRoute", "three"),
            "Accepted false BackendNotFound spec.rules[0].backendRefs[0]: there is no AIServiceBackend a/third; add it",
        ),
        (
            "a rule of a route with two",
            with(&|all| {
                let mut two = route("three", "o", "third");
                let good = route("x", "p", "first")["spec"]["rules"][0].clone();
                two["spec"]["rules"]
                    .as_array_mut()
                    .expect("rules")
                    .push(good);
                all.push(two);
            }),
            &[
                ("m", "first"),
                ("n", "second"),
                ("o", "closed"),
                ("p", "first"),
            ],
            ("AIGatewayRoute", "three"),
            "Accepted false BackendNotFound spec.rules[0].backendRefs[0]: there is no AIServiceBackend a/third; add it",
        ),
        (
            "a Secret that is gone",
            with(&|all| all.retain(|of| of["kind"] != "Secret")),
            &[("m", "closed"), ("n", "second")],
            ("BackendSecurityPolicy", "key"),
            "Accepted false Invalid spec.apiKey.secretRef: there is no Secret a/key; add it",
        ),
        (
            "a Secret of which nothing can be made",
            with(&|all| {
                let place = at(all, "Secret", "key");
                all[place]["data"]["apiKey"] = json!("dW51c2FibGU=");
            }),
            &[("m", "closed"), ("n", "second")],
            ("BackendSecurityPolicy", "key"),
            "it is of no use",
        ),
        (
            "a second policy of limits for a route, of which the older is in force",
            with(&|all| {
                let rule = json!({ "limit": { "requests": 1, "unit": "Hour" } });
                let good =
                    json!({ "rateLimit": { "type": "Global", "global": { "rules": [rule] } } });
                for (name, created) in [
                    ("limit", "2026-01-01T00:00:00Z"),
                    ("late", "2026-01-02T00:00:00Z"),
                ] {
                    let mut of = limit(policy("AIGatewayRoute", "two", &good));
                    of["metadata"]["name"] = json!(name);
                    of["metadata"]["creationTimestamp"] = json!(created);
                    all.push(of);
                }
            }),
            &[("m", "first"), ("n", "second limited")],
            ("BackendTrafficPolicy", "late"),
            "Accepted false Invalid spec.targetRefs[0]: has a policy of this kind already; write both into one",
        ),
        (
            "what a closed target leads to",
            with(&|all| all.retain(|of| of["kind"] != "Secret")),
            &[("m", "closed"), ("n", "second")],
            ("AIServiceBackend", "first"),
            "Accepted false Invalid it is closed: a policy for it, a/key, is faulty",
        ),
        (
            "a Backend with a field of a later version",
            with(&|all| {
                let place = at(all, "Backend", "second");
                all[place]["spec"]["later"] = json!(true);
            }),
            &[("m", "first"), ("n", "closed")],
            ("Backend", "second"),
            "Accepted false Invalid spec: unknown field \"later\"",
        ),
        (
            "a limit of a route",
            with(&|all| all.push(limit(policy("AIGatewayRoute", "two", &bad_limit)))),
            &[("m", "first"), ("n", "closed")],
            ("AIGatewayRoute", "two"),
            "Accepted true Accepted its calls are refused: a policy for it is faulty, and its status says how",
        ),
        (
            "a limit of the Gateway",
            with(&|all| all.push(limit(policy("Gateway", "door", &bad_limit)))),
            &[("m", "closed"), ("n", "closed")],
            ("BackendTrafficPolicy", "limit"),
            "",
        ),
        (
            "who may call, of the Gateway",
            with(&|all| {
                let spec = policy(
                    "Gateway",
                    "door",
                    &json!({ "basicAuth": { "users": { "name": "u" } } }),
                );
                all.push(object(ENVOY_GROUP, "SecurityPolicy", "who", spec));
            }),
            &[("m", "closed"), ("n", "closed")],
            ("SecurityPolicy", "who"),
            "",
        ),
        (
            "a match that is not understood",
            with(&|all| {
                let place = at(all, "AIGatewayRoute", "two");
                let header = &mut all[place]["spec"]["rules"][0]["matches"][0]["headers"][0];
                header["type"] = json!("RegularExpression");
                header["value"] = json!("n[1-9]+");
            }),
            &[("m", "first")],
            ("AIGatewayRoute", "two"),
            "",
        ),
        (
            "a route of another's Gateway",
            with(&|all| {
                let mut other = route("three", "o", "third");
                other["spec"]["parentRefs"][0]["name"] = json!("other");
                all.push(other);
            }),
            &[("m", "first"), ("n", "second")],
            ("AIGatewayRoute", "three"),
            "",
        ),
        (
            "a route of two Gateways",
            with(&|all| {
                let place = at(all, "AIGatewayRoute", "two");
                let parents = all[place]["spec"]["parentRefs"].as_array_mut();
                parents.expect("parents").push(json!({ "name": "other" }));
                let last = all.len() - 1;
                all[last]["data"]["apiKey"] = json!("dW51c2FibGU=");
            }),
            &[("m", "closed"), ("n", "second")],
            ("AIGatewayRoute", "two"),
            "Accepted true Accepted",
        ),
        (
            "a route that names a listener that is not there",
            with(&|all| {
                let place = at(all, "AIGatewayRoute", "two");
                all[place]["spec"]["parentRefs"][0]["sectionName"] = json!("https");
            }),
            &[("m", "first")],
            ("AIGatewayRoute", "two"),
            "Accepted false NoMatchingParent",
        ),
        (
            "a Secret of another namespace",
            with(&|all| {
                let place = at(all, "BackendSecurityPolicy", "key");
                all[place]["spec"]["apiKey"]["secretRef"]["namespace"] = json!("b");
            }),
            &[("m", "closed"), ("n", "second")],
            ("BackendSecurityPolicy", "key"),
            "",
        ),
    ];
    for (what, objects, expected, (kind, name), says) in cases {
        let live = lowered(&objects, None);
        assert_eq!(ways(&live), pairs(expected), "{what}");
        let said = said(&live, kind, name);
        assert!(said.contains(says), "{what}: {said}");
        // What is closed is told in the log, by object.
        let warnings = &live.loaded.as_ref().expect("it loads").warnings;
        let is_ours = what != "a route of another's Gateway";
        assert_eq!(!warnings.is_empty(), is_ours, "{what}: {warnings:?}");
        assert!(
            warnings.iter().all(|fault| fault.file.is_none()),
            "{what}: {warnings:?}"
        );
        // However the objects stand, they come to the same.
        let mut turned = objects.clone();
        turned.reverse();
        assert_eq!(
            ways(&lowered(&turned, None)),
            pairs(expected),
            "{what}, turned"
        );
    }
}

/// Each single value of each object replaced: no call is let through that was not, but by another's word.
#[test]
fn whatever_one_object_says_the_ways_of_others_stay_as_they_are() {
    let objects = base();
    let mut tried = 0;
    for (place, whole) in objects.iter().enumerate() {
        let kind = whole["kind"].as_str().expect("a kind");
        // They are everybody's.
        if matches!(kind, "Gateway" | "GatewayClass") {
            continue;
        }
        let mut paths = Vec::new();
        leaves(&whole["spec"], &mut String::from("/spec"), &mut paths);
        for path in paths {
            for value in [
                json!(null),
                json!("x"),
                json!(7),
                json!([]),
                json!({}),
                json!({ "x": 1 }),
            ] {
                tried += 1;
                let mut changed = objects.clone();
                *changed[place].pointer_mut(&path).expect("it is there") = value.clone();
                let live = lowered(&changed, None);
                let ways = ways(&live);
                let name = whole["metadata"]["name"].as_str().expect("a name");
                let other = match name {
                    "one" | "first" | "key" => ("n", "second"),
                    _ => ("m", "first"),
                };
                let to = ways.get(other.0).map(String::as_str);
                let is_same = to == Some(other.1);
                // A route may come to take what was the other's, as it says then.
                let is_route = kind == "AIGatewayRoute";
                assert!(
                    is_same || is_route,
                    "{kind} {name} {path} {value}: {ways:?}"
                );
                assert!(live.loaded.is_ok());
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

fn leaves(value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    let mut below = |name: &str, value: &Value, path: &mut String| {
        path.push_str(&format!("/{name}"));
        found.push(path.clone());
        leaves(value, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| below(name, value, path)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, value)| below(&at.to_string(), value, path));
        }
        _ => {}
    }
}

#[test]
fn a_gate_without_its_gateway_waits_and_one_that_runs_is_closed() {
    let without: Vec<Value> = base()
        .into_iter()
        .filter(|of| of["kind"] != "Gateway")
        .collect();
    let mut faulty = base();
    faulty[1]["spec"]["listeners"][0]["tls"] = json!({ "certificateRefs": [{ "name": "none" }] });
    faulty[1]["spec"]["listeners"][0]["protocol"] = json!("HTTPS");
    for objects in [&without, &faulty] {
        assert!(lowered(objects, None).loaded.is_err());
        let live = lowered(objects, Some("127.0.0.1:7"));
        assert_eq!(ways(&live), pairs(&[("*", "closed")]));
        let document = live.loaded.as_ref().expect("it loads").document.json();
        assert_eq!(document["listen"]["data"], "127.0.0.1:7");
    }
    let live = lowered(&faulty, None);
    let says = "spec.listeners[0].tls.certificateRefs[0]: there is no Secret a/none; add it";
    assert_eq!(
        said(&live, "Gateway", "door"),
        format!("Accepted false ListenersNotValid {says}\nProgrammed false Invalid {says}")
    );
    assert!(live.report.wanted.iter().any(|id| id.name == "none"));
    // One to which nothing is attached knows every caller, and has nothing for any.
    let bare: Vec<Value> = base()
        .into_iter()
        .filter(|of| of["kind"] != "AIGatewayRoute")
        .collect();
    assert_eq!(
        ways(&lowered(&bare, None)),
        pairs(&[("no-route-is-attached", "closed")])
    );
}

#[test]
fn of_several_gateways_the_oldest_is_this_gates_unless_one_is_named() {
    let mut objects = base();
    objects[1]["metadata"]["creationTimestamp"] = json!("2026-02-01T00:00:00Z");
    let mut other = objects[1].clone();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    objects.push(other);
    let live = lowered(&objects, None);
    assert_eq!(
        live.report.gateway.as_ref().map(|id| id.name.as_str()),
        Some("other")
    );
    assert!(said(&live, "Gateway", "door").contains("this one is a/other"));
}

fn verdict(kind: &str, conditions: Vec<Condition>) -> Verdict {
    Verdict {
        id: Id {
            kind: kind.to_owned(),
            namespace: "a".to_owned(),
            name: "x".to_owned(),
        },
        generation: 4,
        conditions,
        parents: Vec::new(),
        listeners: vec![Listener {
            name: "http".to_owned(),
            attached: 1,
            takes_routes: true,
            conditions: Vec::new(),
        }],
        sets: 0,
    }
}

fn good() -> Vec<Condition> {
    vec![Condition {
        kind: "Accepted",
        is_true: true,
        reason: "Accepted",
        message: String::new(),
    }]
}

fn gate() -> Gate {
    Gate {
        gateway: Some(Id {
            kind: "Gateway".to_owned(),
            namespace: "a".to_owned(),
            name: "door".to_owned(),
        }),
        controller: "tollgate/gateway".to_owned(),
        ..Gate::default()
    }
}

#[test]
fn a_status_keeps_what_others_said_and_is_written_once() {
    let foreign = json!({ "parentRef": { "name": "door" }, "controllerName": "other/c", "conditions": [{ "type": "Accepted", "x": 1 }] });
    let elsewhere = json!({ "parentRef": { "name": "elsewhere" }, "controllerName": "tollgate/gateway", "conditions": [] });
    let mut object = json!({
        "spec": { "parentRefs": [{ "name": "door", "sectionName": "http" }, { "name": "elsewhere" }] },
        "status": { "parents": [foreign, elsewhere] },
    });
    let route = verdict("HTTPRoute", good());
    let say = |object: &Value, verdict: &Verdict, now: &str| status(verdict, object, &gate(), now);
    let first = say(&object, &route, "t1").expect("it is new");
    let parents = first["parents"].as_array().expect("parents");
    assert_eq!(parents[..2], [foreign.clone(), elsewhere.clone()]);
    assert_eq!(
        parents[2]["parentRef"],
        json!({ "name": "door", "sectionName": "http" })
    );
    let condition = &parents[2]["conditions"][0];
    assert_eq!(condition["lastTransitionTime"], "t1");
    assert_eq!(condition["observedGeneration"], 4);
    object["status"] = first;
    assert_eq!(say(&object, &route, "t2"), None, "it says so already");
    // Another generation is said, and the time of the last change of what holds stays.
    let later = Verdict {
        generation: 5,
        ..route.clone()
    };
    let second = say(&object, &later, "t3").expect("another generation");
    assert_eq!(
        second["parents"][2]["conditions"][0]["lastTransitionTime"],
        "t1"
    );
    let mut worse = later.clone();
    worse.conditions[0].is_true = false;
    let third = say(
        &json!({ "spec": object["spec"], "status": second }),
        &worse,
        "t4",
    )
    .expect("it changed");
    assert_eq!(
        third["parents"][2]["conditions"][0]["lastTransitionTime"],
        "t4"
    );
    // What is attached no more takes its entry back, and no other.
    let left = verdict("HTTPRoute", Vec::new());
    let fourth = say(&json!({ "spec": {}, "status": third }), &left, "t5").expect("it goes");
    assert_eq!(fourth["parents"], json!([foreign, elsewhere]));
    assert_eq!(
        say(&json!({ "spec": {} }), &left, "t6"),
        None,
        "nothing was said"
    );
}

#[test]
fn each_kind_has_the_status_that_its_api_says() {
    let say = |kind: &str, object: Value| {
        let said = status(&verdict(kind, good()), &object, &gate(), "t1");
        said.expect("it is new")
    };
    let policy = say("SecurityPolicy", json!({}));
    let ancestor = &policy["ancestors"][0];
    assert_eq!(ancestor["ancestorRef"]["name"], "door");
    assert_eq!(ancestor["controllerName"], "tollgate/gateway");
    let foreign = json!({ "conditions": [{ "type": "Foreign" }] });
    let service = say("AIServiceBackend", json!({ "status": foreign }));
    assert_eq!(service["conditions"][0]["type"], "Foreign");
    assert_eq!(service["conditions"][1]["type"], "Accepted");
    let class = say("GatewayClass", json!({}));
    let features: Vec<&str> = class["supportedFeatures"]
        .as_array()
        .expect("features")
        .iter()
        .filter_map(|of| of["name"].as_str())
        .collect();
    assert!(features.is_sorted() && !features.is_empty());
    let gateway = say(
        "Gateway",
        json!({ "spec": { "listeners": [{ "name": "http" }] }, "status": { "addresses": [1] } }),
    );
    assert_eq!(gateway["addresses"], json!([1]));
    assert_eq!(gateway["listeners"][0]["attachedRoutes"], 1);
    let elsewhere = Gate {
        addresses: vec!["10.0.0.1".to_owned(), "gate.example".to_owned()],
        ..gate()
    };
    let addressed = status(&verdict("Gateway", good()), &json!({}), &elsewhere, "t1");
    let addressed = addressed.expect("it is new");
    assert_eq!(
        addressed["addresses"],
        json!([{ "type": "IPAddress", "value": "10.0.0.1" }, { "type": "Hostname", "value": "gate.example" }])
    );
    let none = status(&verdict("Secret", good()), &json!({}), &gate(), "t");
    assert_eq!(none, None);
}

mod accounts;
mod asked;
mod gateway_api;
mod gateway_tls;
mod listener_sets;
mod namespaces;
mod pools;
mod tools;

#[test]
fn where_more_is_faulty_than_is_looked_for_nothing_is_taken() {
    let of = |at: usize, name: &str| -> Value {
        let text = base()[at].to_string().replace("first", name);
        serde_json::from_str(&text).expect("JSON")
    };
    let with = |count: usize| {
        let mut objects = base();
        for nth in 0..count {
            let name = format!("bad{nth:02}");
            objects.extend([route(&name, &name, &name), of(4, &name), of(6, &name)]);
        }
        objects
    };
    // One is told at a time.
    let by = |count: usize| {
        let told = std::cell::RefCell::new(BTreeSet::new());
        let trial = |loaded: Loaded| {
            let document = loaded.document.json();
            let mut names = document["backends"].as_object().expect("backends").keys();
            let mut told = told.borrow_mut();
            match names.find(|name| name.starts_with("bad") && told.insert((*name).clone())) {
                Some(name) => Err(format!("backends.{name}.url: it is of no use")),
                None => Ok(()),
            }
        };
        lowered_by(&with(count), None, true, &trial)
    };
    // A round finds the backend, one what names it, and one the route to that.
    let ways = ways(&by(ROUNDS_MAX / 3 - 1));
    assert_eq!(ways.get("m").map(String::as_str), Some("first"), "{ways:?}");
    let many = by(ROUNDS_MAX / 3 + 1);
    let faults = many.loaded.expect_err("too many are faulty").to_string();
    assert!(faults.contains("more than 64 times"), "{faults}");
    assert!(faults.contains("it is of no use"), "{faults}");
}
