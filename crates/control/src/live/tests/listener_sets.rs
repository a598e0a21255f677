//! ListenerSets: listeners that stand outside the Gateway.

use serde_json::{Value, json};

use super::gateway_api::{cluster, document, gateway, http_route, listeners_of, to_web};
use super::{GATEWAY_GROUP, Gate, Id, Live, lowered, object, said, status, verdict};

fn gateway_that_lets_in(from: Value) -> Value {
    let mut door = gateway(json!([
        { "name": "own", "port": 80, "protocol": "HTTP", "hostname": "own.example" },
    ]));
    door["spec"]["allowedListeners"] = json!({ "namespaces": from });
    door
}

fn set(name: &str, listeners: Value) -> Value {
    let parent = json!({ "kind": "Gateway", "group": "gateway.networking.k8s.io", "name": "door" });
    let spec = json!({ "parentRef": parent, "listeners": listeners });
    object(GATEWAY_GROUP, "ListenerSet", name, spec)
}

fn http(name: &str, host: &str) -> Value {
    json!({ "name": name, "port": 80, "protocol": "HTTP", "hostname": host })
}

fn parent(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "group": "gateway.networking.k8s.io", "name": name })
}

/// A Gateway that lets in from there, these sets, and a route to each of these parents by its name.
fn with(from: Value, sets: &[Value], routes: &[(&str, Value)]) -> Live {
    let rules = || json!({ "rules": [{ "backendRefs": to_web() }] });
    let routes = routes.iter();
    let routes: Vec<Value> = routes
        .map(|(name, parents)| http_route(name, parents.clone(), rules()))
        .collect();
    let mut objects = cluster(json!([]), &routes);
    objects[1] = gateway_that_lets_in(from);
    objects.extend(sets.iter().cloned());
    lowered(&objects, None)
}

/// What is said of a set itself: only what is not as it should be.
fn of_set(live: &Live, name: &str) -> Vec<String> {
    let mut verdicts = live.report.verdicts.iter();
    let of = verdicts.find(|of| of.id.kind == "ListenerSet" && of.id.name == name);
    let conditions = of.expect("a ListenerSet").conditions.iter();
    let bad = conditions.filter(|of| !of.is_true);
    bad.map(|of| format!("{}={}", of.kind, of.reason)).collect()
}

fn attached(live: &Live) -> u32 {
    let mut verdicts = live.report.verdicts.iter();
    verdicts
        .find(|of| of.id.kind == "Gateway")
        .expect("a Gateway")
        .sets
}

#[test]
fn a_route_has_the_calls_of_the_set_that_it_names_and_of_no_other() {
    let sets = [
        set(
            "one",
            json!([http("a", "a.example"), http("b", "b.example")]),
        ),
        set("two", json!([http("a", "c.example")])),
    ];
    let live = with(
        json!({ "from": "Same" }),
        &sets,
        &[
            (
                "all",
                json!([
                    parent("Gateway", "door"),
                    parent("ListenerSet", "one"),
                    parent("ListenerSet", "two")
                ]),
            ),
            ("one", json!([parent("ListenerSet", "one")])),
            (
                "section",
                json!([{ "kind": "ListenerSet", "name": "one", "sectionName": "b" }]),
            ),
        ],
    );
    let document = document(&live);
    let listen = document["listen"]["listeners"]
        .as_array()
        .expect("listeners");
    let names: Vec<&Value> = listen.iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["own", "a/one/a", "a/one/b", "a/two/a"]);
    let routes = document["routes"].as_array().expect("routes");
    let places: Vec<&Value> = routes.iter().map(|of| &of["match"]["listener"]).collect();
    let of_all = json!(["own", "a/one/a", "a/one/b", "a/two/a"]);
    assert_eq!(
        places,
        [&of_all, &json!(["a/one/a", "a/one/b"]), &json!("a/one/b")]
    );
    assert_eq!(listeners_of(&live, "ListenerSet", "one"), ["a 2", "b 3"]);
    assert_eq!(listeners_of(&live, "ListenerSet", "two"), ["a 1"]);
    assert_eq!(listeners_of(&live, "Gateway", "door"), ["own 1"]);
    assert_eq!((of_set(&live, "one"), attached(&live)), (vec![], 2));
}

