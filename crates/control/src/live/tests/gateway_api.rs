//! What the Gateway API says of listeners, of Services by their slices, of filters and of their status.

use serde_json::{Value, json};

use super::{GATEWAY_GROUP, Listener, Live, base, lowered, object, said};

pub(super) fn gateway(listeners: Value) -> Value {
    object(
        GATEWAY_GROUP,
        "Gateway",
        "door",
        json!({ "gatewayClassName": "ours", "listeners": listeners }),
    )
}

pub(super) fn http_route(name: &str, parents: Value, rest: Value) -> Value {
    let mut spec = json!({ "parentRefs": parents });
    for (key, value) in rest.as_object().expect("members") {
        spec[key] = value.clone();
    }
    object(GATEWAY_GROUP, "HTTPRoute", name, spec)
}

pub(super) fn service(name: &str) -> Value {
    let ports = json!([{ "name": "web", "port": 80, "targetPort": 3000 }, { "name": "h2", "port": 81, "appProtocol": "kubernetes.io/h2c" }]);
    let mut service = object("v1", "Service", name, json!({ "ports": ports }));
    service["metadata"]["labels"] = json!({});
    service
}

fn slice(name: &str, of: &str, endpoints: Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": name, "namespace": "a", "labels": { "kubernetes.io/service-name": of } },
        "ports": [{ "name": "web", "port": 3000 }, { "name": "h2", "port": 3001 }],
        "endpoints": endpoints,
    })
}

fn endpoint(address: &str, is_ready: bool) -> Value {
    json!({ "addresses": [address], "conditions": { "ready": is_ready } })
}

/// A Gateway and what else is there, with two pods of one Service of which one is ready.
pub(super) fn cluster(listeners: Value, routes: &[Value]) -> Vec<Value> {
    let mut objects = vec![base().remove(0), gateway(listeners), service("web")];
    let endpoints = json!([endpoint("10.0.0.1", true), endpoint("10.0.0.2", false)]);
    objects.push(slice("web-1", "web", endpoints));
    objects.extend(routes.iter().cloned());
    objects
}

pub(super) fn to_web() -> Value {
    json!([{ "name": "web", "port": 80 }])
}

pub(super) fn document(live: &Live) -> &Value {
    let loaded = live
        .loaded
        .as_ref()
        .unwrap_or_else(|faults| panic!("{faults}"));
    loaded.document.json()
}

/// A member of the backend that two Services share.
fn shares_of(live: &Live, member: &str) -> Value {
    document(live)["backends"]["web.many"][member].clone()
}

/// The listeners of the Gateway with what is said of each: only what is not as it should be.
fn listeners(live: &Live) -> Vec<String> {
    listeners_of(live, "Gateway", "door")
}

/// The same of this object.
pub(super) fn listeners_of(live: &Live, kind: &str, name: &str) -> Vec<String> {
    let mut verdicts = live.report.verdicts.iter();
    let verdict = verdicts.find(|of| of.id.kind == kind && of.id.name == name);
    let verdict = verdict.expect("what has listeners");
    let line = |of: &Listener| {
        let is_bad = |of: &&super::Condition| of.is_true == (of.kind == "Conflicted");
        let bad = of.conditions.iter().filter(is_bad);
        let bad: Vec<String> = bad
            .map(|of| format!(" {}={}", of.kind, of.reason))
            .collect();
        format!("{} {}{}", of.name, of.attached, bad.concat())
    };
    verdict.listeners.iter().map(line).collect()
}

#[test]
fn of_two_rules_that_take_the_same_the_first_has_it_in_whatever_order_they_say_it() {
    let header = |name: &str| json!({ "name": name, "value": "one" });
    let rule = |[first, second]: [&str; 2], backend: &str| {
        json!({
            "matches": [{
                "path": { "type": "Exact", "value": "/same" },
                "headers": [header(first), header(second)],
                "queryParams": [header(second), header(first)],
            }],
            "backendRefs": [{ "name": backend, "port": 80 }],
        })
    };
    // A Service that is not there closes what goes there, and what comes behind does not open it.
    for (first, is_closed) in [("web", false), ("nothing", true)] {
        let rules = json!({ "rules": [rule(["x-a", "x-b"], first), rule(["x-b", "x-a"], "web")] });
        let objects = cluster(
            json!([{ "name": "all", "port": 80, "protocol": "HTTP" }]),
            &[http_route("twice", json!([{ "name": "door" }]), rules)],
        );
        let live = lowered(&objects, None);
        let said = said(&live, "HTTPRoute", "twice");
        assert!(said.starts_with("Accepted true"), "{said}");
        let document = document(&live);
        let routes = &document["routes"];
        let routes = routes.as_array().map_or(1, Vec::len);
        assert_eq!(routes, 1, "{document}");
        assert_eq!(
            document["routes"].to_string().contains("closed"),
            is_closed,
            "{document}"
        );
    }
}

#[test]
fn each_listener_has_its_port_its_host_and_its_routes() {
    let objects = cluster(
        json!([
            { "name": "all", "port": 80, "protocol": "HTTP" },
            { "name": "one", "port": 80, "protocol": "HTTP", "hostname": "One.example" },
            { "name": "apart", "port": 81, "protocol": "HTTP" },
        ]),
        &[
            http_route(
                "everywhere",
                json!([{ "name": "door" }]),
                json!({ "rules": [{ "backendRefs": to_web() }] }),
            ),
            http_route(
                "apart",
                json!([{ "name": "door", "sectionName": "apart" }]),
                json!({ "hostnames": ["two.example"], "rules": [{ "backendRefs": to_web() }] }),
            ),
        ],
    );
    let live = lowered(&objects, None);
    let document = document(&live);
    let listen = &document["listen"];
    assert_eq!(listen["hosts"], json!("*"));
    let hosts: Vec<&Value> = listen["listeners"]
        .as_array()
        .expect("listeners")
        .iter()
        .map(|of| &of["host"])
        .collect();
    assert_eq!(hosts, [&Value::Null, &json!("one.example"), &Value::Null]);
    let routes = document["routes"].as_array().expect("routes");
    let places: Vec<&Value> = routes.iter().map(|of| &of["match"]["listener"]).collect();
    assert_eq!(places, [&json!("apart"), &json!(["all", "one", "apart"])]);
    assert_eq!(listeners(&live), ["all 1", "one 1", "apart 2"]);
    // Only the pod that is ready is called, by its own port, and is told the host that the client asked for.
    assert_eq!(document["backends"]["web"]["url"], "http://10.0.0.1:3000");
    assert_eq!(routes[0]["upstream_host"], "client");
}

#[test]
fn a_listener_that_cannot_be_served_keeps_no_other_from_being() {
    let objects = cluster(
        json!([
            { "name": "good", "port": 80, "protocol": "HTTP" },
            { "name": "twin", "port": 82, "protocol": "HTTP" },
            { "name": "other", "port": 82, "protocol": "HTTP" },
            { "name": "udp", "port": 83, "protocol": "UDP" },
            { "name": "tls", "port": 443, "protocol": "HTTPS", "tls": { "certificateRefs": [{ "name": "none" }] } },
            { "name": "kinds", "port": 84, "protocol": "HTTP", "allowedRoutes": { "kinds": [{ "kind": "HTTPRoute" }, { "kind": "TCPRoute" }] } },
        ]),
        &[http_route(
            "r",
            json!([{ "name": "door" }]),
            json!({ "rules": [{ "backendRefs": to_web() }] }),
        )],
    );
    let live = lowered(&objects, None);
    let served = document(&live)["listen"]["listeners"].clone();
    let served: Vec<&Value> = served
        .as_array()
        .expect("listeners")
        .iter()
        .map(|of| &of["name"])
        .collect();
    assert_eq!(served, [&json!("good"), &json!("kinds")]);
    assert_eq!(
        listeners(&live),
        [
            "good 1",
            "twin 1 Accepted=HostnameConflict Programmed=HostnameConflict Conflicted=HostnameConflict",
            "other 1 Accepted=HostnameConflict Programmed=HostnameConflict Conflicted=HostnameConflict",
            "udp 0 Accepted=UnsupportedProtocol Programmed=Invalid",
            "tls 1 Programmed=Invalid ResolvedRefs=InvalidCertificateRef",
            "kinds 1 ResolvedRefs=InvalidRouteKinds",
        ]
    );
    assert!(said(&live, "Gateway", "door").starts_with("Accepted true ListenersNotValid"));
    // Where none is left, the gate that runs refuses, and one that starts waits.
    let none = cluster(
        json!([{ "name": "udp", "port": 83, "protocol": "UDP" }]),
        &[],
    );
    let waits = lowered(&none, None);
    assert!(waits.loaded.is_err());
    assert!(said(&waits, "Gateway", "door").starts_with("Accepted false ListenersNotValid"));
    assert!(lowered(&none, Some("127.0.0.1:80")).loaded.is_ok());
}