#[test]
fn a_gateway_lets_in_no_set_unless_it_says_so() {
    let sets = [set("one", json!([http("a", "a.example")]))];
    let route = [(
        "all",
        json!([parent("Gateway", "door"), parent("ListenerSet", "one")]),
    )];
    for from in [json!({}), json!({ "from": "None" })] {
        let live = with(from, &sets, &route);
        let bad = ["Accepted=NotAllowed", "Programmed=NotAllowed"];
        assert_eq!(of_set(&live, "one"), bad);
        assert_eq!(attached(&live), 0);
        let listen = &document(&live)["listen"]["listeners"];
        assert_eq!(listen.as_array().map(Vec::len), Some(1));
        let mut verdicts = live.report.verdicts.iter();
        let route = verdicts
            .find(|of| of.id.kind == "HTTPRoute")
            .expect("a route");
        let (at, conditions) = &route.parents[0];
        assert_eq!((*at, conditions[0].reason), (1, "NoMatchingParent"));
        assert_eq!(listeners_of(&live, "Gateway", "door"), ["own 1"]);
    }
    // Where labels say, those of the namespace are asked for.
    let labels = json!({ "from": "Selector", "selector": { "matchLabels": { "kubernetes.io/metadata.name": "a" } } });
    assert_eq!(of_set(&with(labels, &sets, &route), "one"), [""; 0]);
}

#[test]
fn of_two_that_say_one_host_or_port_the_earlier_one_is_served() {
    let tcp = json!({ "name": "tcp", "port": 80, "protocol": "TCP" });
    let sets = [
        set(
            "first",
            json!([tcp, http("mine", "x.example"), http("taken", "own.example")]),
        ),
        set("none", json!([http("taken", "own.example")])),
        set(
            "second",
            json!([http("late", "x.example"), http("free", "y.example")]),
        ),
    ];
    let live = with(json!({ "from": "Same" }), &sets, &[]);
    assert_eq!(listeners_of(&live, "Gateway", "door"), ["own 0"]);
    let lost = |why: &str| format!(" Accepted={why} Programmed={why} Conflicted={why}");
    let of_first = [
        format!("tcp 0{}", lost("ProtocolConflict")),
        "mine 0".to_owned(),
        format!("taken 0{}", lost("HostnameConflict")),
    ];
    assert_eq!(listeners_of(&live, "ListenerSet", "first"), of_first);
    let of_second = [
        format!("late 0{}", lost("HostnameConflict")),
        "free 0".to_owned(),
    ];
    assert_eq!(listeners_of(&live, "ListenerSet", "second"), of_second);
    let bad = ["Accepted=ListenersNotValid", "Programmed=ListenersNotValid"];
    assert_eq!(of_set(&live, "none"), bad);
    assert_eq!((of_set(&live, "first"), attached(&live)), (vec![], 2));
    assert!(said(&live, "ListenerSet", "first").contains("of Gateway a/door"));
}

#[test]
fn what_is_said_of_routes_to_sets_of_others_stays_as_it_is() {
    let set = |name: &str| Id {
        kind: "ListenerSet".to_owned(),
        namespace: "a".to_owned(),
        name: name.to_owned(),
    };
    let gate = Gate {
        sets: [set("ours")].into(),
        other_sets: [set("theirs")].into(),
        ..super::gate()
    };
    let entry = |name: &str| json!({ "parentRef": parent("ListenerSet", name), "controllerName": "tollgate/gateway", "conditions": [] });
    let object = json!({
        "spec": { "parentRefs": [parent("ListenerSet", "ours"), parent("ListenerSet", "theirs"), parent("ListenerSet", "gone")] },
        "status": { "parents": [entry("theirs"), entry("gone")] },
    });
    let said = status(&verdict("HTTPRoute", super::good()), &object, &gate, "t1");
    let said = said.expect("it is new");
    let parents = said["parents"].as_array().expect("parents");
    assert_eq!(parents[0], entry("theirs"));
    assert_eq!(parents[1]["parentRef"]["name"], "ours");
    assert_eq!(parents.len(), 2);
}