#[test]
fn listeners_of_one_port_that_ask_for_other_certificates_of_clients_are_not_served() {
    let files = |kind: &str, name: &str, data: Value| {
        let metadata = json!({ "name": name, "namespace": "a" });
        json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "stringData": data, "data": data })
    };
    let pem = "-----BEGIN CERTIFICATE-----\n";
    let pair = json!({ "tls.crt": pem, "tls.key": "-----BEGIN PRIVATE KEY-----\n" });
    let mut secret = files("Secret", "pair", pair);
    secret["data"] = Value::Null;
    let mut objects = vec![secret];
    for name in ["ca", "other-ca"] {
        let mut roots = files("ConfigMap", name, json!({ "ca.crt": pem }));
        roots["stringData"] = Value::Null;
        objects.push(roots);
    }
    let listener = |name: &str, port: u16, ca: Option<&str>| {
        let mut tls = json!({ "certificateRefs": [{ "name": "pair" }] });
        if let Some(ca) = ca {
            let roots = json!([{ "group": "", "kind": "ConfigMap", "name": ca }]);
            tls["frontendValidation"] = json!({ "caCertificateRefs": roots });
        }
        let hostname = format!("{name}.example");
        json!({ "name": name, "port": port, "protocol": "HTTPS", "hostname": hostname, "tls": tls })
    };
    let all = json!([
        listener("open", 443, None),
        listener("shut", 443, Some("ca")),
        listener("one", 444, Some("ca")),
        listener("two", 444, Some("other-ca")),
        listener("same", 445, Some("ca")),
        listener("alike", 445, Some("ca")),
        // It asks for what is not there, and that is its own fault alone.
        listener("fine", 446, None),
        listener("faulty", 446, Some("none")),
    ]);
    let route = http_route(
        "r",
        json!([{ "name": "door" }]),
        json!({ "rules": [{ "backendRefs": to_web() }] }),
    );
    let mut cluster = cluster(all, &[route]);
    cluster.extend(objects);
    let live = lowered(&cluster, None);
    let served = &document(&live)["listen"]["listeners"];
    let served = served.as_array().expect("listeners").iter();
    let names: Vec<&Value> = served.map(|of| &of["name"]).collect();
    assert_eq!(names, ["same", "alike", "fine"]);
    let against =
        "Accepted=ProtocolConflict Programmed=ProtocolConflict Conflicted=ProtocolConflict";
    let told = listeners(&live);
    for (name, line) in ["open", "shut", "one", "two"].iter().zip(&told) {
        assert_eq!(*line, format!("{name} 1 {against}"));
    }
}

#[test]
fn a_route_is_told_for_each_parent_why_it_is_not_attached() {
    let listeners = json!([
        { "name": "mine", "port": 80, "protocol": "HTTP", "hostname": "*.example" },
        { "name": "none", "port": 81, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "None" } } },
    ]);
    let parents = json!([
        { "name": "door", "sectionName": "mine" }, { "name": "door", "sectionName": "gone" },
        { "name": "door", "port": 9 }, { "name": "door", "sectionName": "none" },
    ]);
    let rules = json!([{ "backendRefs": to_web() }]);
    let one = http_route(
        "one",
        parents,
        json!({ "rules": rules, "hostnames": ["a.example"] }),
    );
    let elsewhere = json!({ "rules": rules, "hostnames": ["a.test"] });
    let other = http_route(
        "other",
        json!([{ "name": "door", "sectionName": "mine" }]),
        elsewhere,
    );
    let live = lowered(&cluster(listeners, &[one, other]), None);
    let reasons = |name: &str| {
        let mut verdicts = live.report.verdicts.iter();
        let verdict = verdicts.find(|of| of.id.name == name).expect("a route");
        let of = |(at, of): &(usize, Vec<super::Condition>)| format!("{at} {}", of[0].reason);
        verdict.parents.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(
        reasons("one"),
        [
            "1 NoMatchingParent",
            "2 NoMatchingParent",
            "3 NotAllowedByListeners"
        ]
    );
    assert_eq!(reasons("other"), ["0 NoMatchingListenerHostname"]);
    let routes = document(&live)["routes"].as_array().expect("routes");
    assert_eq!(routes.len(), 1, "{routes:?}");
}

#[test]
fn namespaces_are_let_in_by_their_labels() {
    let from = |labels: Value| json!({ "namespaces": { "from": "Selector", "selector": labels } });
    let listeners = json!([
        { "name": "labelled", "port": 80, "protocol": "HTTP", "allowedRoutes": from(json!({ "matchLabels": { "team": "x" } })) },
        { "name": "named", "port": 81, "protocol": "HTTP", "allowedRoutes": from(json!({ "matchLabels": { "kubernetes.io/metadata.name": "a" } })) },
        { "name": "not", "port": 82, "protocol": "HTTP", "allowedRoutes": from(json!({ "matchExpressions": [{ "key": "team", "operator": "DoesNotExist" }] })) },
    ]);
    let route = http_route(
        "r",
        json!([{ "name": "door" }]),
        json!({ "rules": [{ "backendRefs": to_web() }] }),
    );
    let mut objects = cluster(listeners, &[route]);
    let before = lowered(&objects, None);
    assert_eq!(self::listeners(&before), ["labelled 0", "named 1", "not 1"]);
    let wants = |live: &Live| {
        live.report
            .wanted
            .iter()
            .any(|id| id.kind == "Namespace" && id.name == "a")
    };
    assert!(wants(&before));
    objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a", "labels": { "team": "x" } } }));
    assert_eq!(
        self::listeners(&lowered(&objects, None)),
        ["labelled 1", "named 1", "not 0"]
    );
}

#[test]
fn a_service_is_what_its_slices_say_is_ready() {
    let listeners = json!([{ "name": "http", "port": 80, "protocol": "HTTP" }]);
    let rule = |path: &str, refs: Value| json!({ "matches": [{ "path": { "type": "Exact", "value": path } }], "backendRefs": refs });
    let rules = json!([
        rule("/h2", json!([{ "name": "web", "port": 81 }])),
        rule("/none", json!([{ "name": "empty", "port": 80 }])),
        rule("/missing", json!([{ "name": "missing", "port": 80 }])),
        rule("/port", json!([{ "name": "web", "port": 99 }])),
        rule(
            "/shares",
            json!([{ "name": "web", "port": 80, "weight": 3 }, { "name": "many", "port": 80, "weight": 1 }])
        ),
    ]);
    let mut objects = cluster(
        listeners,
        &[http_route(
            "r",
            json!([{ "name": "door" }]),
            json!({ "rules": rules }),
        )],
    );
    objects.extend([service("empty"), service("many")]);
    let two = json!([
        endpoint("10.0.1.1", true),
        endpoint("10.0.1.2", true),
        endpoint("127.0.0.1", true)
    ]);
    objects.push(slice("many-1", "many", two));
    let live = super::lowered_where(&objects, None, false);
    let document = document(&live);
    let of = |path: &str| {
        let mut routes = document["routes"].as_array().expect("routes").iter();
        let route = routes
            .find(|of| of["match"]["path"] == path)
            .expect("a route");
        document["backends"][route["backend"].as_str().expect("one")].clone()
    };
    assert_eq!(of("/h2")["url"], "http://10.0.0.1:3001");
    assert_eq!(of("/h2")["protocol"], "http2");
    assert_eq!(
        of("/none")["unready"],
        json!(true),
        "it is there, and no Pod of it is ready"
    );
    for closed in ["/missing", "/port"] {
        assert_eq!(of(closed)["closed"], json!(true), "{closed}");
    }
    // A Service's share is spread over its pods, and none of them is the gate's own machine.
    let shares = of("/shares");
    let shares = shares["endpoints"].as_array().expect("endpoints").iter();
    let shares: Vec<String> = shares
        .map(|of| {
            format!(
                "{} {}",
                of["url"].as_str().unwrap_or_default(),
                of["weight"]
            )
        })
        .collect();
    assert_eq!(
        shares,
        [
            "http://10.0.0.1:3000 6",
            "http://10.0.1.1:3000 1",
            "http://10.0.1.2:3000 1"
        ]
    );
    assert_eq!(
        shares_of(&live, "local"),
        json!(false),
        "its names lead elsewhere"
    );
    let said = said(&live, "HTTPRoute", "r");
    assert!(
        said.contains("ResolvedRefs false BackendNotFound"),
        "{said}"
    );
}

#[test]
fn endpoints_of_the_gates_own_zone_are_called_where_they_say_so() {
    use crate::slices::{Endpoint, near};
    let at = |host: &str, zones: &[&str]| Endpoint {
        host: host.to_owned(),
        port: 1,
        zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
    };
    let all = [at("1", &["a"]), at("2", &["b"]), at("3", &["a", "b"])];
    let hosts = |all: &[Endpoint], zone| {
        near(all, zone)
            .iter()
            .map(|of| of.host.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(&all, Some("a")), ["1", "3"]);
    assert_eq!(
        hosts(&all, Some("c")),
        ["1", "2", "3"],
        "none is meant for it"
    );
    assert_eq!(hosts(&all, None), ["1", "2", "3"]);
    let one_says_nothing = [at("1", &["a"]), at("2", &[])];
    assert_eq!(hosts(&one_says_nothing, Some("a")), ["1", "2"]);
}

#[test]
fn filters_become_members_of_the_route_and_one_that_is_not_served_closes_its_rule() {
    let listeners = json!([{ "name": "http", "port": 80, "protocol": "HTTP" }]);
    let rule = |path: &str, filters: Value| json!({ "matches": [{ "path": { "value": path } }], "filters": filters, "backendRefs": to_web() });
    let mut redirect = rule(
        "/old",
        json!([{
            "type": "RequestRedirect",
            "requestRedirect": { "scheme": "https", "statusCode": 301, "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/new" } },
        }]),
    );
    redirect
        .as_object_mut()
        .expect("a rule")
        .remove("backendRefs");
    let rules = json!([
        rule(
            "/fields",
            json!([{ "type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{ "name": "X-A", "value": "1" }], "add": [{ "name": "x-b", "value": "2" }], "remove": ["x-c"],
        } }])
        ),
        rule(
            "/path",
            json!([{ "type": "URLRewrite", "urlRewrite": {
            "hostname": "in.example", "path": { "type": "ReplaceFullPath", "replaceFullPath": "/one" },
        } }])
        ),
        redirect,
        rule(
            "/copy",
            json!([{ "type": "RequestMirror", "requestMirror": { "backendRef": { "name": "web", "port": 81 }, "percent": 20 } }])
        ),
        rule(
            "/cors",
            json!([{ "type": "CORS", "cors": { "allowOrigins": ["https://*.example"], "allowMethods": ["*"], "allowCredentials": true, "maxAge": 60 } }])
        ),
        rule(
            "/other",
            json!([{ "type": "ExtensionRef", "extensionRef": { "group": "g", "kind": "k", "name": "n" } }])
        ),
    ]);
    let live = lowered(
        &cluster(
            listeners,
            &[http_route(
                "r",
                json!([{ "name": "door" }]),
                json!({ "rules": rules }),
            )],
        ),
        None,
    );
    let document = document(&live);
    let of = |path: &str| {
        let mut routes = document["routes"].as_array().expect("routes").iter();
        let wanted = format!("{path}/*");
        routes
            .find(|of| of["match"]["path"] == wanted.as_str())
            .expect("a route")
            .clone()
    };
    assert_eq!(
        of("/fields")["request_headers"],
        json!({ "set": { "x-a": "1" }, "add": { "x-b": "2" }, "remove": "x-c" })
    );
    assert_eq!(of("/path")["upstream_host"], "in.example");
    assert_eq!(of("/path")["rewrite"], json!({ "path": "/one" }));
    assert_eq!(
        of("/old")["redirect"],
        json!({ "scheme": "https", "status": 301, "prefix": "/new" })
    );
    assert_eq!(of("/copy")["mirrors"][0]["share"], json!("0.2"));
    assert_eq!(
        of("/cors")["cors"],
        json!({ "origins": ["https://*.example"], "methods": ["*"], "credentials": true, "max_age": "60s" })
    );
    assert_eq!(of("/other")["backend"], "closed-http");
    let said = said(&live, "HTTPRoute", "r");
    assert!(
        said.contains("the filter \"ExtensionRef\" is not served"),
        "{said}"
    );
}

#[test]
fn of_two_policies_for_the_certificates_of_one_service_the_older_is_in_force() {
    let listeners = json!([{ "name": "http", "port": 80, "protocol": "HTTP" }]);
    let route = http_route(
        "r",
        json!([{ "name": "door" }]),
        json!({ "rules": [{ "backendRefs": to_web() }] }),
    );
    let policy = |name: &str, created: &str, host: &str| {
        let target = json!([{ "group": "", "kind": "Service", "name": "web" }]);
        let spec = json!({ "targetRefs": target, "validation": { "hostname": host, "wellKnownCACertificates": "System" } });
        let mut policy = object(GATEWAY_GROUP, "BackendTLSPolicy", name, spec);
        policy["metadata"]["creationTimestamp"] = json!(created);
        policy
    };
    let mut objects = cluster(listeners, &[route]);
    objects.push(policy("a-late", "2026-01-02T00:00:00Z", "late.example"));
    objects.push(policy("early", "2026-01-01T00:00:00Z", "early.example"));
    let live = lowered(&objects, None);
    let backend = &document(&live)["backends"]["web"];
    assert_eq!(backend["url"], "https://10.0.0.1:3000");
    assert_eq!(backend["tls_name"], "early.example");
    assert!(said(&live, "BackendTLSPolicy", "early").starts_with("Accepted true"));
    assert!(said(&live, "BackendTLSPolicy", "a-late").starts_with("Accepted false Conflicted"));
}
